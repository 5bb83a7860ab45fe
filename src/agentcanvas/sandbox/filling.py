"""Filling the folders of a sandbox from a generation, anew or at the cost of what differs (D15).

A tree that was filled before is kept file by file: where its file is untouched since, and came from
a file of the workspace that has not changed either. A folder that is untouched since is not listed
again. Whose tree it is, is the caller's matter.
"""

# ruff: noqa: PTH101 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Self

from agentcanvas.sandbox.copying import (
    Folders,
    copy,
    copy_and_link,
    frozen_mode,
    is_untouched,
    link,
)
from agentcanvas.sandbox.folders import folder_of, folders_of, stamp_folders, untouched
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.manifest import Manifest, entries_of, newest_change, scan, settle
from agentcanvas.sandbox.spreading import spread
from agentcanvas.sandbox.stamp import Stamp, stamp_of
from agentcanvas.sandbox.trees import make_folders, remove_path, standing_in

_USUAL_MODE = 0o755
_OF_THE_OWNER = ("user.", "system.posix_acl_")


@dataclass(frozen=True)
class Contents:
    """What was put into a work/: the stamps of its files, and of the folders that they need."""

    files: Manifest
    folders: Manifest


@dataclass(frozen=True)
class Renewal:
    """What trees that were filled from one generation have to become: a part of another.

    Of the wanted files ``same`` are what they were then; of those that were there ``stale`` are
    not. ``folders`` are all that the wanted ones need, ``mixed`` hold one that is not wanted.
    """

    base: Generation
    wanted: Set[bytes]
    same: Set[bytes]
    stale: Set[bytes]
    folders: Set[bytes]
    mixed: Set[bytes]

    @classmethod
    def of(
        cls, base: Generation, wanted: Set[bytes], held: Set[bytes], came_from: Manifest
    ) -> Self:
        """Compare; ``came_from`` are the stamps of the user's files, of which some are ``held``."""
        seen = base.seen
        same = {path for path, stamp in came_from.items() if seen.get(path) == stamp}
        same &= held & wanted
        return cls(base, wanted, same, held - same, folders_of(wanted), folders_of(held - wanted))

    def known(self, root: Path, folders: Manifest) -> Set[bytes]:
        """Tell which folders of a tree hold just the names that they held, all of them wanted."""
        return untouched(root, folders) - self.mixed


def fill_sandbox(base: Generation, paths: Sequence[bytes], work: Path, input_: Path) -> Contents:
    """Copy files of a generation into one folder, and give them a second name in another."""
    folders = folders_of(paths)
    for top in (work, input_):
        make_folders(top, folders)
    with standing_in(base.tree, work, input_) as tops:
        files = _spread_stamps(copy_and_link, tops, base, paths)
    return Contents(files, stamp_folders(work, folders))


def fill_work(base: Generation, paths: Sequence[bytes], target: Path) -> Manifest:
    """Copy files of a generation into a folder, writable; gives the stamps of the copies."""
    make_folders(target, folders_of(paths))
    with standing_in(base.tree, target) as tops:
        return _spread_stamps(copy, tops, base, paths)


def link_input(base: Generation, paths: Sequence[bytes], target: Path) -> None:
    """Give files of a generation a second name in a folder."""
    make_folders(target, folders_of(paths))
    with standing_in(base.tree, target) as tops:
        spread(link, tops, paths)


def _spread_stamps(
    work: Callable[[Folders, tuple[bytes, Stamp]], Stamp],
    tops: Folders,
    base: Generation,
    paths: Sequence[bytes],
) -> Manifest:
    seen = base.seen
    stamps = spread(work, tops, [(path, seen[path]) for path in paths])
    return dict(zip(paths, stamps, strict=True))


def refill_work(renewal: Renewal, target: Path, before: Contents) -> Contents:
    """Bring a work/ to a generation; ``before`` is what was put into it, whatever is there now."""
    known = renewal.known(target, before.folders)
    found = list(_sorted_out(renewal, target, known, keep_git=True))
    kept = {path: stamp for path, stamp in found if before.files.get(path) == stamp}
    # The names in those are known; and no link is on the way to them.
    there = [item for item in before.files.items() if item[0].rpartition(b"/")[0] in known]
    with standing_in(target) as tops:
        kept |= compress(there, spread(is_untouched, tops, there))
        for path in kept.keys() - renewal.same:
            del kept[path]
        other = [path for path, _ in chain(found, there) if path not in kept]
        for path in other:
            os.unlink(path, dir_fd=tops[0])
    missing = sorted(renewal.wanted - kept.keys())
    files = kept | fill_work(renewal.base, missing, target)
    touched = folders_of(missing) | folders_of(other)
    folders = {path: before.folders[path] for path in known - touched}
    return Contents(files, folders | stamp_folders(target, renewal.folders - folders.keys()))


def sound_folders(base: Generation, target: Path) -> Manifest:
    """Stamp the folders of an input/ in which every file is as it was frozen, and no other is."""
    seen = base.seen
    stamps = scan(target)
    folders = stamp_folders(target, folders_of(seen))
    unsound = {p for p, stamp in stamps.items() if p not in seen or not _is_frozen(stamp, seen[p])}
    for path in unsound | (seen.keys() - stamps.keys()):
        folders.pop(folder_of(path), None)
    newest = max(newest_change(stamps.values()), newest_change(folders.values()))
    return folders if settle(target.parent, newest) else {}


def refill_input(renewal: Renewal, target: Path, folders: Manifest) -> None:
    """Bring an input/ to a generation; ``folders`` is what ``sound_folders`` said of it before."""
    same, seen = renewal.same, renewal.base.seen
    known = renewal.known(target, folders)
    other = [path for path in renewal.stale if folder_of(path) in known]
    kept: set[bytes] = set()
    for path, stamp in _sorted_out(renewal, target, known, keep_git=False):
        if path in same and _is_frozen(stamp, seen[path]):
            kept.add(path)
        else:
            other.append(path)
    with standing_in(target) as (top,):
        for path in other:
            os.unlink(path, dir_fd=top)
    missing = renewal.wanted - kept
    missing -= {path for path in same if path.rpartition(b"/")[0] in known}
    link_input(renewal.base, sorted(missing), target)


def _is_frozen(stamp: Stamp, seen: Stamp) -> bool:
    if stat.S_ISLNK(seen[0]):
        return stat.S_ISLNK(stamp[0]) and stamp[1:3] == seen[1:3]
    frozen = stat.S_IFREG | frozen_mode(seen[0])
    return (stamp[0], stamp[1], stamp[2]) == (frozen, seen[1], seen[2])


def _sorted_out(
    renewal: Renewal, root: Path, known: Set[bytes], *, keep_git: bool
) -> Iterator[tuple[bytes, Stamp]]:
    """Remove everything but the wanted files and the private git; gives what is left, stamped.

    What is in the ``known`` folders stays, and is not given.
    """
    base = os.fsencode(root) + b"/"
    wanted, folders = renewal.wanted, renewal.folders
    below_known = (path for path in folders - known if folder_of(path) in known)
    waiting = [b"", *(path + b"/" for path in below_known if os.path.lexists(base + path))]
    while waiting:
        folder = waiting.pop()
        _as_made(base + folder)
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


def _as_made(folder: bytes) -> None:
    """Undo what an agent did to a folder itself: its rights, and what was noted on it."""
    if stat.S_IMODE(os.lstat(folder).st_mode) != _USUAL_MODE:
        os.chmod(folder, _USUAL_MODE)
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):  # a disk without attributes
        for name in os.listxattr(folder, follow_symlinks=False):
            if name.startswith(_OF_THE_OWNER):
                os.removexattr(folder, name, follow_symlinks=False)
