"""Whether the disk under a store has room, and what is said when it has none.

A disk that is full or read-only keeps a store from being opened and damages nothing. SQLite words
both like damage, or is killed by them, so they are told apart here.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from agentcanvas.errors import StoreError, StoreFull

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

_INDEX_BYTES = 32 * 1024
_ROOM_BYTES = 4 * _INDEX_BYTES
"""What a store takes to open: its index, the beginning of its log, and the folders for them."""
_LITTLE = 1024 * 1024
_BLOCK = 512  # of st_blocks, whatever the disk has


def refuse_without_room(path: Path) -> None:
    """Refuse to open a store whose index SQLite would have no room for.

    SQLite maps the index of its log into memory, and makes the file (``-shm``) by writing a byte to
    each page of it. Where blocks are smaller than pages that leaves holes, and on a full disk the
    first store into a hole kills the process (SIGBUS). So the same room is taken for a moment by a
    file without a name. The index itself is never touched: others may have it mapped, to close it
    here would drop this process's locks on it, and the first one to come cuts it to nothing anyway.

    A log of more than 4,062 pages has a second index of 32 kB, and so on. A checkpoint is due at
    4,000 pages, so it takes a long batch, or a long read, to need one; and the log itself is
    written first, where SQLite can say that the disk is full.
    """
    try:
        index = path.with_name(path.name + "-shm").stat()
    except OSError:
        pass
    else:
        if index.st_blocks * _BLOCK >= _INDEX_BYTES:
            return
    try:
        with tempfile.TemporaryFile(dir=path.parent, buffering=0) as room:
            written = room.write(bytes(_ROOM_BYTES))
    except OSError as error:
        if error.errno in NO_ROOM:
            raise full(path) from error
    else:
        if written < _ROOM_BYTES:
            raise full(path)


def full(path: Path) -> StoreFull:
    """Say that it is the disk, and what to do."""
    free, top = _free(path.parent), _top(path.parent)
    what = "The disk" if is_full(path) else "The disk, or your quota of it,"
    return StoreFull(
        f"{what} is full ({_shown(free)} free on {top}), so {path} cannot be opened; nothing is "
        "lost or damaged. Make room, for example: agentcanvas sandbox clean"
    )


def read_only(path: Path) -> StoreError:
    """Say that nothing can be written there, and what to do."""
    return StoreError(
        f"The file system {_top(path.parent)} is read-only, so {path} cannot be opened; nothing is "
        "lost or damaged. Mount it for writing, or work in another folder."
    )


def why_unusable(path: Path) -> StoreError | None:
    """Say whether it is the disk that keeps a store from being opened."""
    if is_read_only(path):
        return read_only(path)
    return full(path) if is_full(path) else None


def is_full(path: Path) -> bool:
    """Whether next to nothing can be written beside a file."""
    try:
        told = os.statvfs(path.parent)
    except OSError:
        return False
    return told.f_bavail * told.f_frsize < _LITTLE or (told.f_files > 0 and told.f_favail == 0)


def is_read_only(path: Path) -> bool:
    """Whether nothing can be written beside a file, by anybody."""
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _free(folder: Path) -> int:
    try:
        told = os.statvfs(folder)
    except OSError:
        return 0
    return told.f_bavail * told.f_frsize


def _top(folder: Path) -> Path:
    """Give the folder that the disk is mounted on."""
    folder = folder.absolute()
    return next((each for each in (folder, *folder.parents) if os.path.ismount(each)), folder)


def _shown(count: int) -> str:
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} bytes"
