"""Filling the folders of a sandbox from a generation, anew or at the cost of what differs (D15).

A tree that was filled before is kept file by file: where its file is untouched since, and came from
a file of the workspace that has not changed either. Whose tree it is, is the caller's matter.
"""

# ruff: noqa: PTH101, PTH108 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.manifest import Manifest, Stamp, entries_of, scan, stamp_of
from agentcanvas.sandbox.trees import (
    copy_file,
    frozen_mode,
    in_parallel,
    link_or_copy,
    make_folders,
    remove_path,
    working_mode,
)

_OWNER = 0o700


def fill_work(base: Generation, paths: Sequence[bytes], target: Path) -> Manifest:
    """Copy files of a generation into a folder, writable; gives the stamps of the copies."""
    source, folder = os.fsencode(base.tree) + b"/", os.fsencode(target) + b"/"
    seen = base.seen
    make_folders(folder[:-1], paths)
    stamps = in_parallel(
        lambda path: copy_file(
            source + path, folder + path, seen[path], working_mode(seen[path][0])
        ),
        paths,
    )
    return dict(zip(paths, stamps, strict=True))


def link_input(base: Generation, paths: Sequence[bytes], target: Path) -> None:
    """Give files of a generation a second name in a folder."""
    source, folder = os.fsencode(base.tree) + b"/", os.fsencode(target) + b"/"
    make_folders(folder[:-1], paths)
    in_parallel(lambda path: link_or_copy(source + path, folder + path), paths)


def refill_work(
    base: Generation, wanted: Set[bytes], target: Path, *, filled: Manifest, came_from: Manifest
) -> Manifest:
    """Bring a work/ to a generation; gives the stamps of all that is in it now.

    ``filled`` are the stamps it had when it was filled, ``came_from`` those that the files of the
    workspace had when they were frozen for it.
    """
    seen = base.seen
    kept: Manifest = {}
    other: list[bytes] = []
    for path, entry in _sorted_out(target, wanted, keep_git=True):
        stamp = stamp_of(entry.stat(follow_symlinks=False))
        if filled.get(path) == stamp and came_from.get(path) == seen[path]:
            kept[path] = stamp
        else:
            other.append(path)
    work = os.fsencode(target) + b"/"
    for path in other:
        os.unlink(work + path)
    return kept | fill_work(base, sorted(wanted - kept.keys()), target)


def sound_input(base: Generation, target: Path) -> dict[bytes, int]:
    """List the files of an input/ that are as they were frozen, with their inodes."""
    seen = base.seen
    stamps = scan(target)
    return {p: stamp[4] for p, stamp in stamps.items() if p in seen and _is_frozen(stamp, seen[p])}


def refill_input(
    base: Generation,
    wanted: Set[bytes],
    target: Path,
    *,
    sound: Mapping[bytes, int],
    came_from: Manifest,
) -> None:
    """Bring an input/ to a generation; ``sound`` is what ``sound_input`` said of it before.

    Frozen files are never written to, so that a file is known by its inode, which a folder tells
    without a look at the file.
    """
    seen = base.seen
    kept: set[bytes] = set()
    other: list[bytes] = []
    for path, entry in _sorted_out(target, wanted, keep_git=False):
        if sound.get(path) == entry.inode() and came_from.get(path) == seen[path]:
            kept.add(path)
        else:
            other.append(path)
    folder = os.fsencode(target) + b"/"
    for path in other:
        os.unlink(folder + path)
    link_input(base, sorted(wanted - kept), target)


def _is_frozen(stamp: Stamp, seen: Stamp) -> bool:
    if stat.S_ISLNK(seen[0]):
        return stat.S_ISLNK(stamp[0]) and stamp[1:3] == seen[1:3]
    frozen = stat.S_IFREG | frozen_mode(seen[0])
    return (stamp[0], stamp[1], stamp[2]) == (frozen, seen[1], seen[2])


def _sorted_out(
    root: Path, wanted: Set[bytes], *, keep_git: bool
) -> Iterator[tuple[bytes, os.DirEntry[str]]]:
    """Remove everything but the wanted files and the private git; gives what is left.

    An entry can be looked at until the next one is asked for.
    """
    base = os.fsencode(root) + b"/"
    folders = _folders_of(wanted)
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        unwanted = []
        for entry in entries_of(base + folder):
            path = folder + os.fsencode(entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and path in folders:
                _open_up(base + path, entry)
                waiting.append(path + b"/")
            elif path in wanted and not is_folder:
                yield path, entry
            elif path != b".git" or not keep_git:
                unwanted.append(path)
        for path in unwanted:
            remove_path(Path(os.fsdecode(base + path)))


def _open_up(folder: bytes, entry: os.DirEntry[str]) -> None:
    """Give us back the rights to a folder that an agent has taken away, or put a bit on."""
    mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
    if mode & _OWNER != _OWNER or mode & ~0o777:
        os.chmod(folder, (mode & 0o777) | _OWNER)


def _folders_of(paths: Set[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return found
