"""Mounts inside a workspace: no file is moved from one to another in one step, so none is begun.

Staging beside each target instead would leave files of ours in places where others look, and a
recovery that has to find them there.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.tree import ObstacleError, folders_above

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentcanvas.proposals.tree import Tree

_MOUNT: Final = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)


def on_another_mount(paths: Iterable[bytes], workspace: Tree, staging: Path) -> list[bytes]:
    """Those of the paths to which nothing can be moved from ``staging``, or the folder that is
    to hold it."""
    while not staging.exists():
        staging = staging.parent
    fd = os.open(staging, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ours = _disk(fd), _mount(fd)
    finally:
        os.close(fd)

    @cache
    def is_apart(folder: bytes) -> bool:
        try:
            with workspace.parent(folder) as fd:
                if fd is None:
                    return is_apart(_above(folder))
                return (_disk(fd), _mount(fd)) != ours
        except ObstacleError:  # a file that makes room for the folder
            return is_apart(_above(folder))

    return [
        path
        for path in paths
        if is_apart(path.rpartition(b"/")[0] + b"/" if b"/" in path else b"")
        or _is_mounted(path, workspace, ours[1])
    ]


def _above(folder: bytes) -> bytes:
    above = folders_above(folder.rstrip(b"/"))
    return above[-1] + b"/" if above else b""


def _is_mounted(path: bytes, workspace: Tree, ours: int | None) -> bool:
    """Whether the file itself is a mount, as containers have them."""
    if ours is None:
        return False
    try:
        with workspace.parent(path) as folder:
            if folder is None:
                return False
            name = path.rpartition(b"/")[2]
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except (ObstacleError, FileNotFoundError):
        return False
    try:
        return _mount(fd) != ours
    finally:
        os.close(fd)


def _disk(fd: int) -> int:
    """Parts of one mount can be disks of their own, such as the subvolumes of btrfs."""
    return os.fstat(fd).st_dev


def _mount(fd: int) -> int | None:
    """Which mount it is, for a disk can be mounted twice; only Linux says."""
    try:
        said = _MOUNT.search(Path(f"/proc/self/fdinfo/{fd}").read_text())
    except OSError:
        return None
    return int(said[1]) if said else None
