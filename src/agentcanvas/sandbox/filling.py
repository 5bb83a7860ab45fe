"""Filling the folders of a sandbox from a generation, anew or at the cost of what differs (D15).

A tree that was filled before is kept file by file: where its file is untouched since, and came from
a file of the workspace that has not changed either. A folder that is untouched since is not listed
again. Whose tree it is, is the caller's matter.
"""

# ruff: noqa: PTH101, PTH108 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence, Set
from itertools import chain
from pathlib import Path

from agentcanvas.sandbox.folders import folder_of, folders_of, stamp_folders, untouched
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.manifest import (
    Manifest,
    Stamp,
    entries_of,
    newest_change,
    scan,
    settle,
    stamp_of,
)
from agentcanvas.sandbox.trees import (
    copy_file,
    frozen_mode,
    in_parallel,
    link_or_copy,
    make_folders,
    remove_path,
    standing_in,
    working_mode,
)

_OWNER = 0o700


def fill_work(base: Generation, paths: Sequence[bytes], target: Path) -> Manifest:
    """Copy files of a generation into a folder, writable; gives the stamps of the copies."""
    seen = base.seen
    make_folders(os.fsencode(target), paths)
    with standing_in(os.fsencode(base.tree)) as tree, standing_in(os.fsencode(target)) as work:

        def copy(path: bytes) -> Stamp:
            like = seen[path]
            mode = working_mode(like[0])
            return copy_file(path, path, like, mode, source_in=tree, target_in=work)

        return dict(zip(paths, in_parallel(copy, paths), strict=True))


def link_input(base: Generation, paths: Sequence[bytes], target: Path) -> None:
    """Give files of a generation a second name in a folder."""
    make_folders(os.fsencode(target), paths)
    with standing_in(os.fsencode(base.tree)) as tree, standing_in(os.fsencode(target)) as top:
        in_parallel(lambda path: link_or_copy(path, path, source_in=tree, target_in=top), paths)


def refill_work(
    base: Generation,
    wanted: Set[bytes],
    target: Path,
    *,
    filled: Manifest,
    folders: Manifest,
    came_from: Manifest,
) -> Manifest:
    """Bring a work/ to a generation; gives the stamps of all that is in it now.

    ``filled`` and ``folders`` are the stamps that its files and folders had when it was filled,
    ``came_from`` those that the files of the workspace had when they were frozen for it.
    """
    seen = base.seen
    kept: Manifest = {}
    other: list[bytes] = []
    known = _known_folders(target, folders, filled.keys(), wanted)
    looked_at = chain(
        _sorted_out(target, wanted, known, keep_git=True), _stamps_in(target, known, filled)
    )
    for path, stamp in looked_at:
        if filled.get(path) == stamp and came_from.get(path) == seen[path]:
            kept[path] = stamp
        else:
            other.append(path)
    work = os.fsencode(target) + b"/"
    for path in other:
        os.unlink(work + path)
    return kept | fill_work(base, sorted(wanted - kept.keys()), target)


def sound_folders(base: Generation, target: Path) -> Manifest:
    """Stamp the folders of an input/ in which every file is as it was frozen, and no other is."""
    seen = base.seen
    stamps = scan(target)
    folders = stamp_folders(target, seen)
    unsound = {p for p, stamp in stamps.items() if p not in seen or not _is_frozen(stamp, seen[p])}
    for path in unsound | (seen.keys() - stamps.keys()):
        folders.pop(folder_of(path), None)
    newest = max(newest_change(stamps.values()), newest_change(folders.values()))
    return folders if settle(target.parent, newest) else {}


def refill_input(
    base: Generation, wanted: Set[bytes], target: Path, *, folders: Manifest, came_from: Manifest
) -> None:
    """Bring an input/ to a generation; ``folders`` is what ``sound_folders`` said of it before."""
    seen = base.seen
    kept: set[bytes] = set()
    other: list[bytes] = []
    known = _known_folders(target, folders, came_from.keys(), wanted)
    for path, stamp in _sorted_out(target, wanted, known, keep_git=False):
        before = came_from.get(path)
        if before and before == seen[path] and _is_frozen(stamp, before):
            kept.add(path)
        else:
            other.append(path)
    for path, before in came_from.items():
        if path.rpartition(b"/")[0] in known:  # all there, and wanted
            if before == seen[path]:
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


def _known_folders(
    root: Path, folders: Manifest, held: Set[bytes], wanted: Set[bytes]
) -> Set[bytes]:
    """Tell which folders hold just the names that they held, and may keep all of them."""
    to_go = folders_of(held - wanted)
    return untouched(root, folders) - to_go


def _stamps_in(root: Path, folders: Set[bytes], held: Manifest) -> Iterator[tuple[bytes, Stamp]]:
    """Stamp what some folders hold; the names are known, and no link is among the folders."""
    with standing_in(os.fsencode(root)) as top:
        for path in held:  # tens of thousands: no call that could be spared
            if path.rpartition(b"/")[0] in folders:
                yield path, stamp_of(os.lstat(path, dir_fd=top))


def _sorted_out(
    root: Path, wanted: Set[bytes], known: Set[bytes], *, keep_git: bool
) -> Iterator[tuple[bytes, Stamp]]:
    """Remove everything but the wanted files and the private git; gives what is left, stamped.

    What is in the ``known`` folders stays, and is not given.
    """
    base = os.fsencode(root) + b"/"
    folders = folders_of(wanted)
    below_known = (path for path in folders - known if folder_of(path) in known)
    waiting = [b"", *(path + b"/" for path in below_known if os.path.lexists(base + path))]
    while waiting:
        folder = waiting.pop()
        _open_up(base + folder)
        unwanted = []
        for entry in entries_of(base + folder):
            path = folder + os.fsencode(entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and path in folders:
                if path not in known:
                    waiting.append(path + b"/")
            elif path in wanted and not is_folder:
                yield path, stamp_of(entry.stat(follow_symlinks=False))
            elif path != b".git" or not keep_git:
                unwanted.append(path)
        for path in unwanted:
            remove_path(Path(os.fsdecode(base + path)))


def _open_up(folder: bytes) -> None:
    """Give us back the rights to a folder that an agent has taken away, or put a bit on."""
    mode = stat.S_IMODE(os.lstat(folder).st_mode)
    if mode & _OWNER != _OWNER or mode & ~0o777:
        os.chmod(folder, (mode & 0o777) | _OWNER)
