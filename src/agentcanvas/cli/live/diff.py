"""A patch as coloured text; whatever is in the files, the terminal obeys none of it."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from agentcanvas.cli.live.clean import clean, shortened
from agentcanvas.cli.live.words import count

_LONGEST_LINE = 500
_GOES_ON = "↪ "
_HASH = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{32}\b")
_HEADERS = ("diff --git ", "index ", "new file ", "deleted file ", "old mode ", "new mode ")


def on_console(console: Console, patch: bytes) -> Text:
    """The patch as wide as a terminal is; a pipe or a file gets its lines whole."""
    return coloured(patch, console.width if console.is_terminal else 0)


def coloured(patch: bytes, width: int = 0) -> Text:
    """The patch, line by line; in a width, lines that go on are marked.

    Else an agent could write a line that is broken just so that the rest looks like one of its own.
    """
    text = Text(no_wrap=False)
    in_hunk = False
    for line in patch.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        in_hunk = line.startswith("@@") or (in_hunk and not line.startswith("diff --git "))
        # A carriage return is part of the change here, so it is shown.
        shown = shortened(clean(line).replace("\t", "    "), _LONGEST_LINE)
        if not in_hunk:
            shown = _HASH.sub(r"\1", shown)
        style = _style(line, in_hunk=in_hunk)
        for number, part in enumerate(_parts(shown, width)):
            text.append(_GOES_ON if number else "", style="dim")
            text.append(f"{part}\n", style=style)
    return text


def _parts(line: str, width: int) -> list[str]:
    if width <= len(_GOES_ON) or cell_len(line) <= width:
        return [line]
    first = chop_cells(line, width)[0]
    return [first, *chop_cells(line[len(first) :], width - len(_GOES_ON))]


def counted(patch: bytes) -> str:
    """How many files and lines."""
    files = added = removed = 0
    in_hunk = False
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            files, in_hunk = files + 1, False
        elif line.startswith(b"@@"):
            in_hunk = True
        elif in_hunk:
            added += line.startswith(b"+")
            removed += line.startswith(b"-")
    return f"{count(files, 'file')}, +{added} −{removed}"  # noqa: RUF001  # a minus, as it reads best


def _style(line: str, *, in_hunk: bool) -> str:
    if not in_hunk:
        return "bold" if line.startswith(_HEADERS) else "dim"
    if line.startswith("@@"):
        return "cyan"
    return {"+": "green", "-": "red"}.get(line[:1], "")
