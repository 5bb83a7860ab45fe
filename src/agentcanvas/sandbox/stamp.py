"""A stamp: what a file looked like, cheap to take and hard to deceive.

It holds mode, size, mtime, **ctime** and inode. A program can set a file's size and mtime back
after an edit, but not its ctime, so that equal stamps mean equal content.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # a helper of `spreading` starts in less time than typing takes to import
    from typing import TypeAlias

# (mode, size, mtime_ns, ctime_ns, inode); a bare tuple, because trees have tens of thousands.
Stamp: TypeAlias = tuple[int, int, int, int, int]


def stamp_of(status: os.stat_result) -> Stamp:
    """Take a stamp from a ``stat``."""
    return (
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
    )
