"""A CLI's own login, in a home that belongs to AgentCanvas (D12).

Made once by ``agentcanvas login``; the user's own is never read. Refresh tokens rotate, so that
two copies would log each other out: whoever uses the login holds its lock, gets a copy into the
private HOME, and brings back what was renewed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import Struct

from agentcanvas.agents.private import clear_private, read_private, write_private

_LOCK = ".agentcanvas.lock"
_PAUSE_S = 0.2
_LARGEST = 4 * 1024 * 1024


class Login(Struct, frozen=True):
    """Where a login lies, and which files below that home are it."""

    home: Path
    credentials: tuple[str, ...]

    @property
    def is_there(self) -> bool:
        """Whether somebody has logged in."""
        return any((self.home / name).exists() for name in self.credentials)

    @asynccontextmanager
    async def lent_to(self, home: Path) -> AsyncIterator[None]:
        """Have the login in a private HOME until the block ends, and nowhere afterwards."""
        async with self.held():
            await anyio.to_thread.run_sync(self._lend, home)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._take_back, home)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold its lock; others wait meanwhile."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await anyio.sleep(_PAUSE_S)
            yield
        finally:
            os.close(descriptor)

    def _lend(self, home: Path) -> None:
        write_private(home, dict(self._files(self.home)))

    def _files(self, home: Path) -> Iterable[tuple[str, str]]:
        for name in self.credentials:
            path = home / name
            if path.is_file() and path.stat().st_size <= _LARGEST:
                yield name, path.read_text("utf-8", "surrogateescape")

    def _take_back(self, home: Path) -> None:
        for name in self.credentials:
            renewed = read_private(home, name, _LARGEST)
            own = self.home / name
            if renewed is not None and own.exists() and renewed != own.read_bytes():
                _replace(own, renewed)
            clear_private(home, name)


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
    shutil.move(fresh, path)
