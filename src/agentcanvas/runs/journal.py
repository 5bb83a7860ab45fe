"""What a run has settled, step by step, so that it can be replayed (D4).

A step is one use of a Stage verb, named by its call path. Its result is recorded once, with the
hash of what was asked; a replay that asks something else under the same name has diverged.

Recording does not hold up the pattern: a record is queued, and whoever has the next result waits
for it then. What begins next is queued behind it, so no effect is on disk before the record of
the one that led to it, and both usually share a commit.
"""

from __future__ import annotations

import asyncio
import hashlib
from asyncio import Future
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import msgspec

from agentcanvas.errors import RunDiverged
from agentcanvas.store import Event, Store, Transaction
from agentcanvas.store.events import NewEvent

STEP = "step"

T = TypeVar("T")

Queue = Callable[[Callable[[Transaction], None]], Future[None]]
"""Queues a transaction behind all that was queued before."""

Keep = Callable[[NewEvent], Future[None]]
"""Queues an event in the same order."""


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """A settled step: its name, the hash of its request, and its result."""

    step: str
    request: str
    result: msgspec.Raw


class Journal:
    """The settled steps of one run, in the store and at hand."""

    def __init__(
        self,
        store: Store,
        stream: str,
        settled: dict[str, Step],
        queue: Queue | None = None,
        keep: Keep | None = None,
    ) -> None:
        self._store = store
        self._stream = stream
        self._settled = settled
        self._queue = queue
        self._keep = keep
        self._queued: list[Future[None]] = []

    @classmethod
    async def open(
        cls, store: Store, stream: str, queue: Queue | None = None, keep: Keep | None = None
    ) -> Journal:
        """Read what was settled before; ``queue`` is where others write too, in one order.

        ``keep`` is the same place for records with nothing beside them.
        """
        settled: dict[str, Step] = {}
        after = 0
        while rows := await store.events(after=after, stream=stream):
            settled |= {step.step: step for step in map(_read, rows) if step is not None}
            after = rows[-1].seq
        return cls(store, stream, settled, queue, keep)

    def __len__(self) -> int:
        return len(self._settled)

    def __contains__(self, name: str) -> bool:
        return name in self._settled

    def recall(self, name: str, request: object, kind: type[T]) -> T | None:
        """The result of a step that was settled before; None when it was not."""
        step = self._settled.get(name)
        if step is None:
            return None
        if step.request != fingerprint(request):
            raise RunDiverged(
                f"The step {name} asks for something else than when it was settled. The flow or "
                "a pattern was changed; start a new run, or go back to what it was."
            )
        return msgspec.json.decode(step.result, type=kind)

    async def settle(
        self,
        name: str,
        request: object,
        result: object,
        also: Callable[[Transaction], object] | None = None,
    ) -> None:
        """Queue a result, in one transaction with whatever belongs to it (D3).

        It is on disk when a later ``flush`` has returned.
        """
        step = self.entry(name, request, result)
        if also is None and self._keep is not None:
            self._queued.append(self._keep(self.row(step)))
            self.remember(step)
            return

        def record(transaction: Transaction) -> None:
            self.write(transaction, step)
            if also is not None:
                also(transaction)

        if self._queue is None:
            queued = await self._store.transact_soon(record)
        else:
            queued = self._queue(record)
        self._queued.append(queued)
        self.remember(step)

    # -- for whoever records a step in a transaction of their own ---------------------------------

    def entry(self, name: str, request: object, result: object) -> Step:
        """A step as it is recorded."""
        return Step(name, fingerprint(request), msgspec.Raw(msgspec.json.encode(result)))

    def write(self, transaction: Transaction, step: Step) -> None:
        """Record a step inside a transaction."""
        transaction.append(*self.row(step))

    def row(self, step: Step) -> NewEvent:
        """A step as an event."""
        return self._stream, STEP, msgspec.json.encode(step)

    def remember(self, step: Step) -> None:
        """Have a step at hand that is recorded, or is about to be."""
        self._settled[step.step] = step

    # -- what is under way ------------------------------------------------------------------------

    @property
    def queued(self) -> tuple[Future[None], ...]:
        """Records that may not be on disk yet, the oldest first."""
        return tuple(self._queued)

    async def flush(self, records: Iterable[Future[None]] | None = None) -> None:
        """Return when these records, or all that are queued now, are on disk.

        What kept one from getting there is raised, every time: whatever is built on that step must
        not go on.
        """
        for record in self.queued if records is None else records:
            if not record.done():
                await asyncio.wait([record])  # being cancelled here takes nothing back
            record.result()
            with suppress(ValueError):
                self._queued.remove(record)


def fingerprint(request: object) -> str:
    """A short name for what was asked; the same for the same request, also tomorrow."""
    return hashlib.sha256(msgspec.json.encode(request, order="deterministic")).hexdigest()[:32]


def _read(row: Event) -> Step | None:
    return msgspec.json.decode(row.body, type=Step) if row.kind == STEP else None
