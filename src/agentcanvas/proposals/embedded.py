"""Git repositories inside the workspace: no change makes one, or says what git runs in one.

A folder with a HEAD, objects and refs is a repository to git, whatever it is called. Whoever gives
a git command in it, or has a shell or an editor that does, runs what its settings and hooks name.
One that the user has, such as a fixture of a test, may change in everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.policy import Breach, BreachKind, fold, show
from agentcanvas.proposals.tree import ObstacleError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from agentcanvas.proposals.tree import Source

_HEAD: Final = "head"
# Objects and refs are in the folder itself, or in the one that commondir names.
_REST: Final = (frozenset({"objects", "refs"}), frozenset({"commondir"}))
_STEERING: Final = frozenset({"config", "config.worktree", "commondir", "hooks"})
_PARTS: Final = frozenset({_HEAD}).union(*_REST)
_OF_INTEREST: Final = _PARTS | _STEERING


def repositories_in(
    changed: Collection[bytes], gone: Collection[bytes], world: Source
) -> Iterator[Breach]:
    """Folders that become a repository, and files that steer git in one that is there.

    ``changed`` are the files that a change leaves in ``world``, ``gone`` those it takes away.
    """
    for folder, paths in sorted(_by_folder(changed).items()):
        there = _There(folder, world)
        if not there.is_repository(paths, gone):
            continue
        if not there.is_repository():
            yield Breach(
                BreachKind.EMBEDDED_REPOSITORY,
                _shown(folder),
                "would become a git repository of its own, and git obeys the settings and hooks "
                "in it; make it while it is used, by the test that needs it, or keep it as an "
                "archive",
            )
            continue
        for path in sorted(paths):
            if _first_name(path, folder) in _STEERING:
                detail = (
                    f"says what git runs in the git repository {_shown(folder)}; set that while "
                    "it is used, in the test that needs it"
                )
                yield Breach(BreachKind.EMBEDDED_REPOSITORY, show(path), detail)


def may_be_parts(paths: Iterable[bytes]) -> bool:
    """Whether one of the files could be what a folder lacks to be a repository."""
    return any(not _PARTS.isdisjoint(map(fold, show(path).split("/"))) for path in paths)


def _by_folder(changed: Collection[bytes]) -> dict[bytes, set[bytes]]:
    """The changed files by the folders that they could belong to as parts of a repository."""
    found: dict[bytes, set[bytes]] = {}
    for path in changed:
        start = 0
        for part in path.split(b"/"):
            if fold(show(part)) in _OF_INTEREST:
                found.setdefault(path[:start], set()).add(path)
            start += len(part) + 1
    return found


class _There:
    """What is in one folder of the workspace, by what a forgetful disk calls it."""

    def __init__(self, folder: bytes, world: Source) -> None:
        self._folder = folder
        self._world = world
        self._names = [name for name in world.names(folder) if fold(show(name)) in _PARTS]

    def is_repository(self, changed: Collection[bytes] = (), gone: Collection[bytes] = ()) -> bool:
        """Whether it is one, once files have come and gone."""
        paths = {self._folder + name for name in self._names}
        staying = {path for path in paths if not self._goes(path, gone)}
        names = {_first_name(path, self._folder) for path in (*staying, *changed)}
        heads = {path for path in staying if self._is_file(path)}.union(changed)
        has_head = any(fold(show(path[len(self._folder) :])) == _HEAD for path in heads)
        return has_head and any(rest <= names for rest in _REST)

    def _goes(self, path: bytes, gone: Collection[bytes]) -> bool:
        if path in gone or not any(other.startswith(path + b"/") for other in gone):
            return path in gone
        try:
            return self._world.holds_only(path, gone)
        except ObstacleError:
            return False

    def _is_file(self, path: bytes) -> bool:
        try:
            return self._world.look(path) is not None
        except ObstacleError:
            return False


def _first_name(path: bytes, folder: bytes) -> str:
    return fold(show(path[len(folder) :].partition(b"/")[0]))


def _shown(folder: bytes) -> str:
    return show(folder.rstrip(b"/")) or "."
