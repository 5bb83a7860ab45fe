"""The one thread that writes: it takes whatever waits, and commits it together (D2).

An fsync costs the same for one write as for a thousand, so callers who wait at the same time share
one. Each unit has a savepoint of its own: one that fails takes back only itself. Nobody is told
anything before the commit is on disk, not even a failure, because it may rest on rows of the same
batch. How callers wait is left to ``store``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar

from agentcanvas.clock import Clock
from agentcanvas.errors import StoreClosed, StoreError, StoreFull
from agentcanvas.store import events
from agentcanvas.store.database import in_our_words
from agentcanvas.store.events import NewEvent
from agentcanvas.store.transaction import Transaction

T = TypeVar("T")


class Promise(Protocol):
    """What a caller waits on: a future of asyncio or of concurrent.futures."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...
    def set_exception(self, exception: BaseException, /) -> None: ...


class Step(Protocol):
    """A part of a batch."""

    in_loop: bool
    """Whether its callers wait on the event loop, and have to be told there."""

    size: int
    """How many bytes it holds in memory."""

    @property
    def writes(self) -> int: ...

    def run(self, transaction: Transaction) -> None:
        """Do it beside others."""
        ...

    def run_alone(self, transaction: Transaction) -> None:
        """Do it in a transaction that nobody else is in; an error takes that back."""
        ...

    def fail(self, error: BaseException) -> None: ...
    def settle(self) -> None: ...


class Appends:
    """Events that came one after the other, each from a caller of its own."""

    in_loop = True

    def __init__(self) -> None:
        self.events: list[NewEvent] = []
        self.promises: list[Promise] = []
        self.size = 0
        self._numbers = range(0)
        self._error: BaseException | None = None

    @property
    def writes(self) -> int:
        """How many callers wait."""
        return len(self.events)

    def run(self, transaction: Transaction) -> None:
        """Append them all; they were checked before, so only the disk can refuse."""
        self._numbers = transaction.append_checked(self.events)

    run_alone = run

    def fail(self, error: BaseException) -> None:
        """Note that the batch was not kept."""
        self._error = error

    def settle(self) -> None:
        """Tell each caller its number, or why there is none."""
        if self._error is not None:
            for promise in self.promises:
                _break(promise, self._error)
            return
        for promise, number in zip(self.promises, self._numbers, strict=True):
            if not promise.done():
                promise.set_result(number)


class Unit:
    """A function that writes, and its caller."""

    writes = 1
    size = 0

    def __init__(self, work: Callable[[Transaction], Any], promise: Promise, *, in_loop: bool):
        self.in_loop = in_loop
        self._work = work
        self._promise = promise
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self, transaction: Transaction) -> None:
        """Run the function in a savepoint; raise only what makes the whole batch impossible."""
        try:
            with transaction.savepoint():
                self._result = self._work(transaction)
        except StoreFull:
            raise
        except BaseException as error:  # noqa: BLE001 - it is handed to the caller, whatever it is
            self._error = error

    def run_alone(self, transaction: Transaction) -> None:
        """Run the function without one: what it raises takes back the batch, which is its own.

        A savepoint makes SQLite keep a copy of each page that is touched.
        """
        with transaction.whole():
            self._result = self._work(transaction)

    def fail(self, error: BaseException) -> None:
        """Note that the batch was not kept."""
        self._error = error

    def settle(self) -> None:
        """Hand over the result or the failure."""
        if self._error is not None:
            _break(self._promise, self._error)
        elif not self._promise.done():
            self._promise.set_result(self._result)


def _break(promise: Promise, error: BaseException) -> None:
    if promise.done():
        return
    if isinstance(error, StopIteration):  # futures refuse it, and the others must still be told
        promise.set_exception(RuntimeError(f"The unit of work raised {error!r}."))
        return
    # A copy each: an exception grows a traceback wherever it is raised.
    promise.set_exception(copy(error) if isinstance(error, StoreError) else error)


class Writer:
    """Owns the writing connection, from ``start`` to ``stop``.

    ``settled`` is called in the writer's thread after each batch, with the number of the newest
    event and the steps whose callers wait on the event loop.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        where: str,
        clock: Clock,
        max_batch: int,
        max_body: int,
        settled: Callable[[int, Sequence[Step]], None],
    ) -> None:
        self.head = events.head(connection)
        self.commits = 0
        self.writes = 0
        self._connection = connection
        self._where = where
        self._clock = clock
        self._max_batch = max_batch
        self._max_body = max_body
        self._settled = settled
        self._queue: SimpleQueue[Step | None] = SimpleQueue()
        self._door = Lock()
        self._stopped = False
        # A daemon: a program that ends without closing its store must not hang on it.
        self._thread = Thread(target=self._run, name="agentcanvas-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def put(self, step: Step) -> None:
        """Queue a step; safe from any thread."""
        with self._door:
            if self._stopped:
                raise StoreClosed(f"The store {self._where} is closed; open it to write.")
            self._queue.put(step)

    def submit(self, work: Callable[[Transaction], T]) -> Future[T]:
        """Queue a unit of a caller outside the event loop; safe from any thread."""
        promise: Future[T] = Future()
        promise.set_running_or_notify_cancel()  # what is queued is written, whoever stops waiting
        self.put(Unit(work, promise, in_loop=False))
        return promise

    def stop(self) -> None:
        """Write what is queued, then end; returns when the thread has ended."""
        with self._door:
            if not self._stopped:
                self._stopped = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        more = True
        while more:
            steps, more = self._take_what_waits()
            if steps:
                self._commit(steps)

    def _take_what_waits(self) -> tuple[list[Step], bool]:
        steps: list[Step] = []
        writes = 0
        step = self._queue.get()
        while step is not None:
            steps.append(step)
            writes += step.writes
            if writes >= self._max_batch:
                return steps, True
            try:
                step = self._queue.get_nowait()
            except Empty:
                return steps, True
        return steps, False

    def _commit(self, steps: list[Step]) -> None:
        try:
            self._write(steps)
        except BaseException as error:  # noqa: BLE001 - told to every caller; the thread lives on
            self._roll_back()
            plain = in_our_words(error, self._where) if isinstance(error, sqlite3.Error) else None
            for step in steps:
                step.fail(plain or error)
        for step in steps:
            if not step.in_loop:
                step.settle()
        self._settled(self.head, [step for step in steps if step.in_loop])

    def _write(self, steps: list[Step]) -> None:
        transaction = Transaction(
            self._connection,
            where=self._where,
            last_seq=self.head,
            at_ms=self._clock.now_ms(),
            max_body=self._max_body,
        )
        self._connection.execute("BEGIN IMMEDIATE")
        if len(steps) == 1:
            steps[0].run_alone(transaction)
        else:
            for step in steps:
                step.run(transaction)
        self._connection.execute("COMMIT")
        self.head = transaction.last_seq
        self.commits += 1
        self.writes += sum(step.writes for step in steps)

    def _roll_back(self) -> None:
        # A full disk makes SQLite roll back by itself, sometimes; and a roll-back that fails is
        # found again, and told, by the BEGIN of the next batch.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
