"""The event loop's side of the writer: how callers queue, wait for room and are told.

Writes of one turn of the loop go over together, and the answers of one batch come back together:
the loop and the writer wake each other once a batch, not once a write.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from agentcanvas.clock import Clock
from agentcanvas.errors import StoreClosed
from agentcanvas.store.events import NewEvent
from agentcanvas.store.limits import StoreLimits
from agentcanvas.store.transaction import Transaction
from agentcanvas.store.writer import Appends, Step, Unit, Writer

T = TypeVar("T")


class Intake:
    """Takes writes on one event loop, as many as there is room for.

    Whoever is cancelled while waiting for room has written nothing; later, the write is on its way
    and will be committed, whether or not anybody waits for it.
    """

    def __init__(self, writer: Writer, clock: Clock, limits: StoreLimits) -> None:
        self.writes = 0
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self._clock = clock
        self._limits = limits
        self._bytes = 0
        self._steps: list[Step] = []
        self._appends: Appends | None = None
        self._queue: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._drained: asyncio.Future[None] | None = None

    def enter_at_once(self) -> bool:
        """Come in if there is room and nobody waits for it; else ``enter``."""
        if self._queue or self._closed or not self._has_room():
            return False
        self._count_one()
        return True

    async def enter(self) -> None:
        """Wait for room, first come first served."""
        self._refuse_if_closed()
        ticket: asyncio.Future[None] = self._loop.create_future()
        self._queue.append(ticket)
        try:
            await ticket
            self._refuse_if_closed()
        except BaseException:
            if ticket.done() and not ticket.cancelled() and ticket.exception() is None:
                self._leave(1)  # was let in, and in the same turn cancelled or refused
            raise

    def append(self, event: NewEvent) -> asyncio.Future[int]:
        """Queue one event, after coming in; the future is done once it is on disk."""
        appends = self._appends
        if appends is None or len(appends.events) >= self._limits.max_batch:
            self._appends = appends = Appends()
            self._add(appends)
        promise: asyncio.Future[int] = self._loop.create_future()
        appends.events.append(event)
        appends.promises.append(promise)
        size = len(event[2])
        appends.size += size
        self._bytes += size
        return promise

    def transact(self, work: Callable[[Transaction], T]) -> asyncio.Future[T]:
        """Queue a unit of work, after coming in; the future is done once it is on disk."""
        promise: asyncio.Future[T] = self._loop.create_future()
        self._appends = None  # what comes later must not overtake this unit
        self._add(Unit(work, promise, in_loop=True))
        return promise

    def hand_over(self) -> None:
        """Give the writer what was queued in this turn, and wait for no more of it."""
        self._hand_over()

    def settle(self, steps: Sequence[Step]) -> None:
        """Tell the callers of a committed or refused batch, in the order they came."""
        for step in steps:
            step.settle()
            self._bytes -= step.size
            self._leave(step.writes)

    async def close(self) -> None:
        """Refuse what has not been queued yet; return when all that was is settled."""
        self._closed = True
        while self._queue:
            ticket = self._queue.popleft()
            if not ticket.done():
                ticket.set_exception(_refusal())
        if self.writes:
            self._drained = self._loop.create_future()
            await self._drained

    def _add(self, step: Step) -> None:
        if not self._steps:
            self._loop.call_soon(self._hand_over)
        self._steps.append(step)

    def _hand_over(self) -> None:
        steps, self._steps, self._appends = self._steps, [], None
        for step in steps:
            self._writer.put(step)

    def _has_room(self) -> bool:
        limits = self._limits
        return self.writes < limits.max_waiting and self._bytes < limits.max_waiting_bytes

    def _count_one(self) -> None:
        if not self.writes:
            self._clock.hold()
        self.writes += 1

    def _leave(self, writes: int) -> None:
        self.writes -= writes
        if not self.writes:
            self._clock.release()
            if self._drained is not None and not self._drained.done():
                self._drained.set_result(None)
        while self._queue and self._has_room():
            ticket = self._queue.popleft()
            if not ticket.done():
                self._count_one()
                ticket.set_result(None)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise _refusal()


def _refusal() -> StoreClosed:
    return StoreClosed("The store was closed before this could be written; open it again.")
