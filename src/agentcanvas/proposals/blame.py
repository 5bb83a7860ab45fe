"""Whose change keeps a proposal from landing: an earlier proposal's, the user's own, or both.

What landed is known by content, as in ``chain``: whatever no transaction has left is the user's.
"""

from __future__ import annotations

import os
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.proposals.chain import landed_after
from agentcanvas.proposals.hunks import lines_of
from agentcanvas.proposals.journal import mark_of
from agentcanvas.proposals.policy import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentcanvas.proposals.journal import Journal
    from agentcanvas.proposals.merge import Conflict
    from agentcanvas.proposals.patch import Change
    from agentcanvas.proposals.tree import Entry

_MOST_LINES: Final = 3_000
"""Finding the line takes the square of this at worst."""


def blamed(
    conflicts: Iterable[Conflict],
    drifted: Sequence[tuple[Change, Entry | None]],
    journals: Iterable[Journal],
) -> list[Conflict]:
    """The same conflicts, each with the line and with whoever changed it."""
    known = list(journals)
    sides = {show(change.path): (change, now) for change, now in drifted}
    return [
        msgspec.structs.replace(each, detail=_detail(*sides[each.path], known))
        if each.path in sides
        else each
        for each in conflicts
    ]


def _detail(change: Change, now: Entry | None, journals: Sequence[Journal]) -> str:
    by = _who(change, now, journals)
    if now is None:
        return f"it was deleted since, by {by}"
    if change.before is None:
        return f"another file of this name was made since, by {by}"
    if change.after is None:
        return f"it would be deleted, and was changed since, by {by}"
    line = _first_line(change.before.data, now.data, change.after.data)
    what = "the same lines have" if line is None else f"line {line} has"
    return f"{what} changed since, by {by}"


def _who(change: Change, now: Entry | None, journals: Sequence[Journal]) -> str:
    path = os.fsdecode(change.path)
    names, left = landed_after(path, mark_of(change.before), journals)
    by = list(names)
    if not any(mark is None if now is None else mark and mark.fits(now) for mark in left):
        by.append("you")
    return " and ".join(by)


def _first_line(base: bytes, ours: bytes, theirs: bytes) -> int | None:
    """The first line of ours, from 1, at which both sides differ from the base."""
    old, mine, other = lines_of(base), lines_of(ours), lines_of(theirs)
    if max(len(old), len(mine), len(other)) > _MOST_LINES or any(
        b"\0" in data for data in (base, ours, theirs)
    ):
        return None
    taken = [(op[1], op[2]) for op in _changes(old, other)]
    for _, start, end, line, _ in _changes(old, mine):
        if any(first <= end and start <= last for first, last in taken):
            return line + 1
    return None


def _changes(old: list[bytes], new: list[bytes]) -> list[tuple[str, int, int, int, int]]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [op for op in matcher.get_opcodes() if op[0] != "equal"]
