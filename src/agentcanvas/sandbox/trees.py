"""Making and removing whole trees fast: links, parallel copies, and thorough removal.

``copy_file_range`` shares blocks by itself where the file system can (XFS, btrfs), so there is one
way for all disks. Which files, and what they are for, is the caller's matter.
"""

# ruff: noqa: PTH101, PTH103, PTH108, PTH112, PTH114, PTH208 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

from agentcanvas.clock import SystemClock
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.manifest import Manifest, Stamp, entries_of, stamp_of

_T = TypeVar("_T")
_R = TypeVar("_R")

_BATCH = 128
# Past the number of cores more threads only fight over the interpreter and the journal.
_THREADS = max(2, min(4, os.cpu_count() or 2))
# So do two trees at once: one after the other, four take two thirds of the time.
one_tree = threading.RLock()

_seconds = SystemClock().monotonic

_CANNOT_LINK = {errno.EMLINK, errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS}
_CANNOT_COPY_RANGE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}
_TOO_DEEP = {errno.ENAMETOOLONG, errno.EMFILE}

_SHARE_BLOCKS = 0x40049409  # FICLONE of Linux
_MAY_HAVE_HOLES = 1 << 20
_BLOCK_UNIT = 512


def frozen_mode(mode: int) -> int:
    """Take away every right to write, keep the right to read."""
    return (mode & 0o555) | 0o400


def working_mode(mode: int) -> int:
    """Keep the permissions; the owner can always read and write, nothing is setuid."""
    return (mode & 0o777) | 0o600


@contextmanager
def standing_in(folder: bytes) -> Iterator[int]:
    """Open a folder for names to be looked up from, instead of from the root for each."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def make_folders(root: bytes, paths: Iterable[bytes]) -> None:
    """Make ``root`` and every folder that the paths need."""
    os.makedirs(root, exist_ok=True)
    with standing_in(root) as top:
        for folder in sorted(folders_of(paths)):  # so that a folder comes before what is in it
            with suppress(FileExistsError):
                os.mkdir(folder, dir_fd=top)


def in_parallel(
    work: Callable[[_T], _R],
    items: Sequence[_T],
    *,
    seconds: Callable[[], float] = _seconds,
) -> list[_R]:
    """Do the work for every item, on a few threads if they win, results in order.

    The first error is raised. The work may not itself call this: there is one such at a time.

    Threads hand the interpreter to each other at every call of the system. Where another core is
    slow to wake, as on some virtual machines, several take longer than one, so both are tried.
    """
    batches = [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]
    tried = 2 + _THREADS

    def done(batch: Sequence[_T]) -> list[_R]:
        return [work(item) for item in batch]

    if len(batches) <= tried:
        return list(chain.from_iterable(map(done, batches)))
    with one_tree, ThreadPoolExecutor(_THREADS) as pool:
        results = done(batches[0])  # finds names and blocks that nobody has looked up before
        begun = seconds()
        results += done(batches[1])
        alone = seconds() - begun
        begun = seconds()
        results += chain.from_iterable(pool.map(done, batches[2:tried]))
        together = seconds() - begun
        fastest = pool.map if together < alone * _THREADS else map
        results += chain.from_iterable(fastest(done, batches[tried:]))
        return results


def copy_file(
    source: bytes,
    target: bytes,
    like: Stamp,
    mode: int,
    *,
    source_in: int | None = None,
    target_in: int | None = None,
) -> Stamp:
    """Copy a file or link that has the stamp ``like``, with its mtime; gives the copy's stamp.

    The target must not exist, and the source must not change meanwhile. Names are looked up in the
    folders that ``source_in`` and ``target_in`` are descriptors of.
    """
    if stat.S_ISLNK(like[0]):
        return copy_link(os.readlink(source, dir_fd=source_in), target, like, target_in=target_in)
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source_in)
    try:
        return copy_open_file(reading, target, like, mode, target_in=target_in)
    finally:
        os.close(reading)


def copy_link(
    leads_to: bytes, target: bytes, like: Stamp, *, target_in: int | None = None
) -> Stamp:
    """Make a link; otherwise as ``copy_file``."""
    os.symlink(leads_to, target, dir_fd=target_in)
    os.utime(target, ns=(like[2], like[2]), dir_fd=target_in, follow_symlinks=False)
    return stamp_of(os.lstat(target, dir_fd=target_in))


def copy_open_file(
    reading: int, target: bytes, like: Stamp, mode: int, *, target_in: int | None = None
) -> Stamp:
    """Copy from a descriptor; otherwise as ``copy_file``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    writing = os.open(target, flags, mode, dir_fd=target_in)
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
    if size > _MAY_HAVE_HOLES and os.fstat(reading).st_blocks * _BLOCK_UNIT < size:
        _copy_around_holes(reading, writing, size)
    else:
        _copy_range(reading, writing, size)


def _copy_around_holes(reading: int, writing: int, size: int) -> None:
    """Copy what is really there: a file of gigabytes may be nothing but a hole."""
    end = 0
    while end < size:
        try:
            start = os.lseek(reading, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # no more data
                raise
            break
        end = os.lseek(reading, start, os.SEEK_HOLE)
        os.lseek(reading, start, os.SEEK_SET)
        os.lseek(writing, start, os.SEEK_SET)
        _copy_range(reading, writing, end - start)
    os.ftruncate(writing, size)


def _copy_range(reading: int, writing: int, left: int) -> None:
    try:
        while left > 0:
            moved = os.copy_file_range(reading, writing, left)
            if moved == 0:
                return
            left -= moved
    except (OSError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno not in _CANNOT_COPY_RANGE:
            raise
        while left > 0 and (block := os.read(reading, min(left, 1 << 20))):
            left -= os.write(writing, block)


def link_or_copy(
    source: bytes, target: bytes, *, source_in: int | None = None, target_in: int | None = None
) -> None:
    """Give a frozen file a second name, or a copy where the disk has no more links to give."""
    try:
        os.link(source, target, src_dir_fd=source_in, dst_dir_fd=target_in, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        like = stamp_of(os.lstat(source, dir_fd=source_in))
        mode = stat.S_IMODE(like[0])
        copy_file(source, target, like, mode, source_in=source_in, target_in=target_in)


def files_below(root: bytes) -> Manifest:
    """Stamp every file, link and whatever else is below a folder, none left out."""
    found: Manifest = {}
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        for entry in entries_of(root + b"/" + folder):
            path = folder + os.fsencode(entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path + b"/")
            else:
                found[path] = stamp_of(entry.stat(follow_symlinks=False))
    return found


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file or a whole folder with modes and times; pipes and sockets stay behind."""
    old, new = os.fsencode(source), os.fsencode(target)
    like = stamp_of(os.lstat(old))
    if not stat.S_ISDIR(like[0]):
        copy_file(old, new, like, working_mode(like[0]))
        return
    stamps = files_below(old)
    paths = [p for p, stamp in stamps.items() if stat.S_ISREG(stamp[0]) or stat.S_ISLNK(stamp[0])]
    make_folders(new, paths)
    with standing_in(old) as there, standing_in(new) as here:

        def copy(path: bytes) -> None:
            like = stamps[path]
            copy_file(path, path, like, working_mode(like[0]), source_in=there, target_in=here)

        in_parallel(copy, paths)


def shares_blocks(folder: Path) -> bool:
    """Try whether copies cost nothing here until they are written to (XFS, btrfs)."""
    with (
        tempfile.TemporaryFile(dir=folder) as one,
        tempfile.TemporaryFile(dir=folder) as other,
    ):
        one.write(b"x" * 4096)
        one.flush()
        try:
            fcntl.ioctl(other.fileno(), _SHARE_BLOCKS, one.fileno())
        except OSError:
            return False
    return True


def remove_path(path: Path) -> None:
    """Remove a file, link or whole tree, whatever rights its maker left on it, however deep."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path, onerror=_open_up_and_retry)
    except RecursionError:
        _remove_level_by_level(path)
    except OSError as error:
        if error.errno not in _TOO_DEEP:
            raise
        _remove_level_by_level(path)


def _open_up_and_retry(_: object, path: str, problem: object) -> None:
    if isinstance(problem, tuple) and getattr(problem[1], "errno", 0) in _TOO_DEEP:
        raise problem[1]
    if not os.path.lexists(path):
        return
    os.chmod(Path(path).parent, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _remove_level_by_level(root: Path) -> None:
    """Remove a tree deeper than a path can be long: every folder is first lifted to the top."""
    number = 0
    root.chmod(0o700)
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while names := os.listdir(top):
            for name in names:
                number = _emptied(top, name, number)
    finally:
        os.close(top)
    root.rmdir()


def _emptied(top: int, name: str, number: int) -> int:
    """Remove an entry of the top folder; the folders in it become entries of the top folder."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=top).st_mode):
        os.unlink(name, dir_fd=top)
        return number
    os.chmod(name, 0o700, dir_fd=top)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(name, flags, dir_fd=top)
    try:
        for inner in os.listdir(folder):
            if stat.S_ISDIR(os.lstat(inner, dir_fd=folder).st_mode):
                os.chmod(inner, 0o700, dir_fd=folder)  # a folder that moves is itself written to
                number = _lifted(folder, inner, top, number)
            else:
                os.unlink(inner, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return number


def _lifted(folder: int, name: str, top: int, number: int) -> int:
    while True:
        number += 1
        try:
            os.rename(name, f".lifted-{number}", src_dir_fd=folder, dst_dir_fd=top)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        else:
            return number
