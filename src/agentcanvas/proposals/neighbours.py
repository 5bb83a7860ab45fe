"""New names beside those that are there: on a disk that ignores case, two of them may be one file.

Whoever lands README.md beside readme.md breaks the checkout of everybody with such a disk. What was
there before may stay as it is, and a name may change its case; only a new name has to fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcanvas.proposals.policy import Breach, BreachKind, forgetful, show
from agentcanvas.proposals.tree import ObstacleError, Source, folders_above

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def clashes(new: Collection[bytes], base: Source, gone: Collection[bytes]) -> Iterator[Breach]:
    """New files whose names, or those of folders above them, differ from others in case only.

    The others are those of ``base``, a frozen one or a workspace, that stay when the files ``gone``
    go, and the new ones.
    """
    names = _Names(base, gone)
    for path in sorted(new):
        if other := names.taken_in(path):
            detail = f"is the same as {show(other)} on a case-insensitive disk"
            yield Breach(BreachKind.NAME_CLASH, show(path), detail)


class _Names:
    """What is in each folder, which is listed once, when somebody asks for it."""

    def __init__(self, base: Source, gone: Collection[bytes]) -> None:
        self._base = base
        self._gone = gone
        self._thinned = {folder for path in gone for folder in folders_above(path)}
        self._spellings: dict[bytes, dict[str, list[bytes]]] = {}
        self._added: set[bytes] = set()

    def taken_in(self, path: bytes) -> bytes | None:
        """Add a path, step by step; gives what is in its place, spelt otherwise."""
        above = b""
        for name in path.split(b"/"):
            spellings = self._in(above).setdefault(forgetful(name), [name])
            if name not in spellings:
                others = (above + other for other in spellings)
                if there := next(filter(self._holds_something, others), None):
                    return there
                spellings.append(name)
            self._added.add(above + name)
            above += name + b"/"
        return None

    def _in(self, folder: bytes) -> dict[str, list[bytes]]:
        """The names that stay in a folder, by what they are on a disk that ignores case."""
        if folder not in self._spellings:
            found = self._spellings[folder] = {}
            for name in sorted(self._base.names(folder)):
                if self._stays(folder + name):
                    found.setdefault(forgetful(name), []).append(name)
        return self._spellings[folder]

    def _holds_something(self, path: bytes) -> bool:
        """Whether it is more than empty folders, of which git knows nothing."""
        if path in self._added:
            return True
        try:
            return not self._base.holds_only(path, ())
        except ObstacleError:
            return True

    def _stays(self, path: bytes) -> bool:
        if path not in self._thinned:
            return path not in self._gone
        try:
            return not self._base.holds_only(path, self._gone)
        except ObstacleError:
            return True  # the user has put a file or a link in the folder's place
