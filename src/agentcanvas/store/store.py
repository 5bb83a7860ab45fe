"""The store as callers see it: one SQLite file, written by one thread, acknowledged when on disk.

It knows events and offers transactions; which tables there are is left to ``migrations``, and what
they mean to the packages that own them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.to_thread
import msgspec

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import StoreClosed, StoreError
from agentcanvas.store import backups, retention
from agentcanvas.store.events import Event, NewEvent, checked
from agentcanvas.store.intake import Intake
from agentcanvas.store.limits import StoreLimits
from agentcanvas.store.migrations import MIGRATIONS, Migration
from agentcanvas.store.opening import Database
from agentcanvas.store.projections import Projection
from agentcanvas.store.projector import Projector
from agentcanvas.store.readers import FileReaders, Readers, WriterReads
from agentcanvas.store.retention import Retention
from agentcanvas.store.transaction import Snapshot, Transaction
from agentcanvas.store.writer import Step, Writer

T = TypeVar("T")

_DEFAULTS = StoreLimits()


class StoreStatistics(msgspec.Struct, frozen=True):
    """What a store has done since it was opened, and how it stands."""

    head: int
    writes: int
    commits: int
    waiting: int
    behind: dict[str, str]
    """Projections whose files are behind, and why."""


class Store:
    """One event loop's store: ``async with await Store.open(path) as store``.

    A write returns when it is on disk. Writes of one caller keep their order. A caller who is
    cancelled does not take back what is queued already.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        limits: StoreLimits,
        projections: Sequence[Projection],
        folder: Path | None,
        alone: bool = False,
    ) -> None:
        """Start to work; ``open`` and ``in_memory`` are the doors."""
        self._projector = Projector(projections, folder, self) if projections and folder else None
        self._database = database
        self._clock = clock
        self._max_body = limits.max_body
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(
            database.connection,
            where=database.where,
            clock=clock,
            max_batch=limits.max_batch,
            max_body=limits.max_body,
            settled=self._tell_the_loop,
        )
        self._intake = Intake(self._writer, clock, limits)
        self._readers: Readers = (
            FileReaders(database.path, most=limits.readers)
            if database.path and not alone
            else WriterReads(self._writer)
        )
        self._head = self._told_head = self._writer.head
        self._moved = asyncio.Event()
        self._closed: asyncio.Event | None = None
        self._writer.start()
        if self._projector:
            self._projector.start(self._head)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock | None = None,
        limits: StoreLimits = _DEFAULTS,
        projections: Sequence[Projection] = (),
        folder: Path | None = None,
        migrations: Sequence[Migration] = MIGRATIONS,
        alone: bool = False,
    ) -> Self:
        """Open a file, made if it does not exist, upgraded if it is older; it is ours until closed.

        The files of ``projections`` are kept in ``folder``, beside the store unless named. With
        ``alone`` nobody can read it meanwhile, and it can be opened, and read, on a full disk.
        """
        names = [projection.name for projection in projections]
        opening = partial(Database, path, limits, migrations, names, alone=alone)
        database = await anyio.to_thread.run_sync(opening)
        return cls(
            database,
            clock=clock or SystemClock(),
            limits=limits,
            projections=projections,
            folder=folder or path.parent,
            alone=alone,
        )

    @classmethod
    async def in_memory(
        cls,
        *,
        clock: Clock | None = None,
        limits: StoreLimits = _DEFAULTS,
        projections: Sequence[Projection] = (),
        folder: Path | None = None,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> Self:
        """Make the twin for tests: the same code on a database that is gone when closed."""
        assert folder or not projections, "projections need a folder for their files"
        names = [projection.name for projection in projections]
        return cls(
            Database(None, limits, migrations, names),
            clock=clock or SystemClock(),
            limits=limits,
            projections=projections,
            folder=folder,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Commit what is queued, complete the files, and let go; further calls wait for the first.

        Writes that still wait for room are refused with ``StoreClosed``.
        """
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = asyncio.Event()
        with anyio.CancelScope(shield=True):
            try:
                await self._intake.close()
                await anyio.to_thread.run_sync(self._shut)
            finally:
                self._moved.set()
                self._closed.set()

    def _shut(self) -> None:
        if self._projector:
            self._projector.stop()
        self._readers.close()
        self._writer.stop()
        self._database.close()

    # -- writing ---------------------------------------------------------------------------------

    async def append(self, stream: str, kind: str, body: bytes) -> int:
        """Append an event with a JSON body; return its number."""
        event = checked(stream, kind, body, max_body=self._max_body)
        if not self._intake.enter_at_once():
            await self._intake.enter()
        return await self._intake.append(event)

    async def append_many(self, new: Sequence[NewEvent]) -> range:
        """Append events that stand together, all or none; return their numbers."""
        fit = [checked(*event, max_body=self._max_body) for event in new]
        return await self.transact(lambda transaction: transaction.append_checked(fit))

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in the writer's thread, all or nothing; return its result.

        Others wait meanwhile, so it should do nothing but read and write the store. What it raises
        takes back what it did and is raised here.
        """
        return await (await self.transact_soon(work))

    async def transact_soon(
        self, work: Callable[[Transaction], T], *, at_once: bool = False
    ) -> asyncio.Future[T]:
        """Do the same, but return as soon as it is queued; the future is done once it is on disk.

        What is queued in the same turn of the loop shares its commit, so a caller who goes on
        without waiting may save one; with ``at_once`` the turn is over for whatever is queued.
        Whoever takes the future has to look at it in the end.
        """
        if not self._intake.enter_at_once():
            await self._intake.enter()
        promise = self._intake.transact(work)
        if at_once:
            self._intake.hand_over()
        return promise

    def submit(self, work: Callable[[Transaction], T]) -> Future[T]:
        """Do the same for a thread outside the event loop; safe from any."""
        return self._writer.submit(work)

    async def retain(self, *rules: Retention) -> int:
        """Forget the events that the rules do not keep; return how many that were."""
        with suppress(StoreError):  # files that are behind keep their events, and only those
            await self.flush_projections()
        now_ms = self._clock.now_ms()
        forgotten = 0
        for cut in await self.read(lambda look: retention.cuts(look, rules, now_ms)):
            while step := await self.transact(partial(retention.forget_some, cut=cut)):
                forgotten += step
        while forgotten and await self.transact(retention.give_back_some):
            pass
        return forgotten

    # -- reading ---------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The number of the newest event that was acknowledged."""
        return self._head

    async def read(self, look: Callable[[Snapshot], T]) -> T:
        """Run ``look`` on one committed state, in a thread; return its result."""
        self._clock.hold()
        try:
            return await self._readers.read(look)
        finally:
            self._clock.release()

    def read_blocking(self, look: Callable[[Snapshot], T]) -> T:
        """Do the same for a thread that may wait; never on the event loop."""
        return self._readers.read_blocking(look)

    async def events(
        self, *, after: int = 0, stream: str | None = None, limit: int = 1000
    ) -> list[Event]:
        """Return up to ``limit`` events later than ``after``, in order."""
        return await self.read(lambda look: look.events(after=after, stream=stream, limit=limit))

    async def wait_beyond(self, seq: int) -> int:
        """Return the newest number as soon as it is greater than ``seq``."""
        while self._head <= seq:
            if self._closed is not None:
                raise StoreClosed("The store is closed; nothing more will happen in it.")
            await self._moved.wait()
        return self._head

    def statistics(self) -> StoreStatistics:
        """Tell what has been done, and how it stands."""
        return StoreStatistics(
            head=self._head,
            writes=self._writer.writes,
            commits=self._writer.commits,
            waiting=self._intake.writes,
            behind=self._projector.complaints if self._projector else {},
        )

    # -- keeping ---------------------------------------------------------------------------------

    async def flush_projections(self) -> None:
        """Return when all that is committed is in the files of the projections, and on disk."""
        if self._projector:
            self._clock.hold()
            try:
                await asyncio.wrap_future(self._projector.flush())
            finally:
                self._clock.release()

    async def check(self) -> list[str]:
        """Examine every page and row; return what is wrong, in sentences."""
        return await self._in_thread(backups.check, self._file())

    async def backup(self, to: Path) -> None:
        """Copy what is committed now to the file ``to``, while others go on."""
        await self._in_thread(backups.backup, self._file(), to)

    def _file(self) -> Path:
        if self._database.path is None:
            raise StoreError("A store in memory has no file to examine or copy.")
        return self._database.path

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        self._clock.hold()
        try:
            return await anyio.to_thread.run_sync(work, *arguments)
        finally:
            self._clock.release()

    # -- after each batch ------------------------------------------------------------------------

    def _tell_the_loop(self, head: int, steps: Sequence[Step]) -> None:
        """Pass a batch on, from the writer's thread; batches arrive in the order of commits."""
        if self._projector and head > self._told_head:
            self._projector.follow(head)
        if steps or head > self._told_head:
            self._told_head = head
            with suppress(RuntimeError):  # the loop was closed without closing the store
                self._loop.call_soon_threadsafe(self._settle, head, steps)

    def _settle(self, head: int, steps: Sequence[Step]) -> None:
        if head > self._head:
            self._head = head
            self._moved.set()
            self._moved = asyncio.Event()
        self._intake.settle(steps)
