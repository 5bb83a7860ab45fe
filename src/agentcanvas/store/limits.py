"""How much the store takes at once. How much it keeps is ``retention``'s matter."""

from __future__ import annotations

import msgspec

_MIB = 1024 * 1024


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on memory, on the file and on the time that opening takes."""

    max_batch: int = 1024
    """Writes in one commit; a caller's ``append_many`` is never split."""

    max_waiting: int = 8192
    max_waiting_bytes: int = 64 * _MIB
    """Writes that wait for their commit; further callers wait for room."""

    max_body: int = 2 * _MIB
    """Bytes of one event: a message (L1) and what is said about it. What is larger is a blob."""

    max_bytes: int | None = None
    """Size of the file; ``None`` is as much as the disk holds."""

    examined_bytes: int = 256 * _MIB
    """Up to this size the structure of a file is examined at every open, beyond it by ``check``."""

    readers: int = 4
