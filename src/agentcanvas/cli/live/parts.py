"""Choosing a part of a change: files, and hunks of a file, as a person writes them (D13).

``src/parser.py`` is the whole file, ``src/parser.py#1,3`` its first and third hunk; in a list that
was just shown, a file's number stands for its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.text import Text

from agentcanvas.cli.live.clean import one_line
from agentcanvas.errors import ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.proposals.model import FileChoice
from agentcanvas.runs.shown import ShownFile, ShownHunk, ShownProposal

_HUNKS = re.compile(r"#(\d+(?:,\d+)*)$")


def choice_of(words: Iterable[str], files: Sequence[ShownFile]) -> tuple[FileChoice, ...]:
    """The choice that these words mean; ``ValidationError`` where they mean none."""
    known = [file.path for file in files]
    found: dict[str, FileChoice] = {}
    for word in words:
        path, hunks = _split(word, known)
        if path not in known:
            raise ValidationError(f"The change has no file {path}; {did_you_mean(path, known)}")
        earlier = found.get(path)
        if earlier is not None and (earlier.hunks is None or hunks is None):
            raise ValidationError(f"{path} is named twice; name each file once")
        more = (*(earlier.hunks or ()), *hunks) if earlier and hunks else hunks
        found[path] = FileChoice(path, more)
    return tuple(found.values())


def _split(word: str, known: Sequence[str]) -> tuple[str, tuple[int, ...] | None]:
    """A name may hold a # itself, so one that is known as it stands is meant as it stands."""
    if word in known:
        return word, None
    match = _HUNKS.search(word)
    name = word[: match.start()] if match else word
    if name not in known and name.isdecimal() and 1 <= int(name) <= len(known):
        name = known[int(name) - 1]
    return name, tuple(map(int, match[1].split(","))) if match else None


def parts_table(view: ShownProposal) -> Text:
    """Every file with its number, and its hunks where they can be chosen one by one."""
    text = Text()
    for number, file in enumerate(view.files, start=1):
        text.append(f"{number:>3}  ", style="bold")
        text.append(f"{file.status:<8}  {one_line(file.path, 200)}  ")
        text.append(f"+{file.added} ", style="green")
        text.append(f"-{file.removed}\n", style="red")
        if len(file.hunks) > 1:
            for hunk in file.hunks:
                text.append(f"       #{hunk.number}  {_where(hunk)}\n", style="dim")
    text.rstrip()
    return text


def standing_lines(view: ShownProposal) -> list[str]:
    """How it stands in the workspace of now, and whom it meets; nothing if all is well."""
    lines = []
    if view.outlook is not None and view.outlook.reason:
        lines.append(f"Now: {view.outlook.fitness}: {one_line(view.outlook.reason, 400)}")
    elif view.outlook is not None and view.outlook.merged:
        merged = ", ".join(one_line(path, 80) for path in view.outlook.merged)
        lines.append(f"Now: it merges with your edits of {merged}")
    name = f"{view.run_id}/{view.proposal_id}"
    lines += [f"Overlaps: {one_line(met.told_to(name), 400)}" for met in view.overlaps]
    return lines


def _where(hunk: ShownHunk) -> str:
    if hunk.number == 0:
        return one_line(hunk.heading)
    heading = f"  {one_line(hunk.heading, 60)}" if hunk.heading else ""
    start, count = hunk.new_start, hunk.new_count
    if not count:  # all of it goes
        start, count = hunk.old_start, hunk.old_count
    return f"lines {start}-{start + count - 1}{heading}" if count > 1 else f"line {start}{heading}"
