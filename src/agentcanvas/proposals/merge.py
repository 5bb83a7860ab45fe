"""A proposal against the workspace as it is now: three-way, file by file (D7).

Base is the generation that the proposal was made on, theirs what the proposal makes of it, ours
what the user has now. What the user did not touch is taken over; what both touched is merged by
git in quarantine, or named as a conflict. Nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.policy import show
from agentcanvas.proposals.tree import ObstacleError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentcanvas.proposals.patch import Change
    from agentcanvas.proposals.quarantine import Quarantine
    from agentcanvas.proposals.tree import Entry, Place


class ConflictKind(StrEnum):
    """What of the user's is in the way."""

    BOTH_CHANGED = "both_changed"
    USER_ADDED = "user_added"
    USER_CHANGED = "user_changed"
    USER_DELETED = "user_deleted"
    IN_THE_WAY = "in_the_way"
    ANOTHER_MOUNT = "another_mount"


_SENTENCES = {
    ConflictKind.BOTH_CHANGED: "you changed the same lines",
    ConflictKind.USER_ADDED: "you added a different file of this name",
    ConflictKind.USER_CHANGED: "you changed a file that would be deleted",
    ConflictKind.USER_DELETED: "you deleted a file that would be changed",
}


class Conflict(msgspec.Struct, frozen=True):
    """One path that cannot be merged."""

    kind: ConflictKind
    path: str
    detail: str


@dataclass(frozen=True, slots=True)
class Write:
    """One file to move into place: ``old`` is there now, ``new`` comes; None where nothing is."""

    path: bytes
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What an apply or undo would do to the workspace; ``drifted`` is what is otherwise by now."""

    writes: tuple[Write, ...]
    merged: tuple[bytes, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    drifted: tuple[tuple[Change, Entry | None], ...] = ()

    def insist(self, *, undoing: bool = False) -> Plan:
        """The plan; raises when there is a conflict, and says what to do."""
        if not self.conflicts:
            return self
        told = "; ".join(f"{conflict.path}: {conflict.detail}" for conflict in self.conflicts)
        if any(conflict.kind is ConflictKind.ANOTHER_MOUNT for conflict in self.conflicts):
            said = f"Nothing was changed: {told}. Leave these files out, or land it on a branch."
        elif undoing:
            said = (
                f"Nothing was changed, because of your own edits: {told}. "
                "Set these edits aside, or ask for a change that undoes it."
            )
        else:
            said = (
                f"It does not fit your files as they are: {told}. "
                "Take that back or set it aside and apply again, or ask for a revision."
            )
        raise ApplyConflict(said, conflicts={each.path: each.detail for each in self.conflicts})


def plan(changes: Sequence[Change], workspace: Place, quarantine: Quarantine) -> Plan:
    """Find out what the changes mean here and now."""
    removed = frozenset(change.path for change in changes if change.after is None)
    made = frozenset(change.path for change in changes if change.after is not None)
    writes: list[Write] = []
    drifted: list[tuple[Change, Entry | None]] = []
    conflicts: list[Conflict] = []
    for change in changes:
        try:
            now = _look(workspace, change, removed, made)
        except ObstacleError as obstacle:
            detail = f"{obstacle} in your workspace"
            conflicts.append(Conflict(ConflictKind.IN_THE_WAY, show(change.path), detail))
            continue
        if now == change.before:
            writes.append(Write(change.path, now, change.after))
        elif now != change.after:  # else it is there already
            drifted.append((change, now))
    merged: list[Write] = []
    if drifted:
        ((merged, clashing),) = merge_many([drifted], quarantine)
        conflicts += clashing
    return Plan(
        writes=tuple(sorted([*writes, *merged], key=lambda write: write.path)),
        merged=tuple(write.path for write in merged),
        conflicts=tuple(conflicts),
        drifted=tuple(drifted),
    )


def apart(path: bytes) -> Conflict:
    """A file that the workspace has on another mount."""
    detail = (
        "lies on another disk or mount than .agentcanvas/, and files are moved into place within "
        "one"
    )
    return Conflict(ConflictKind.ANOTHER_MOUNT, show(path), detail)


def _look(
    workspace: Place, change: Change, removed: frozenset[bytes], made: frozenset[bytes]
) -> Entry | None:
    """The file there now, looking past what the same changes take away or have put there."""
    path = change.path
    try:
        return workspace.look(path)
    except ObstacleError as obstacle:
        if obstacle.path in removed:
            return None
        if obstacle.is_folder and workspace.holds_only(path, removed):
            return None
        # What is in the way came with the changes: then the file is gone already.
        there = made if obstacle.on_the_way else {_above(other, path) for other in made}
        if change.after is None and obstacle.path in there:
            return None
        raise


def _above(path: bytes, folder: bytes) -> bytes:
    return folder if path.startswith(folder + b"/") else path


def merge_many(
    drifted: Sequence[Sequence[tuple[Change, Entry | None]]], quarantine: Quarantine
) -> list[tuple[list[Write], list[Conflict]]]:
    """Merge many proposals, each for itself, with one git process: each has a folder of its own.

    A pair is a change and the file that is there now.
    """
    inside = [
        (b"%d/" % number, change, now)
        for number, of_one in enumerate(drifted)
        for change, now in of_one
    ]
    result, clashing = quarantine.merge(
        base={place + change.path: change.before for place, change, _ in inside if change.before},
        ours={place + change.path: now for place, change, now in inside if now},
        theirs={place + change.path: change.after for place, change, _ in inside if change.after},
    )
    results: list[dict[bytes, Entry]] = [{} for _ in drifted]
    for path, entry in result.items():
        number, _, name = path.partition(b"/")
        results[int(number)][name] = entry
    clashes: list[set[bytes]] = [set() for _ in drifted]
    for path in clashing:
        number, _, name = path.partition(b"/")
        clashes[int(number)].add(name)
    return [_outcome(*parts) for parts in zip(drifted, results, clashes, strict=True)]


def _outcome(
    drifted: Sequence[tuple[Change, Entry | None]],
    result: Mapping[bytes, Entry],
    clashing: set[bytes],
) -> tuple[list[Write], list[Conflict]]:
    writes, conflicts = [], []
    known = {change.path for change, _ in drifted}
    # Where one side has a link or a folder and the other a file, git sets one aside as name~commit.
    aside = {path: path.rpartition(b"~")[0] for path in clashing - known}
    for change, now in drifted:
        if change.path in clashing:
            kind = _kind(change, now)
            conflicts.append(Conflict(kind, show(change.path), _SENTENCES[kind]))
        elif change.path in aside.values():
            conflicts.append(_in_the_way(change.path))
        elif (new := result.get(change.path)) != now:
            writes.append(Write(change.path, now, new))
    conflicts += [_in_the_way(path) for path in sorted(aside) if aside[path] not in known]
    return writes, conflicts


def _in_the_way(path: bytes) -> Conflict:
    detail = "a file and a folder would share this name"
    return Conflict(ConflictKind.IN_THE_WAY, show(path), detail)


def _kind(change: Change, now: Entry | None) -> ConflictKind:
    if change.before is None:
        return ConflictKind.USER_ADDED
    if now is None:
        return ConflictKind.USER_DELETED
    return ConflictKind.USER_CHANGED if change.after is None else ConflictKind.BOTH_CHANGED
