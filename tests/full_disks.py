"""Small disks for tests to fill: ext4, in memory, with the blocks that are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.loop_disks import NoDisk, fresh_disk

MEGABYTES = 24


@contextmanager
def small_disk(block_bytes: int = 4096) -> Iterator[Path]:
    """Give an empty disk; needs root and mkfs.ext4."""
    try:
        # None of it is set aside for root, so that everybody sees it full at the same time.
        options = ("-b", str(block_bytes), "-m", "0")
        with fresh_disk("ext4", MEGABYTES, options=options) as top:
            yield top
    except NoDisk as reason:
        pytest.skip(f"no disk here: {reason}")


def fill(top: Path, *, but: int = 0) -> None:
    """Take all of a disk but so many bytes; ``make_room`` gives it back."""
    descriptor = os.open(top / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        step = 1 << 20
        while step:
            try:
                os.write(descriptor, bytes(step))
            except OSError:
                step //= 2
        os.fsync(descriptor)
        if but:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - but)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_room(top: Path) -> None:
    """Give back what ``fill`` took."""
    (top / "filler").unlink()


def free_bytes(top: Path) -> int:
    """What is left of a disk."""
    told = os.statvfs(top)
    return told.f_bavail * told.f_frsize
