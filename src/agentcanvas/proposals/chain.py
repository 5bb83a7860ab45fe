"""Which later proposals stand on an earlier one: who is in the way when it is taken back.

Transactions form a chain by content: one builds on another where it found what that one had left.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.journal import Action, Journal, JournalState, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agentcanvas.proposals.quarantine import Quarantine
    from agentcanvas.proposals.tree import Entry

UNDO: Final = ".undo"


def built_on(journal: Journal, others: Iterable[Journal]) -> dict[str, tuple[str, ...]]:
    """For each path of a transaction, the later ones that changed what it left there."""
    standing = [other for other in _standing(others) if other.transaction != journal.transaction]
    found = {move.path: landed_after(move.path, move.new, standing)[0] for move in journal.moves}
    return {path: names for path, names in found.items() if names}


def _standing(others: Iterable[Journal]) -> list[Journal]:
    """What has landed and was not taken back."""
    journals = [other for other in others if other.state is JournalState.DONE]
    taken_back = {
        other.transaction.removesuffix(UNDO) for other in journals if other.action is Action.UNDO
    }
    return [
        other
        for other in journals
        if other.action is Action.APPLY and other.transaction not in taken_back
    ]


def landed_after(
    path: str, left: Mark | None, others: Iterable[Journal]
) -> tuple[tuple[str, ...], tuple[Mark | None, ...]]:
    """Who has landed something on this content of a file since, and what each of them left."""
    steps = [
        (other.transaction, _content(move.old), move.new)
        for other in _standing(others)
        for move in other.moves
        if move.path == path
    ]
    known, names, marks = {_content(left)}, list[str](), list[Mark | None]()
    while found := [step for step in steps if step[0] not in names and step[1] in known]:
        names += [name for name, _, _ in found]
        marks += [new for _, _, new in found]
        known |= {_content(new) for _, _, new in found}
    return tuple(names), tuple(marks)


def _content(mark: Mark | None) -> tuple[str, str] | None:
    return None if mark is None else (mark.mode, mark.sha256)


Contents = Callable[[str, str], "tuple[Entry | None, Entry | None]"]
"""A file before and after a transaction, by the names of both."""


def named(
    conflict: ApplyConflict,
    journal: Journal,
    others: Iterable[Journal],
    contents: Contents,
    quarantine: Quarantine,
) -> ApplyConflict:
    """The same refusal, with the proposals that stand in the way called by name."""
    later = {
        path: names
        for path, followers in built_on(journal, others).items()
        if path in conflict.conflicts
        and (names := _in_the_way(path, (journal.transaction, *followers), contents, quarantine))
    }
    if not later:
        return conflict
    told = {
        path: _changed_since(later[path]) if path in later else why
        for path, why in conflict.conflicts.items()
    }
    return _refusal(journal, told, next(iter(later.values()))[-1])


def taken_back_by(journal: Journal, doers: Mapping[str, str]) -> ApplyConflict:
    """Why nothing is left to take back: for each path, who has done so on its own account.

    If that were accepted as done, taking back the doer would bring back what nobody wants.
    """
    told = {path: _changed_since([doer]) for path, doer in doers.items()}
    return _refusal(journal, told, next(iter(doers.values())))


def _changed_since(names: Iterable[str]) -> str:
    return f"{', '.join(names)} changed it since"


def _refusal(journal: Journal, told: Mapping[str, str], first: str) -> ApplyConflict:
    listed = "; ".join(f"{path}: {why}" for path, why in told.items())
    return ApplyConflict(
        f"Nothing was taken back, for later work stands on {journal.transaction}: {listed}. "
        f"Take back {first} first, or ask for a change that undoes it.",
        conflicts=told,
    )


def _in_the_way(
    path: str, names: Sequence[str], contents: Contents, quarantine: Quarantine
) -> list[str]:
    """Those of the later ones without which the first could be taken back.

    They are added again one by one; one that keeps the first from being undone, or that needs
    another such, stays out.
    """

    def merged(
        base: Entry | None, ours: Entry | None, theirs: Entry | None
    ) -> tuple[Entry | None, bool]:
        key = os.fsencode(path)
        sides = [{} if side is None else {key: side} for side in (base, ours, theirs)]
        result, clashing = quarantine.merge(*sides)
        return result.get(key), bool(clashing)

    old, new = contents(names[0], path)
    found, now = [], new
    for name in names[1:]:
        with_it, clashes = merged(contents(name, path)[0], now, contents(name, path)[1])
        if clashes or merged(new, old, with_it)[1]:
            found.append(name)
        else:
            now = with_it
    return found
