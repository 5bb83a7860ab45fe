"""Making and removing whole trees fast: links, parallel copies, and thorough removal.

``copy_file_range`` shares blocks by itself where the file system can (XFS, btrfs), so there is one
way for all disks. Which files, and what they are for, is the caller's matter.
"""

# ruff: noqa: PTH101, PTH103, PTH108, PTH112, PTH114, PTH115, PTH211 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from agentcanvas.sandbox.manifest import Stamp, stamp_of

_T = TypeVar("_T")
_R = TypeVar("_R")

_BATCH = 256
# Past the number of cores more threads only fight over the interpreter and the journal.
_THREADS = max(2, min(4, os.cpu_count() or 2))

_CANNOT_LINK = {errno.EMLINK, errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS}
_CANNOT_COPY_RANGE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


def frozen_mode(mode: int) -> int:
    """Take away every right to write, keep the right to read."""
    return (mode & 0o555) | 0o400


def working_mode(mode: int) -> int:
    """Keep the permissions; the owner can always read and write, nothing is setuid."""
    return (mode & 0o777) | 0o600


def make_folders(root: bytes, paths: Iterable[bytes]) -> None:
    """Make ``root`` and every folder that the paths need."""
    os.makedirs(root, exist_ok=True)
    made = {b""}
    for path in paths:
        folder = path.rpartition(b"/")[0]
        if folder not in made:
            os.makedirs(root + b"/" + folder, exist_ok=True)
            while folder and folder not in made:
                made.add(folder)
                folder = folder.rpartition(b"/")[0]


def in_parallel(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Do the work for every item on a few threads, results in order; the first error is raised."""
    if len(items) <= _BATCH:
        return [work(item) for item in items]
    batches = [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as pool:
        done = pool.map(lambda batch: [work(item) for item in batch], batches)
        return [result for results in done for result in results]


def copy_file(source: bytes, target: bytes, like: Stamp, mode: int) -> Stamp:
    """Copy a file or link that has the stamp ``like``, with its mtime; gives the copy's stamp.

    The target must not exist, and the source must not change meanwhile.
    """
    if stat.S_ISLNK(like[0]):
        return _copy_link(os.readlink(source), target, like)
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return copy_open_file(reading, target, like, mode)
    finally:
        os.close(reading)


def _copy_link(leads_to: bytes, target: bytes, like: Stamp) -> Stamp:
    os.symlink(leads_to, target)
    os.utime(target, ns=(like[2], like[2]), follow_symlinks=False)
    return stamp_of(os.lstat(target))


def copy_open_file(reading: int, target: bytes, like: Stamp, mode: int) -> Stamp:
    """Copy from a descriptor; otherwise as ``copy_file``."""
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        _copy_bytes(reading, writing, like[1])
        os.utime(writing, ns=(like[2], like[2]))
        made = os.fstat(writing)
        if stat.S_IMODE(made.st_mode) != mode:  # the umask took something away
            os.fchmod(writing, mode)
            made = os.fstat(writing)
        return stamp_of(made)
    finally:
        os.close(writing)


def _copy_bytes(reading: int, writing: int, size: int) -> None:
    left = size
    try:
        while left > 0:
            moved = os.copy_file_range(reading, writing, left)
            if moved == 0:
                return
            left -= moved
    except (OSError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno not in _CANNOT_COPY_RANGE:
            raise
        while block := os.read(reading, 1 << 20):
            os.write(writing, block)


def link_or_copy(source: bytes, target: bytes) -> None:
    """Give a frozen file a second name, or a copy where the disk has no more links to give."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        like = stamp_of(os.lstat(source))
        copy_file(source, target, like, stat.S_IMODE(like[0]))


def remove_path(path: Path) -> None:
    """Remove a file, link or whole tree, whatever rights its maker left on it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, onerror=_open_up_and_retry)


def _open_up_and_retry(_: object, path: str, __: object) -> None:
    if not os.path.lexists(path):
        return
    os.chmod(Path(path).parent, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)
