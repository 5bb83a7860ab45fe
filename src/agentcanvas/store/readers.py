"""Reading beside the writer: each reader sees one committed state and holds nobody up.

A file is read over connections that cannot write, a few at a time. A database in memory has only
one connection, so its reads take their turn in the writer's thread; callers cannot tell.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from agentcanvas.errors import StoreClosed
from agentcanvas.store.database import connect_reader, told_plainly
from agentcanvas.store.transaction import Snapshot, Transaction
from agentcanvas.store.writer import Writer

T = TypeVar("T")


class Readers(Protocol):
    """Where reads are done."""

    async def read(self, look: Callable[[Snapshot], T]) -> T:
        """Run ``look`` on one committed state."""
        ...

    def read_blocking(self, look: Callable[[Snapshot], T]) -> T:
        """Do the same for a thread that may wait."""
        ...

    def close(self) -> None:
        """Refuse further reads."""
        ...


class FileReaders:
    """A pool of connections to a file, opened when needed."""

    def __init__(self, path: Path, *, most: int) -> None:
        self._path = path
        self._limiter = anyio.CapacityLimiter(most)
        self._idle: list[sqlite3.Connection] = []
        self._door = Lock()
        self._closed = False

    async def read(self, look: Callable[[Snapshot], T]) -> T:
        """Run ``look`` in a worker thread."""
        return await anyio.to_thread.run_sync(self.read_blocking, look, limiter=self._limiter)

    def read_blocking(self, look: Callable[[Snapshot], T]) -> T:
        """Run ``look`` here."""
        where = str(self._path)
        with told_plainly(where):
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                return look(Snapshot(connection, where=where))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._give_back(connection)

    def close(self) -> None:
        """Close what is idle now and, as it comes back, what is not."""
        with self._door:
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    def _borrow(self) -> sqlite3.Connection:
        with self._door:
            if self._closed:
                raise StoreClosed(f"The store {self._path} is closed; open it to read.")
            if self._idle:
                return self._idle.pop()
        return connect_reader(self._path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._door:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()


class WriterReads:
    """Reads of a database in memory, in turn with its writes."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def read(self, look: Callable[[Snapshot], T]) -> T:
        """Wait on the event loop for the writer's thread."""
        return await asyncio.wrap_future(self._writer.submit(_read_only(look)))

    def read_blocking(self, look: Callable[[Snapshot], T]) -> T:
        """Wait here for the writer's thread."""
        return self._writer.submit(_read_only(look)).result()

    def close(self) -> None:
        """Need nothing: a writer that has stopped refuses."""


def _read_only(look: Callable[[Snapshot], T]) -> Callable[[Transaction], T]:
    def run(transaction: Transaction) -> T:
        with transaction.read_only() as snapshot:
            return look(snapshot)

    return run
