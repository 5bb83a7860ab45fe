"""New names beside those that are there: on some disks, two of them may be one file.

Whoever lands README.md beside readme.md breaks the checkout of everybody whose disk ignores case,
and with ``README.md.`` or ``README.md:x`` that of everybody with Windows. What was there before may
stay as it is, and a name may change its case; only a new name has to fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.policy import Breach, BreachKind, forgetful, same_as, show
from agentcanvas.proposals.tree import ObstacleError, Source, folders_above

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def clashes(new: Collection[bytes], base: Source, gone: Collection[bytes]) -> Iterator[Breach]:
    """New files whose names, or those of folders above them, some disks take for others.

    The others are those of ``base``, a frozen one or a workspace, that stay when the files ``gone``
    go, and the new ones.
    """
    names = _Names(base, gone)
    for path in sorted(new):
        if other := names.taken_in(path):
            step = b"/".join(path.split(b"/")[: other.count(b"/") + 1])
            detail = f"is the same as {same_as(step, other)}"
            yield Breach(BreachKind.NAME_CLASH, show(path), detail)


_Spellings = dict[str, list[bytes]]
_STREAM: Final = ":"
"""``name:stream`` is a part of the file ``name`` on NTFS; two streams of one file are apart."""


def _enter(name: bytes, spellings: _Spellings) -> None:
    key = forgetful(name)
    spellings.setdefault(key, []).append(name)
    if _STREAM in key:
        spellings.setdefault(_file_of(key) + _STREAM, []).append(name)


def _alike(name: bytes, spellings: _Spellings) -> list[bytes]:
    """What some disk takes for this name, or for a part of it, or it for a part of that."""
    key = forgetful(name)
    near = _file_of(key) if _STREAM in key else key + _STREAM
    return [*spellings.get(key, ()), *spellings.get(near, ())]


def _file_of(key: str) -> str:
    return key.partition(_STREAM)[0].rstrip(" .")


class _Names:
    """What is in each folder, which is listed once, when somebody asks for it."""

    def __init__(self, base: Source, gone: Collection[bytes]) -> None:
        self._base = base
        self._gone = gone
        self._thinned = {folder for path in gone for folder in folders_above(path)}
        self._spellings: dict[bytes, _Spellings] = {}
        self._added: set[bytes] = set()

    def taken_in(self, path: bytes) -> bytes | None:
        """Add a path, step by step; gives what is in its place, spelt otherwise."""
        above = b""
        for name in path.split(b"/"):
            spellings = self._in(above)
            if name not in spellings.get(forgetful(name), ()):
                others = (above + other for other in _alike(name, spellings))
                if there := next(filter(self._holds_something, others), None):
                    return there
                _enter(name, spellings)
            self._added.add(above + name)
            above += name + b"/"
        return None

    def _in(self, folder: bytes) -> _Spellings:
        """The names that stay in a folder, by what they are on the most forgetful disk."""
        if folder not in self._spellings:
            found = self._spellings[folder] = {}
            for name in sorted(self._base.names(folder)):
                if self._stays(folder + name):
                    _enter(name, found)
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
