"""What is too large for a message: files by the hash of their content, with a quota (D35).

A blob is written once, whoever sends it, and is whole or not there. Each agent that has sent it
keeps it: a mark in the agent's own folder says so, and the quota counts what it marks. A blob that
nobody keeps is gone. Whoever knows the hash was told it, so there is no list of blobs to read.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from agentcanvas.errors import (
    AgentCanvasError,
    MessageTooLarge,
    NotFound,
    QuotaExceeded,
    ResourceError,
    ValidationError,
)
from agentcanvas.protocol.limits import BlobLimits

_HASH = re.compile(r"[0-9a-f]{64}")
_OWNERS = "owners"
_PART = 256 * 1024


class BlobReceipt(Struct, frozen=True):
    """A blob that is kept; ``free`` is how much more its sender may keep."""

    sha256: str
    size: int
    free: int


class Blobs:
    """The blobs of one hub, in a folder of their own."""

    def __init__(self, folder: Path, limits: BlobLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._used: dict[str, int] = {}
        """What each agent keeps, once it was counted."""

        self._coming: dict[str, int] = {}
        """What is on its way of each agent's, so that several at once share one quota."""

    async def put(self, agent: str, sha256: str, parts: AsyncIterator[bytes]) -> BlobReceipt:
        """Keep a blob for an agent, or raise why not; it is on disk on return."""
        _check_hash(sha256)
        used = await anyio.to_thread.run_sync(self._usage, agent)
        if await anyio.to_thread.run_sync(self._keeps, agent, sha256):
            async for _ in parts:
                pass
            return await anyio.to_thread.run_sync(self._receipt, agent, sha256)
        coming = _Coming(self._limits.size_bytes)
        try:
            descriptor, name = await anyio.to_thread.run_sync(self._begin)
            coming.open(descriptor, Path(name))
            async for part in parts:
                self._reserve(agent, used, len(part))
                coming.reserved += len(part)
                await anyio.to_thread.run_sync(coming.write, part)
            await anyio.to_thread.run_sync(coming.finish, sha256, self._path(sha256))
            await anyio.to_thread.run_sync(self._mark, agent, sha256)
            self._used[agent] = self._used.get(agent, 0) + coming.size
        except OSError as error:
            raise _unwritable(error) from error
        finally:
            self._release(agent, coming.reserved)
            await anyio.to_thread.run_sync(coming.drop)
        return await anyio.to_thread.run_sync(self._receipt, agent, sha256)

    async def find(self, sha256: str) -> Path:
        """The file that holds a blob."""
        _check_hash(sha256)
        path = self._path(sha256)
        if not await anyio.to_thread.run_sync(path.is_file):
            raise NotFound(f"There is no blob {sha256}; it was never sent, or nobody keeps it.")
        return path

    async def drop(self, agent: str, sha256: str) -> None:
        """Keep a blob no longer for an agent; what nobody keeps is gone."""
        _check_hash(sha256)
        await anyio.to_thread.run_sync(self._drop, agent, sha256)

    # -- files, beside the event loop ------------------------------------------------------------

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _marks(self, agent: str) -> Path:
        return self._folder / _OWNERS / hashlib.sha256(agent.encode()).hexdigest()

    def _begin(self) -> tuple[int, str]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.mkstemp(dir=self._folder, prefix="coming.")

    def _keeps(self, agent: str, sha256: str) -> bool:
        return (self._marks(agent) / sha256).exists() and self._path(sha256).exists()

    def _usage(self, agent: str) -> int:
        if agent not in self._used:
            sizes = 0
            with suppress(FileNotFoundError):
                for mark in self._marks(agent).iterdir():
                    with suppress(FileNotFoundError):
                        sizes += self._path(mark.name).stat().st_size
            self._used[agent] = sizes
        return self._used[agent]

    def _mark(self, agent: str, sha256: str) -> None:
        marks = self._marks(agent)
        marks.mkdir(parents=True, exist_ok=True, mode=0o700)
        (marks / sha256).touch()

    def _receipt(self, agent: str, sha256: str) -> BlobReceipt:
        size = self._path(sha256).stat().st_size
        return BlobReceipt(sha256, size, max(0, self._limits.quota_bytes - self._usage(agent)))

    def _drop(self, agent: str, sha256: str) -> None:
        mark, path = self._marks(agent) / sha256, self._path(sha256)
        if not mark.exists():
            raise NotFound(f"{agent} does not keep a blob {sha256}.")
        used, size = self._usage(agent), path.stat().st_size if path.exists() else 0
        mark.unlink(missing_ok=True)
        self._used[agent] = max(0, used - size)
        if not any((each / sha256).exists() for each in (self._folder / _OWNERS).iterdir()):
            path.unlink(missing_ok=True)

    # -- quota -----------------------------------------------------------------------------------

    def _reserve(self, agent: str, used: int, size: int) -> None:
        coming = self._coming.get(agent, 0) + size
        if max(used, self._used.get(agent, 0)) + coming > self._limits.quota_bytes:
            raise QuotaExceeded(
                f"{agent} may keep {self._limits.quota_bytes:,} bytes of blobs, and has {used:,} "
                "already; delete some that are no longer needed."
            )
        self._coming[agent] = coming

    def _release(self, agent: str, size: int) -> None:
        rest = self._coming.get(agent, 0) - size
        if rest > 0:
            self._coming[agent] = rest
        else:
            self._coming.pop(agent, None)


class _Coming:
    """A blob on its way in: a file beside the others, until it is whole and what it says it is."""

    def __init__(self, largest: int) -> None:
        self.size = 0
        self.reserved = 0
        self._largest = largest
        self._hash = hashlib.sha256()
        self._descriptor: int | None = None
        self._path: Path | None = None

    def open(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path

    def write(self, part: bytes) -> None:
        assert self._descriptor is not None
        self.size += len(part)
        if self.size > self._largest:
            raise MessageTooLarge(
                f"A blob has at most {self._largest:,} bytes; send it in several pieces."
            )
        self._hash.update(part)
        view = memoryview(part)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def finish(self, sha256: str, path: Path) -> None:
        assert self._descriptor is not None
        assert self._path is not None
        found = self._hash.hexdigest()
        if found != sha256:
            raise ValidationError(
                f"The content has the hash {found}, not {sha256}; it was damaged on the way, or "
                "put under a wrong address."
            )
        os.fsync(self._descriptor)
        path.parent.mkdir(exist_ok=True, mode=0o700)
        self._path.replace(path)
        self._path = None

    def drop(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _check_hash(sha256: str) -> None:
    if _HASH.fullmatch(sha256) is None:
        raise ValidationError(
            f"{sha256[:80]!r} is no SHA-256 hash; write its 64 hexadecimal digits in lower case."
        )


def _unwritable(error: OSError) -> AgentCanvasError:
    return ResourceError(f"The blob could not be kept: {error.strerror}. Nothing of it was.")
