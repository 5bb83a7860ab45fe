"""What is done to one file when a tree is made or looked through: a copy, a second name, a look.

``copy_file_range`` shares blocks by itself where the file system can (XFS, btrfs), so there is one
way for all disks. The pieces of work at the end are those that ``spreading`` hands out, also to a
bare interpreter: therefore nothing is imported here that takes time, and what goes in and out of
them is of built-in types.
"""

from __future__ import annotations

import errno
import os
import stat

from agentcanvas.sandbox.stamp import Stamp, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Folders: TypeAlias = tuple[int, ...]
"""Descriptors of the folders in which names are looked up."""

_TRIES = 5
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_CANNOT_LINK = {errno.EMLINK, errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.ENOSYS}
_CANNOT_COPY_RANGE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}

_MAY_HAVE_HOLES = 1 << 20
_BLOCK_UNIT = 512

RESTLESS = "it keeps changing"
"""Said of a file that would not hold still for a copy."""


def frozen_mode(mode: int) -> int:
    """Take away every right to write, keep the right to read."""
    return (mode & 0o555) | 0o400


def working_mode(mode: int) -> int:
    """Keep the permissions; the owner can always read and write, nothing is setuid."""
    return (mode & 0o777) | 0o600


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
        return _copy_link(os.readlink(source, dir_fd=source_in), target, like, target_in)
    reading = os.open(source, _READING, dir_fd=source_in)
    try:
        return copy_open_file(reading, target, like, mode, target_in)
    finally:
        os.close(reading)


def _copy_link(leads_to: bytes, target: bytes, like: Stamp, target_in: int | None) -> Stamp:
    os.symlink(leads_to, target, dir_fd=target_in)
    os.utime(target, ns=(like[2], like[2]), dir_fd=target_in, follow_symlinks=False)
    return stamp_of(os.lstat(target, dir_fd=target_in))


def copy_open_file(
    reading: int, target: bytes, like: Stamp, mode: int, target_in: int | None
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


def copy(folders: Folders, item: tuple[bytes, Stamp]) -> Stamp:
    """Copy from the first folder to the second, to be worked on; gives the copy's stamp."""
    path, like = item
    mode = working_mode(like[0])
    return copy_file(path, path, like, mode, source_in=folders[0], target_in=folders[1])


def copy_and_link(folders: Folders, item: tuple[bytes, Stamp]) -> Stamp:
    """Do the same, and give the file a second name in the third folder."""
    tree, work, input_ = folders
    link_or_copy(item[0], item[0], source_in=tree, target_in=input_)
    return copy((tree, work), item)


def link(folders: Folders, path: bytes) -> None:
    """Give a file of the first folder a second name in the second."""
    link_or_copy(path, path, source_in=folders[0], target_in=folders[1])


def is_untouched(folders: Folders, item: tuple[bytes, Stamp]) -> bool:
    """Tell whether a file of the folder still has its stamp."""
    return stamp_of(os.lstat(item[0], dir_fd=folders[0])) == item[1]


def freeze(folders: Folders, item: tuple[bytes, Stamp | None]) -> Stamp | str | None:
    """Take a file of the user, as it is now, from the first folder to the second.

    One that has the given stamp, is linked from the third folder, where it was frozen before. Gives
    the stamp it had, or why it was left out; nothing when it was deleted since it was listed.
    """
    path, known = item
    there, here = folders[:2]
    if known:
        try:
            link_or_copy(path, path, source_in=folders[2], target_in=here)
        except FileNotFoundError:
            pass  # thinned out
        else:
            return known
    return copy_still(path, there, here)


def copy_still(path: bytes, source_in: int, target_in: int) -> Stamp | str | None:
    """Copy a file of the user at a moment when it holds still; gives its stamp at that moment."""
    for _ in range(_TRIES):
        try:
            before = stamp_of(os.lstat(path, dir_fd=source_in))
            if stat.S_ISLNK(before[0]):
                _copy_link(os.readlink(path, dir_fd=source_in), path, before, target_in)
                return before
            if not stat.S_ISREG(before[0]):
                return "something else took its place while it was copied"
            reading = os.open(path, _READING | os.O_NONBLOCK, dir_fd=source_in)
        except (FileNotFoundError, NotADirectoryError):
            return None  # deleted since it was listed
        except PermissionError:
            return "it cannot be read"
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EINVAL}:
                raise
            continue  # a file that became a link since it was looked at, or the other way round
        try:
            if stamp_of(os.fstat(reading)) == before:
                copy_open_file(reading, path, before, frozen_mode(before[0]), target_in)
                if stamp_of(os.fstat(reading)) == before:
                    return before
                os.unlink(path, dir_fd=target_in)
        finally:
            os.close(reading)
    return RESTLESS
