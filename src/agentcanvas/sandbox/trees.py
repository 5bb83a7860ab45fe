"""Making and removing whole trees: folders, copies, and thorough removal.

What is done to one file says ``copying``. Which files, and what they are for, is the caller's
matter.
"""

# ruff: noqa: PTH101, PTH108, PTH112, PTH114, PTH208 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from agentcanvas.sandbox.copying import copy, copy_file, working_mode
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.manifest import Manifest, entries_of, is_patchable
from agentcanvas.sandbox.spreading import spread
from agentcanvas.sandbox.stamp import stamp_of

_TOO_DEEP = {errno.ENAMETOOLONG, errno.EMFILE}

_SHARE_BLOCKS = 0x40049409  # FICLONE of Linux


@contextmanager
def standing_in(*folders: Path) -> Iterator[tuple[int, ...]]:
    """Open folders for names to be looked up from, instead of from the root for each."""
    with ExitStack() as stack:
        descriptors = []
        for folder in folders:
            descriptors.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            stack.callback(os.close, descriptors[-1])
        yield tuple(descriptors)


def leads_only_down(root: Path, path: bytes) -> bool:
    """Tell whether a path in a tree goes through nothing but folders of it, and over no link."""
    place = root
    for name in os.fsdecode(path).split("/")[:-1]:
        place /= name
        if place.is_symlink() or not place.is_dir():
            return False
    return True


def make_folders(root: Path, folders: Iterable[bytes]) -> None:
    """Make ``root`` and folders in it; all that they are in have to be among them."""
    root.mkdir(parents=True, exist_ok=True)
    with standing_in(root) as (top,):
        for folder in sorted(folders):  # so that a folder comes before what is in it
            with suppress(FileExistsError):
                os.mkdir(folder, dir_fd=top)


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
    files = [item for item in stamps.items() if is_patchable(item[1][0])]
    make_folders(target, folders_of(path for path, _ in files))
    with standing_in(source, target) as folders:
        spread(copy, folders, files)


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
