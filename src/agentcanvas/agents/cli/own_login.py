"""A CLI's own login, in a home that belongs to AgentCanvas (D12).

Made once by ``agentcanvas login``; the user's own is never read. Refresh tokens rotate, so that
two copies would log each other out: whoever uses the login holds its lock, gets a copy into the
private HOME, and brings back what was renewed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import Struct

from agentcanvas.agents.cli.renewal import NoRenewal, renewed
from agentcanvas.agents.private import clear_private, place_private, read_private
from agentcanvas.errors import SandboxError

_LOCK = ".agentcanvas.lock"
_BEFORE = ".before"
_PAUSE_S = 0.2
_LARGEST = 4 * 1024 * 1024

Tell = Callable[[str], object]
"""Takes a sentence for whoever looks after the login."""


def _silent(_: str) -> None:
    pass


class Login(Struct, frozen=True):
    """Where a login lies, and which files below that home are it."""

    home: Path
    credentials: tuple[str, ...]

    @property
    def is_there(self) -> bool:
        """Whether somebody has logged in."""
        return any((self.home / name).exists() for name in self.credentials)

    @asynccontextmanager
    async def lent_to(self, home: Path, tell: Tell = _silent) -> AsyncIterator[None]:
        """Have the login in a private HOME until the block ends, and nowhere afterwards."""
        async with self.held():
            try:
                await anyio.to_thread.run_sync(self._lend, home)
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    said = await anyio.to_thread.run_sync(self._take_back, home)
                for sentence in said:
                    tell(sentence)

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

    def forget(self) -> None:
        """Remove it, and the one before it; for whoever holds its lock."""
        for name in self.credentials:
            for each in (name, f"{name}{_BEFORE}"):
                (self.home / each).unlink(missing_ok=True)

    def _lend(self, home: Path) -> None:
        for name, path in self._files():
            with path.open("rb") as own:
                place_private(home, name, own)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for name in self.credentials:
            path = self.home / name
            if path.is_file() and path.stat().st_size <= _LARGEST:
                yield name, path

    def _take_back(self, home: Path) -> list[str]:
        """Bring back what was renewed and leave nothing, whatever fails; gives what to say."""
        came = {name: read_private(home, name, _LARGEST) for name in self.credentials}
        said = []
        for name in self.credentials:
            try:
                clear_private(home, name)
            except SandboxError as error:
                said.append(f"{error}; the login may still be there.")
        try:
            said += self._keep(came)
        except NoRenewal as why:
            said.append(
                f"What lay in the place of the login was not taken back: {why}. The agent may have "
                f"put it there; if its CLI asks for a login now: agentcanvas login {self.home.name}"
            )
        except OSError as error:
            said.append(f"The login that was renewed could not be kept: {error}.")
        return said

    def _keep(self, came: dict[str, bytes | None]) -> list[str]:
        """Keep what was renewed, of all files or of none, and what was there before."""
        own = {name: (path, path.read_bytes()) for name, path in self._files()}
        fresh = {
            path: (kept, renewed(kept, content))
            for name, (path, kept) in own.items()
            if (content := came[name]) is not None
        }
        said = []
        for path, (kept, now) in fresh.items():
            if now != kept:
                before = path.with_name(f"{path.name}{_BEFORE}")
                _replace(before, kept)
                _replace(path, now)
                login = f"The login of {self.home.name} was renewed"
                said.append(f"{login}; the one before it is {before}.")
        return said


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
    fresh.replace(path)
