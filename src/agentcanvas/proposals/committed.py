"""What the user's last commit and index hold, asked before a commit is made of a proposal (D16).

Whatever speaks against it is named by path, and nothing has been touched then.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.merge import ConflictKind
from agentcanvas.proposals.policy import forgetful, same_as, show
from agentcanvas.proposals.tree import Entry, Mode, ObstacleError, folders_above

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from agentcanvas.proposals.journal import Entered
    from agentcanvas.proposals.merge import Plan
    from agentcanvas.proposals.repository import Listed

_SUBMODULE: Final = "160000"
_MODES: Final = frozenset(map(str, Mode))
_SINCE: Final = {
    ConflictKind.BOTH_CHANGED: "the commit holds other lines there (your edits are not committed, "
    "or line ends or a filter change the file)",
    ConflictKind.USER_ADDED: "the commit holds a different file of this name",
    ConflictKind.USER_CHANGED: "the commit holds another version of a file that would be deleted",
    ConflictKind.USER_DELETED: "the file is not in the commit",
    ConflictKind.IN_THE_WAY: "a file, folder or submodule of the commit is in the way",
}


class CommittedTree:
    """What a commit holds below the workspace, as a place where changes land."""

    def __init__(
        self, listed: Mapping[bytes, Listed], prefix: bytes, contents: Mapping[str, bytes]
    ) -> None:
        self._listed = listed
        self._prefix = prefix
        self._contents = contents
        self._folders = {folder for path in listed for folder in folders_above(path)}

    def look(self, path: bytes) -> Entry | None:
        whole = self._prefix + path
        for above in folders_above(whole):
            if above in self._listed:
                what = _what(self._listed[above][0])
                raise ObstacleError(above[len(self._prefix) :], what, on_the_way=True)
        if whole in self._folders:
            raise ObstacleError(path, "a folder")
        if whole not in self._listed:
            return None
        mode, oid = self._listed[whole]
        if mode not in _MODES:
            raise ObstacleError(path, _what(mode))
        return Entry(Mode(mode), self._contents[oid])

    def holds_only(self, folder: bytes, paths: Container[bytes]) -> bool:
        below = self._prefix + folder + b"/"
        inside = (path for path in self._listed if path.startswith(below))
        return all(path[len(self._prefix) :] in paths for path in inside)


def _what(mode: str) -> str:
    return "a submodule" if mode == _SUBMODULE else "a file, not a folder"


def insist_on(planned: Plan) -> None:
    """The changes fit the commit, or each path that does not is named."""
    if not planned.conflicts:
        return
    told = {each.path: _SINCE[each.kind] for each in planned.conflicts}
    listed = "; ".join(f"{path}: {why}" for path, why in told.items())
    raise ApplyConflict(
        f"Nothing was landed, for the change does not fit your last commit: {listed}. Commit your "
        "own edits first, or land it in the working tree.",
        conflicts=told,
    )


def refuse_clashes(planned: Plan, listed: Mapping[bytes, Listed], prefix: bytes) -> None:
    """A new name, or folder, may not be one of the commit on another disk."""
    made = [prefix + write.path for write in planned.writes if write.old is None]
    if not made:
        return
    gone = {prefix + write.path for write in planned.writes if write.new is None}
    there = {forgetful(part): part for part in _steps(listed.keys() - gone)}
    told = {}
    for path in made:
        for part in _steps([path]):
            if there.get(forgetful(part), part) != part:
                told[show(path[len(prefix) :])] = f"is {same_as(part, there[forgetful(part)])}"
    if told:
        listing = "; ".join(f"{path} {why}" for path, why in told.items())
        raise ApplyConflict(f"Nothing was landed: {listing}. Rename one.", conflicts=told)


def refuse_staged(
    entered: Sequence[Entered], staged: Mapping[bytes, Listed], prefix: bytes
) -> None:
    """Every path is staged as the last commit has it, or as the new one will."""
    going = {os.fsencode(each.path) for each in entered if each.new is None}
    folders = {part for path in staged.keys() - going for part in _steps([path])} - staged.keys()
    told = {}
    for each in entered:
        path = os.fsencode(each.path)
        sides = [side and (side.mode, side.oid) for side in (each.old, each.new)]
        above = (part for part in _steps([path]) if part != path)
        blocked = path in folders or any(part in staged and part not in going for part in above)
        if staged.get(path) not in sides or (each.new is not None and blocked):
            told[show(path[len(prefix) :])] = "is staged differently"
    if told:
        raise ApplyConflict(
            f"Nothing was landed: {', '.join(told)} {'is' if len(told) == 1 else 'are'} staged "
            "differently in your index. Commit or unstage, then try again.",
            conflicts=told,
        )


def _steps(paths: Iterable[bytes]) -> set[bytes]:
    """The paths and all folders above them."""
    return {step for path in paths for step in (*folders_above(path), path)}
