"""Making and removing whole trees: folders, copies, and thorough removal.

What is done to one file says ``copying``. Which files, and what they are for, is the caller's
matter.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from agentcanvas.sandbox.copying import copy, copy_file, working_mode
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.manifest import Manifest, entries_of, is_patchable
from agentcanvas.sandbox.spreading import spread
from agentcanvas.sandbox.stamp import stamp_of

_DEEPEST = 32
"""So many folders are open at once; what lies deeper is moved up first."""
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP, errno.ENOENT}

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


def make_parents(path: Path) -> None:
    """Make the folders that a path is in, however deep: ``mkdir`` calls itself for each of them."""
    missing = [path.parent]
    while not os.path.lexists(missing[-1].parent):
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)


@contextmanager
def passing_folder(prefix: str, place: Path | None = None) -> Iterator[Path]:
    """Give a folder for a while; it may be filled with what somebody else has named or written."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        yield folder
    finally:
        remove_path(folder)


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


def open_up(folder: Path) -> None:
    """Give the owner of a folder all rights to it, which whoever worked there may have taken."""
    mode = stat.S_IMODE(folder.lstat().st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(mode | stat.S_IRWXU)


def remove_path(path: Path) -> None:
    """Remove a file, link or whole tree, whatever rights its maker left on it, however deep."""
    try:
        _remove(path)
    except PermissionError:
        open_up(path.parent)
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError), standing_in(path.parent) as (folder,):
        remove_entry(folder, path.name)


def remove_entry(folder: int, name: str) -> None:
    """Remove what has this name in an open folder; no link is followed.

    Neither calls nor open folders pile up with the depth, which whoever made the tree has chosen.
    """
    numbers = count(1)
    way = [top] if (top := _emptied(folder, name)) else []
    try:
        while way:
            now = way[-1]
            if not now.folders:
                os.close(way.pop().descriptor)
                with suppress(FileNotFoundError):
                    os.rmdir(now.name, dir_fd=way[-1].descriptor if way else folder)
            elif len(way) > _DEEPEST:
                lifted = _lifted(now.descriptor, now.folders.pop(), way[0].descriptor, numbers)
                way[0].folders.append(lifted)
            elif below := _emptied(now.descriptor, now.folders.pop()):
                way.append(below)
    finally:
        for each in way:
            os.close(each.descriptor)


@dataclass(frozen=True)
class _Emptied:
    """An open folder without files; ``folders`` are those that are still in it."""

    name: str
    descriptor: int
    folders: list[str]


def _emptied(folder: int, name: str) -> _Emptied | None:
    """Open a folder and remove the files in it; what is none is removed itself."""
    descriptor = _opened(folder, name)
    if descriptor is None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        return None
    found = _Emptied(name, descriptor, [])
    try:
        with os.scandir(descriptor) as entries:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inner, is_folder in inside:
            if is_folder:
                found.folders.append(inner)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(inner, dir_fd=descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return found


def _opened(folder: int, name: str) -> int | None:
    """Open a folder that its owner may do all with; None where nothing of this name is one."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        except PermissionError:
            os.chmod(name, stat.S_IRWXU, dir_fd=folder)
            descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_FOLDER:
            return None
        raise
    if os.fstat(descriptor).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(descriptor, stat.S_IRWXU)
    return descriptor


def _lifted(folder: int, name: str, top: int, numbers: Iterator[int]) -> str:
    """Move a folder into the top one; gives the name that was free there."""
    os.chmod(name, stat.S_IRWXU, dir_fd=folder)  # a folder that moves is itself written to
    while True:
        new = f".lifted-{next(numbers)}"
        try:
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
        except (FileExistsError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        else:
            return new
