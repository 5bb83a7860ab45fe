"""Stamps of folders: which folders of a tree still hold the names that they held.

A folder's own ctime moves when a name in it comes, goes or is replaced, so that a folder with the
same stamp needs no look at its entries - as long as all above it are folders still, because a link
in the place of one would lead elsewhere. What is in a file says only the file's own stamp. The top
of a tree is left out: it is renamed and worked in. Whether a disk keeps such stamps at all, says
``manifest.settle``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from agentcanvas.sandbox.manifest import Manifest
from agentcanvas.sandbox.stamp import stamp_of


def folder_of(path: bytes) -> bytes:
    """Give the folder that a path is in; an empty name is the top."""
    return path.rpartition(b"/")[0]


def folders_of(paths: Iterable[bytes]) -> set[bytes]:
    """Give every folder that paths need, but for the top."""
    found = {b""}
    for path in paths:
        folder = folder_of(path)
        while folder not in found:
            found.add(folder)
            folder = folder_of(folder)
    found.remove(b"")
    return found


def stamp_folders(root: Path, folders: Iterable[bytes]) -> Manifest:
    """Stamp folders; those that are not there have no stamp."""
    base = os.fsencode(root) + b"/"
    found: Manifest = {}
    for folder in folders:
        try:
            found[folder] = stamp_of(os.lstat(base + folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
    return found


def untouched(root: Path, stamps: Manifest) -> set[bytes]:
    """Tell which of the stamped folders are as they were; no link is on the way to them."""
    base = os.fsencode(root) + b"/"
    same: set[bytes] = set()
    real = {b""}
    for folder in sorted(stamps):  # so that a folder comes before what is in it
        if folder_of(folder) not in real:
            continue
        try:
            now = stamp_of(os.lstat(base + folder))
        except OSError:  # gone, or one above is closed to us
            continue
        if stat.S_ISDIR(now[0]):
            real.add(folder)
        if now == stamps[folder]:
            same.add(folder)
    return same
