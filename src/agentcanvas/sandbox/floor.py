"""The room that a process has to leave on the disks it writes to.

What it does has to be recorded on the same disk, and others live there too. The floor is a part of
a small disk, and of what was free at first where that was little: nobody is ended for a disk that
was full before, or that somebody else fills.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from agentcanvas.sandbox.limits import Breach, Cause, Limits, shown_bytes
from agentcanvas.sandbox.written import CLOCK_OF_FILES_LAGS_S, written

_OF_A_DISK = 20
"""A twentieth of a small disk is enough."""

_OF_WHAT_WAS_FREE = 2
_NEAR = 2 * 1024**3
"""What could be written between two usual looks."""


class Floor:
    """Watches what some folders leave free on their disks, from now on."""

    def __init__(self, folders: Sequence[Path], limits: Limits) -> None:
        self._since = datetime.now(UTC).timestamp() - CLOCK_OF_FILES_LAGS_S
        on: dict[int, list[Path]] = {}
        for folder in folders if limits.free_bytes is not None else ():
            if folder.exists():
                on.setdefault(folder.stat().st_dev, []).append(folder)
        self._disks = [_Disk(each, limits.free_bytes or 0) for each in on.values()]

    @property
    def is_near(self) -> bool:
        """Whether it may be reached soon, so that it is worth looking more often."""
        return any(disk.free() < disk.floor + _NEAR for disk in self._disks)

    @property
    def is_low(self) -> bool:
        """Whether a disk has too little left, whoever took it."""
        return any(disk.free() < disk.floor for disk in self._disks)

    def look(self) -> Breach | None:
        """Say whether a disk has too little left because of what was written to these folders."""
        for disk in self._disks:
            free = disk.free()
            if free >= disk.floor:
                continue
            found = written(disk.folders, self._since)
            size = disk.free_at_first - free if found.closed else found.size
            if free + size >= disk.floor:
                sentence = (
                    f"it wrote {shown_bytes(size)} and left {shown_bytes(free)} of the disk free, "
                    f"and {shown_bytes(disk.floor)} are to stay free"
                )
                return Breach(Cause.DISK, sentence)
        return None


class _Disk:
    def __init__(self, folders: Sequence[Path], most: int) -> None:
        told = os.statvfs(folders[0])
        self.folders = folders
        self.free_at_first = told.f_bavail * told.f_frsize
        whole = told.f_blocks * told.f_frsize
        self.floor = min(most, whole // _OF_A_DISK, self.free_at_first // _OF_WHAT_WAS_FREE)

    def free(self) -> int:
        try:
            told = os.statvfs(self.folders[0])
        except OSError:
            return self.free_at_first  # taken away meanwhile
        return told.f_bavail * told.f_frsize
