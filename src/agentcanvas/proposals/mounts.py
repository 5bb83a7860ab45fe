"""Mounts inside a workspace: no file is moved from one to another in one step, so none is begun.

Staging beside each target instead would leave files of ours in places where others look, and a
recovery that has to find them there.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.tree import ObstacleError

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
        ours = _Place.of(fd)
    finally:
        os.close(fd)
    places = _Places(workspace)
    return [
        path
        for path in paths
        # Who may not write there at all is told so by the disk.
        if not (there := places.of(path)).is_read_only
        and (there != ours or _is_mounted(path, workspace, ours.mount))
    ]


def refuse_read_only(paths: Iterable[bytes], workspace: Tree) -> None:
    """Raise what the disk would say; asked to move from another mount, it speaks of that only."""
    places = _Places(workspace)
    for path in paths:
        if places.of(path).is_read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), os.fsdecode(path))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a folder is: one mount can hold many disks, as with subvolumes of btrfs."""

    disk: int
    mount: int | None
    is_read_only: bool

    @classmethod
    def of(cls, fd: int) -> _Place:
        read_only = bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)
        return cls(os.fstat(fd).st_dev, _mount(fd), read_only)


class _Places:
    """The places of files in a workspace; each folder is asked once."""

    def __init__(self, workspace: Tree) -> None:
        self._workspace = workspace
        self._known: dict[bytes, _Place] = {}

    def of(self, path: bytes) -> _Place:
        """That of its folder, or of the one in which the folder will be made."""
        folder = path.rpartition(b"/")[0]
        if folder not in self._known:
            self._known[folder] = self._look(folder) or self.of(folder)
        return self._known[folder]

    def _look(self, folder: bytes) -> _Place | None:
        try:
            with self._workspace.parent(folder + b"/" if folder else b"") as fd:
                return None if fd is None else _Place.of(fd)
        except ObstacleError:
            return None  # a file that makes room for the folder


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


def _mount(fd: int) -> int | None:
    """Which mount it is, for a disk can be mounted twice; only Linux says."""
    try:
        said = _MOUNT.search(Path(f"/proc/self/fdinfo/{fd}").read_text())
    except OSError:
        return None
    return int(said[1]) if said else None
