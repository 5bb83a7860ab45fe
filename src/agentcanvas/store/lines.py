"""Files of lines that are appended to, of which only a known number of bytes is trusted.

The caller remembers how many bytes of a file are good; whatever follows them was written by a crash
or by somebody else and goes. What the lines say is left to ``projections``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_LOOK_BYTES = 1 << 16


class CutShortError(Exception):
    """The file has fewer bytes than it is known to have had: somebody cut or removed it."""


def adopt(path: Path) -> int:
    """Return the size of a file that is about to get its first line; what is there already stays.

    A last line without an end gets one, lest ours continue it.
    """
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                return 0
            file.seek(size - 1)
            if file.read(1) != b"\n":
                file.write(b"\n")
                size += 1
            return size
    except FileNotFoundError:
        return 0


def is_good(path: Path, size: int) -> bool:
    """Whether the file has exactly the bytes it is known to have."""
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return size == 0


def append(path: Path, good: int, data: bytes) -> int:
    """Make ``data`` follow the first ``good`` bytes; return how many are good now.

    Raise ``CutShortError``, with nothing written, when there are not that many.
    """
    try:
        return _append(path, good, data)
    except FileNotFoundError:  # the folder is missing: the file opens by itself
        path.parent.mkdir(parents=True, exist_ok=True)
        return _append(path, good, data)


def _append(path: Path, good: int, data: bytes) -> int:
    with path.open("ab") as file:
        size = file.seek(0, os.SEEK_END)
        if size < good:
            raise CutShortError(path)
        if size > good:
            file.truncate(good)
        file.write(data)
    return good + len(data)


def rewrite(path: Path, parts: Iterable[bytes]) -> int:
    """Make the file anew, all or nothing; return its size.

    An old file that holds anything else than a beginning of the new one is kept beside it, with
    ``.kept`` after its name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        for part in parts:
            file.write(part)
        size = file.tell()
        file.flush()
        os.fsync(file.fileno())
    if not _begins_with(fresh, path):
        path.replace(path.with_name(path.name + ".kept"))
    fresh.replace(path)
    sync_folder(path.parent)
    return size


def _begins_with(whole: Path, beginning: Path) -> bool:
    try:
        with beginning.open("rb") as short, whole.open("rb") as long:
            while part := short.read(_LOOK_BYTES):
                if part != long.read(len(part)):
                    return False
    except FileNotFoundError:
        pass
    return True


def sync(path: Path) -> None:
    """Bring the file, if somebody has not removed it, and its name to the disk."""
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except FileNotFoundError:
        pass  # found missing, and made anew, at the next open


def sync_folder(folder: Path) -> None:
    """Bring the names in ``folder`` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
