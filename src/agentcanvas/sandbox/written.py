"""What was written below some folders since a moment, told by ctime, which nobody can set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISDIR

import msgspec

CLOCK_OF_FILES_LAGS_S = 0.02

_BLOCK = 512  # of st_blocks, whatever the disk has


class Written(msgspec.Struct):
    """What was found; ``closed`` when a folder could not be looked into."""

    size: int = 0
    files: int = 0
    closed: bool = False


def written(folders: Sequence[Path], since: float) -> Written:
    """Add up the files below that were written since, as they are on disk; links are no files."""
    found = Written()
    waiting: list[str] = [str(folder) for folder in folders]
    linked: set[tuple[int, int]] = set()
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError as error:
            found.closed |= isinstance(error, PermissionError)
            continue
        for entry in entries:
            try:
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone meanwhile
            name = (stat.st_dev, stat.st_ino)
            if S_ISDIR(stat.st_mode):
                waiting.append(entry.path)
            elif stat.st_nlink > 1:
                if name in linked:
                    continue
                linked.add(name)
            if stat.st_ctime >= since:
                found.size += stat.st_blocks * _BLOCK
                found.files += 1
    return found
