"""What a person says about lines of a proposal, and how it reaches the worker with the verdict.

Pure. Whoever collects remarks, a page or a command, hands them in beside the decision; the text
that the worker and the log get is made here, so that it reads the same from everywhere.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.model import Wire
from agentcanvas.proposals.outline import FileSection, NotPlainError, read_outline
from agentcanvas.proposals.policy import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_REMARKS: Final = 200
LONGEST_REMARK: Final = 4_000
_LONGEST_QUOTE: Final = 200
_LONGEST_PATH: Final = 4_096

Side = Literal["old", "new"]


class Remark(Wire, frozen=True):
    """Something said about a file, or about one line of it; 0 is the file as a whole.

    ``side`` tells whose number it is: the file's before the change, or after it. ``quote`` is the
    line itself, so that the remark is understood when the numbers have moved on.
    """

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_PATH)]
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_REMARK)]
    line: Annotated[int, msgspec.Meta(ge=0)] = 0
    side: Side = "new"
    quote: str = ""


Remarks = Annotated[tuple[Remark, ...], msgspec.Meta(max_length=MOST_REMARKS)]


def with_remarks(reason: str, remarks: Sequence[Remark]) -> str:
    """The reason, and then every remark below the place that it is about."""
    parts = [reason.strip(), *map(_said, remarks)]
    return "\n\n".join(filter(None, parts))


def quoted(remark: Remark, patch: bytes) -> Remark:
    """The remark with the line it is about, where the patch shows that line."""
    for path, side, number, text in _lines(_sections(patch)):
        if (path, side, number) == (remark.path, remark.side, remark.line):
            return msgspec.structs.replace(remark, quote=text)
    return remark


def paths_in(patch: bytes) -> tuple[str, ...]:
    """The files that can be remarked on, once each."""
    return tuple(dict.fromkeys(show(section.name) for section in _sections(patch)))


def _sections(patch: bytes) -> Sequence[FileSection]:
    try:
        return read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"The patch cannot be read: {problem}.") from None


def _lines(sections: Iterable[FileSection]) -> Iterator[tuple[str, Side, int, str]]:
    for section in sections:
        path = show(section.name)
        for hunk in section.hunks:
            old, new = hunk.old_index, hunk.new_index
            for line in hunk.lines:
                text = line[1:].decode("utf-8", "replace")
                if line[:1] not in {b"+", b"\\"}:
                    old += 1
                    yield path, "old", old, text
                if line[:1] not in {b"-", b"\\"}:
                    new += 1
                    yield path, "new", new, text


def _said(remark: Remark) -> str:
    place = _one_line(remark.path)
    if remark.line:
        place += f":{remark.line}" + (" (before the change)" if remark.side == "old" else "")
    quote = _one_line(remark.quote)[:_LONGEST_QUOTE].strip()
    lines = [place, f"> {quote}" if quote else "", remark.text.strip()]
    return "\n".join(filter(None, lines))


def _one_line(text: str) -> str:
    """Without anything that could end the line, or speak as another."""
    return "".join(" " if unicodedata.category(one) in {"Cc", "Zl", "Zp"} else one for one in text)
