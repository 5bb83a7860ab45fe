"""The user's index, held by git's own lock while a commit lands (D16).

``index.lock`` is a second name of a private file, which no other git can have made: so after a
crash our lock is told from anybody else's by its inode, and only ours is taken away.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import LandingRefused
from agentcanvas.proposals.journal import checked_name, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

_PRIVATE: Final = "agentcanvas-index-"


class IndexLock:
    """The lock of one transaction on one index."""

    def __init__(self, git_dir: Path, transaction: str) -> None:
        self._folder = git_dir
        self.index = git_dir / "index"
        self._lock = git_dir / "index.lock"
        self._private = git_dir / (_PRIVATE + checked_name(transaction))

    @property
    def held(self) -> bool:
        """Whether the lock is there and ours."""
        try:
            return os.path.samestat(self._lock.lstat(), self._private.lstat())
        except FileNotFoundError:
            return False

    def take(self) -> None:
        """Hold the index, or say that somebody else does; nothing is done then."""
        self.release()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(self._private, flags, 0o666))
        try:
            os.link(self._private, self._lock)
        except FileExistsError:
            self._private.unlink()
            raise LandingRefused(
                f"git is at work in this repository, for {self._lock} exists. Nothing was landed; "
                "try again when it is done, or remove the file if no git is running."
            ) from None
        except OSError:
            self._private.unlink()
            raise

    def read(self) -> bytes:
        """The index as it is; empty if there is none yet."""
        try:
            return self.index.read_bytes()
        except FileNotFoundError:
            return b""

    def fill(self, data: bytes) -> None:
        """Write the index that is to come into the lock."""
        with self._private.open("r+b") as file:
            file.truncate(0)
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(self.index.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def install(self) -> None:
        """Make it the index; git's own way, one rename."""
        self._lock.replace(self.index)
        sync_folder(self._folder)
        self._private.unlink(missing_ok=True)

    def release(self) -> None:
        """Let go of the lock, if it is ours."""
        if self.held:
            self._lock.unlink()
        self._private.unlink(missing_ok=True)
