"""One owner at a time, kept by the kernel: a lock file that no crash can leave locked (D1)."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from agentcanvas.errors import StoreBusy, StoreError
from agentcanvas.store import room


def lock_file(path: Path) -> Path:
    """Tell which file is locked while a store is open."""
    return path.with_name(path.name + ".lock")


class OwnerLock:
    """Held from ``acquire`` until ``release`` or the death of the process.

    The file stays: removing it would let a third process lock a new one while a second still waits
    for the old.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> Self:
        """Take the lock, or raise ``StoreBusy`` naming the process that has it."""
        assert self._descriptor is None, "already held"
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno in room.NO_ROOM:
                raise room.full(self.path) from error
            if error.errno == errno.EROFS:
                raise room.read_only(self.path) from error
            raise StoreError(f"{self.path} could not be opened: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder else "another process"
            raise StoreBusy(
                f"{self.path} is held by {who}; use the server that runs there, or stop it."
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        with suppress(OSError):  # a full disk: who has the lock is only not told then
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return self

    def release(self) -> None:
        """Let others have it; harmless when it is not held."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
