"""The stat manifest: the stamps of a tree, by which what changed is found without reading it.

That costs one ``stat`` a file instead of every byte. Comparing contents is left to ``diff`` and
``generation``.
"""

# ruff: noqa: PTH101 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import errno
import os
import stat
import struct
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from agentcanvas.errors import Unpatchable
from agentcanvas.sandbox.paths import INTERNAL_ANYWHERE, INTERNAL_AT_TOP, shown
from agentcanvas.sandbox.stamp import Stamp, stamp_of

Manifest: TypeAlias = dict[bytes, Stamp]

_PACKED = struct.Struct("<IqqqQ")
_PAUSE_S = 0.001
_COARSEST_CLOCK_NS = 3_000_000_000


def is_patchable(mode: int) -> bool:
    """Tell files and symbolic links from pipes, sockets and devices."""
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def scan(root: Path, without: Collection[bytes] = ()) -> Manifest:
    """Stamp all files of a tree of ours; folders have no stamp, the internal ones are left out.

    So is everything at or below a path of ``without``.
    """
    found: Manifest = {}
    base = os.fsencode(root) + b"/"
    waiting = [b""]
    left_out = INTERNAL_AT_TOP
    while waiting:
        folder = waiting.pop()
        for entry in entries_of(base + folder):
            name = os.fsencode(entry.name)
            if name in left_out or (without and folder + name in without):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(folder + name + b"/")
            else:
                found[folder + name] = stamp_of(entry.stat(follow_symlinks=False))
        left_out = INTERNAL_ANYWHERE
    return found


def entries_of(folder: bytes) -> Iterator[os.DirEntry[str]]:
    """List a folder of a tree of ours, even one that was closed to its owner.

    By descriptor: no link is followed, and the kernel looks names up here instead of from the root.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(folder, flags)
    except PermissionError:
        os.chmod(folder, 0o700, follow_symlinks=False)
        descriptor = os.open(folder, flags)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise Unpatchable(
            f"'{shown(folder)[-60:]}' lies deeper than a path can say; remove the folders there"
        ) from error
    try:
        with os.scandir(descriptor) as entries:
            yield from entries
    finally:
        os.close(descriptor)


def packed(manifest: Manifest, paths: Iterable[bytes]) -> bytes:
    """Write the stamps of some paths so that twenty thousand are read back in milliseconds."""
    return b"".join(_PACKED.pack(*manifest[path]) for path in paths)


def unpacked(data: bytes, paths: Iterable[bytes]) -> Manifest:
    """Read stamps back; ValueError when they are not as many as the paths."""
    try:
        return dict(zip(paths, _PACKED.iter_unpack(data), strict=True))
    except struct.error as error:
        raise ValueError(str(error)) from error


def differing(before: Manifest, now: Manifest) -> list[bytes]:
    """List the paths that were added, removed or touched, in order."""
    touched = [path for path, stamp in now.items() if before.get(path) != stamp]
    return sorted([*touched, *(before.keys() - now.keys())])


def newest_change(stamps: Iterable[Stamp]) -> int:
    """Give the latest ctime."""
    return max((stamp[3] for stamp in stamps), default=0)


def settle(folder: Path, newest: int) -> bool:
    """Wait until the disk's clock has moved past ``newest``, a few milliseconds at most.

    Timestamps move in ticks; an edit within the tick of the stamp would leave the stamp as it is.
    Tells whether a folder of this disk shows by its own stamp that a name came or went: some
    network disks do not.
    """
    descriptor, name = tempfile.mkstemp(prefix=".settle-", dir=folder)
    pause = threading.Event()
    try:
        while True:
            os.utime(descriptor)
            now = os.fstat(descriptor).st_ctime_ns
            ahead = newest - now
            if ahead < 0 or ahead > _COARSEST_CLOCK_NS:  # a clock set back is not waited for
                break
            pause.wait(_PAUSE_S)
    finally:
        os.close(descriptor)
        Path(name).unlink()
    return newest < now <= folder.stat().st_ctime_ns
