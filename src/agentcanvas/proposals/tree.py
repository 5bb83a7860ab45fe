"""A folder seen without following a single link: how proposals read bases and workspaces.

Each step down is opened with O_NOFOLLOW relative to the step above, so a link that appears
between two looks cannot lead anywhere else. Paths are bytes, relative, and checked by ``policy``
before they come here.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

_STEP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO that takes a file's place must not hang the reader.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_A_FOLDER: Final = "a folder"
_NOT_A_FOLDER: Final = frozenset({errno.ENOTDIR, errno.ELOOP})
_STAYS: Final = _NOT_A_FOLDER | {
    *(errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT),
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY),  # not ours to remove, or mounted
}


class Mode(StrEnum):
    """The three kinds of file that a proposal can hold, in git's numbers."""

    FILE = "100644"
    EXECUTABLE = "100755"
    LINK = "120000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file; ``data`` is the target of a link. ``permissions`` do not count as content."""

    mode: Mode
    data: bytes
    permissions: int | None = field(default=None, compare=False)


class ObstacleError(Exception):
    """Something other than a file is at, or on the way to, this path."""

    def __init__(self, path: bytes, what: str, *, on_the_way: bool = False) -> None:
        super().__init__(f"{path.decode(errors='backslashreplace')} is {what}")
        self.path = path
        self.what = what
        self.on_the_way = on_the_way

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder at the path itself, which may be there for its files alone."""
        return self.what == _A_FOLDER


class Source(Protocol):
    """Where contents come from: a generation, a sandbox's input/, or the workspace itself."""

    def look(self, path: bytes) -> Entry | None: ...

    def readlink(self, path: bytes) -> bytes | None: ...

    def names(self, folder: bytes) -> list[bytes]: ...

    def links(self, without: frozenset[bytes]) -> set[bytes]: ...

    def holds_only(self, folder: bytes, paths: Container[bytes]) -> bool: ...


class Place(Protocol):
    """Where changes are to land: a workspace, or what a commit holds."""

    def look(self, path: bytes) -> Entry | None: ...

    def holds_only(self, folder: bytes, paths: Container[bytes]) -> bool: ...


class Tree:
    """An open folder; close it, or use it as a context manager."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        os.close(self._fd)

    def look(self, path: bytes) -> Entry | None:
        """The file at ``path``, None when there is none; ``ObstacleError`` for anything else."""
        with self.parent(path) as folder:
            return None if folder is None else _entry(folder, path)

    def readlink(self, path: bytes) -> bytes | None:
        """The target if ``path`` is a link, else None."""
        try:
            with self.parent(path) as folder:
                if folder is None:
                    return None
                return os.readlink(path.rpartition(b"/")[2], dir_fd=folder)
        except (ObstacleError, OSError):
            return None

    def names(self, folder: bytes) -> list[bytes]:
        """What is in a folder, which ends in a slash or is the top; nothing if it is none."""
        try:
            with self.parent(folder) as fd:
                if fd is None:
                    return []
                with os.scandir(fd) as entries:
                    return [os.fsencode(entry.name) for entry in entries]
        except ObstacleError:
            return []

    def links(self, without: frozenset[bytes]) -> set[bytes]:
        """All links; folders with a name among ``without`` are not entered, wherever they are."""
        found, waiting = set(), [b""]
        while waiting:
            above = waiting.pop()
            try:
                with self.parent(above) as fd:
                    if fd is None:
                        continue
                    with os.scandir(fd) as entries:
                        for entry in entries:
                            name = os.fsencode(entry.name)
                            if entry.is_symlink():
                                found.add(above + name)
                            elif entry.is_dir(follow_symlinks=False) and name not in without:
                                waiting.append(above + name + b"/")
            except (ObstacleError, PermissionError):
                continue  # replaced meanwhile, or closed to its owner as well
        return found

    @contextmanager
    def parent(self, path: bytes, *, make: bool = False) -> Iterator[int | None]:
        """A descriptor of the folder that holds ``path``; None if it is missing and not made."""
        fd = os.dup(self._fd)
        try:
            walked = b""
            for part in path.split(b"/")[:-1]:
                walked = walked + b"/" + part if walked else part
                below = _step(fd, part, walked, make=make)
                if below is None:
                    yield None
                    return
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    def missing_folders(self, path: bytes) -> list[bytes]:
        """The folders above ``path`` that do not exist yet, outermost first."""
        above = folders_above(path)
        for index, folder in enumerate(above):
            try:
                with self.parent(folder + b"/") as fd:
                    if fd is None:
                        return above[index:]
            except ObstacleError:
                return above[index:]
        return []

    def holds_only(self, folder: bytes, paths: Container[bytes]) -> bool:
        """Whether every file below ``folder`` is one of ``paths``."""
        with self.parent(folder + b"/") as fd:
            if fd is None:
                return True
            with os.scandir(fd) as entries:
                inside = [(os.fsencode(e.name), e.is_dir(follow_symlinks=False)) for e in entries]
        for name, is_folder in inside:
            path = folder + b"/" + name
            if not (self.holds_only(path, paths) if is_folder else path in paths):
                return False
        return True

    def remove_empty_folders(self, folder: bytes) -> None:
        """Remove a folder that holds nothing but empty folders, deepest first."""
        with self.parent(folder + b"/") as fd:
            if fd is None:
                return
            with os.scandir(fd) as entries:
                inside = [os.fsencode(entry.name) for entry in entries]
        for name in inside:
            self.remove_empty_folders(folder + b"/" + name)
        self.remove_folder_if_empty(folder)

    def remove_folder_if_empty(self, path: bytes) -> bool:
        """False where it stays: git keeps no empty folders, so nobody misses its removal."""
        try:
            with self.parent(path) as fd:
                if fd is None:
                    return False
                os.rmdir(path.rpartition(b"/")[2], dir_fd=fd)
        except OSError as problem:
            if problem.errno in _STAYS:
                return False
            raise
        except ObstacleError:
            return False
        return True


class Held:
    """Files that are only in memory, as a place to ask what a change would do there."""

    def __init__(self, files: Mapping[bytes, Entry]) -> None:
        self._files = files

    def look(self, path: bytes) -> Entry | None:
        return self._files.get(path)

    def holds_only(self, folder: bytes, paths: Container[bytes]) -> bool:
        below = folder + b"/"
        return all(path in paths for path in self._files if path.startswith(below))


def disk_says(problem: OSError) -> str:
    """What the disk refused, and where; often only the last part of a path is known."""
    name = problem.filename
    where = f" at {os.fsdecode(name)}" if isinstance(name, str | bytes) and name else ""
    return f"{problem.strerror or problem}{where}"


def folders_above(path: bytes) -> list[bytes]:
    """The folders on the way to a path, outermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def _step(fd: int, part: bytes, walked: bytes, *, make: bool) -> int | None:
    try:
        return os.open(part, _STEP, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            return None
        os.mkdir(part, dir_fd=fd)
        return os.open(part, _STEP, dir_fd=fd)
    except OSError as problem:
        if problem.errno not in _NOT_A_FOLDER:
            raise
        link = stat.S_ISLNK(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)
        what = "a link, not a folder" if link else "a file, not a folder"
        raise ObstacleError(walked, what, on_the_way=True) from None


def _entry(folder: int, path: bytes) -> Entry | None:
    name = path.rpartition(b"/")[2]
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            return Entry(Mode.LINK, os.readlink(name, dir_fd=folder))
        if stat.S_ISREG(mode):
            return _read(folder, name, path)
    except FileNotFoundError:
        return None
    raise ObstacleError(path, _A_FOLDER if stat.S_ISDIR(mode) else "not an ordinary file")


def _read(folder: int, name: bytes, path: bytes) -> Entry:
    with open(os.open(name, _READ, dir_fd=folder), "rb") as file:  # noqa: PTH123 - a descriptor
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise ObstacleError(path, "not an ordinary file")
        kind = Mode.EXECUTABLE if mode & stat.S_IXUSR else Mode.FILE
        return Entry(kind, file.read(), permissions=stat.S_IMODE(mode))
