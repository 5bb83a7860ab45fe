"""Where a benchmark of the disk stands: on a fresh disk in memory for every case, if it may.

What a file system did before changes what it does next: ext4 is slow to give out inodes that were
just freed, and a real disk serves others, too. As root with loop devices each case therefore gets
a new ext4 disk in memory, and XFS and btrfs are tried for what copies take that share their
blocks. Elsewhere a case gets a new folder, no tree is removed before the end, and the reason is
printed. ``BENCH_DISK=/some/folder`` has everything measured there instead.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from agentcanvas.sandbox.trees import shares_blocks
from tools.loop_disks import NoDisk, fresh_disk

CHOSEN = "BENCH_DISK"
MEGABYTES = 4096
"""What a disk may grow to; fifteen trees of 20,000 small files take half of it."""


@dataclass(frozen=True)
class Ground:
    """What gives each case an empty folder, and its name for the tables."""

    name: str
    fresh: Callable[[], AbstractContextManager[Path]]


@contextmanager
def ground_in(folder: Path) -> Iterator[Ground]:
    """Give fresh ext4 disks, or new folders on the disk that was chosen, else in ``folder``."""
    chosen = os.environ.get(CHOSEN)
    if chosen:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=chosen) as there:
            yield folders_in(Path(there), chosen)
        return
    try:
        ground = fresh_ground("ext4")
    except NoDisk as reason:
        print(f"no fresh disks, because {reason}; measured in {folder}")
        ground = folders_in(folder, "the disk of the temporary folder")
    yield ground


def sharing_grounds() -> Iterator[Ground]:
    """Give a ground for each disk that shares blocks; prints why there is none."""
    chosen = os.environ.get(CHOSEN)
    if chosen:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=chosen) as there:
            if shares_blocks(Path(there)):
                yield folders_in(Path(there), chosen)
            else:
                print(f"skipped: disk use with shared blocks, because {chosen} has none")
        return
    for kind in ("xfs", "btrfs"):
        try:
            ground = fresh_ground(kind)
        except NoDisk as reason:
            print(
                f"skipped: disk use on {kind}, because {reason}; or name a folder on such a disk:"
            )
            print(f"{CHOSEN}=/mnt/{kind} make bench ARGS=sandbox")
        else:
            yield ground


def fresh_ground(kind: str) -> Ground:
    """Give fresh disks, once one could be had; else NoDisk."""
    with fresh_disk(kind, MEGABYTES):
        return Ground(f"a fresh {kind} in memory", partial(fresh_disk, kind, MEGABYTES))


def folders_in(folder: Path, name: str) -> Ground:
    """Give new folders that stay until ``folder`` goes."""
    numbers = count()

    @contextmanager
    def fresh() -> Iterator[Path]:
        place = folder / f"case{next(numbers)}"
        place.mkdir()
        yield place

    return Ground(name, fresh)
