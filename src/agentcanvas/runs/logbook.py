"""The events of one run on their way into the store, alone or together with mail (D2, D3)."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from typing import Any, TypeVar

from agentcanvas.clock import Clock
from agentcanvas.hub.broker import Record, Transacting, Unit
from agentcanvas.runs import events as e
from agentcanvas.store import Transaction
from agentcanvas.store.events import NewEvent

T = TypeVar("T")


class Logbook:
    """Writes for one run; what is queued is written in order, and a failure ends the run."""

    def __init__(self, broker: Transacting, run_id: str, stream: str, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._failure: BaseException | None = None
        self._last: Future[Any] | None = None
        self.last_written = clock.monotonic()
        """When the run last had something to tell."""
        self.run_id = run_id
        self.stream = stream

    def note(self, transaction: Transaction, *events: e.RunEvent) -> range:
        """Append events inside a transaction; return their numbers."""
        return transaction.append_many(self.rows(*events))

    def rows(self, *events: e.RunEvent) -> tuple[NewEvent, ...]:
        """Events as they are appended."""
        return tuple((self.stream, e.kind_of(event), e.to_json(event)) for event in events)

    async def write(self, *events: e.RunEvent) -> None:
        """Append events; they are on disk on return."""
        await self.record(Record(events=self.rows(*events)))

    async def transact(self, work: Callable[[Unit], T]) -> T:
        """Do something to mail and events at once; it is on disk on return."""
        self._raise_failure()
        self.last_written = self._clock.monotonic()
        return await self._broker.transact(work)

    def queue(self, work: Callable[[Unit], object]) -> None:
        """Do the same without waiting; ``flush`` waits."""
        self._raise_failure()
        self.last_written = self._clock.monotonic()
        self._await_later(self._broker.submit(work))

    async def record(self, record: Record) -> None:
        """Keep events and mail that are known beforehand; they are on disk on return."""
        self._raise_failure()
        self.last_written = self._clock.monotonic()
        await self._broker.record(record)

    def queue_record(self, record: Record) -> None:
        """Do the same without waiting; ``flush`` waits."""
        self._raise_failure()
        self.last_written = self._clock.monotonic()
        self._await_later(self._broker.record(record))

    async def flush(self) -> None:
        """Return when all that was queued is on disk."""
        if self._last is not None and not self._last.done():
            await self._last
        self._raise_failure()

    def _await_later(self, queued: Future[Any]) -> None:
        self._last = queued
        queued.add_done_callback(self._look_at)

    def _look_at(self, done: Future[Any]) -> None:
        if not done.cancelled() and self._failure is None:
            self._failure = done.exception()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
