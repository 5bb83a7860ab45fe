"""What a function sees that reads (``Snapshot``) or writes (``Transaction``) in the store.

Neither hands out the connection or a cursor: what outlives the function could outlive the
transaction too. When a transaction begins and ends is left to ``readers`` and ``writer``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

from agentcanvas.errors import StoreError, StoreFull
from agentcanvas.store import events
from agentcanvas.store.database import told_plainly
from agentcanvas.store.events import Event, NewEvent

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Snapshot:
    """A view that does not change while one looks."""

    def __init__(self, connection: sqlite3.Connection, *, where: str) -> None:
        self._connection = connection
        self._where = where

    def query(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows."""
        return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row, if there is one."""
        rows = self.query(sql, values)
        return rows[0] if rows else None

    def head(self) -> int:
        """Return the number of the newest event."""
        return events.head(self._connection)

    def events(
        self,
        *,
        after: int = 0,
        stream: str | None = None,
        limit: int = 1000,
        most_bytes: int | None = None,
    ) -> list[Event]:
        """Return events in order; a damaged one is an error that names it.

        With ``most_bytes`` the list ends with the event that reaches it.
        """
        return events.select(
            self._connection,
            where=self._where,
            after=after,
            stream=stream,
            limit=limit,
            most_bytes=most_bytes,
        )


class Transaction(Snapshot):
    """A unit of work: all of it is kept, or nothing.

    ``at_ms`` is the time of the commit it belongs to, the same for everything in it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        where: str,
        last_seq: int,
        at_ms: int,
        max_body: int,
    ) -> None:
        super().__init__(connection, where=where)
        self.at_ms = at_ms
        self.last_seq = last_seq
        self._max_body = max_body

    def execute(self, sql: str, values: Values = ()) -> int:
        """Run one statement; return how many rows it changed."""
        _refuse_ending(sql)
        return self._connection.execute(sql, values).rowcount

    def execute_many(self, sql: str, values: Iterable[Values]) -> None:
        """Run one statement for each of ``values``."""
        _refuse_ending(sql)
        self._connection.executemany(sql, values)

    def append(self, stream: str, kind: str, body: bytes) -> int:
        """Append one event; return its number."""
        return self.append_many([(stream, kind, body)])[0]

    def append_many(self, new: Sequence[NewEvent]) -> range:
        """Append events that stand together; return their numbers."""
        return self.append_checked(
            [events.checked(*event, max_body=self._max_body) for event in new]
        )

    def append_checked(self, new: Sequence[NewEvent]) -> range:
        """Append what was checked at the door."""
        numbers = range(self.last_seq + 1, self.last_seq + 1 + len(new))
        events.insert(self._connection, numbers.start, self.at_ms, new)
        self.last_seq += len(new)
        return numbers

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Take back what is done inside when it fails, and nothing else.

        ``StoreFull`` means that SQLite cannot keep the transaction at all, for anybody in it.
        """
        before = self.last_seq
        self._connection.execute("SAVEPOINT unit")
        try:
            with told_plainly(self._where):
                yield
        except StoreFull:
            raise
        except BaseException:
            self.last_seq = before
            self._end_savepoint("ROLLBACK TO unit", "RELEASE unit")
            raise
        self._end_savepoint("RELEASE unit")

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Do the only thing there is to do: when it fails, the transaction is taken back."""
        with told_plainly(self._where):
            yield
        if not self._connection.in_transaction:
            raise self._given_up("the disk was full")

    @contextmanager
    def read_only(self) -> Iterator[Snapshot]:
        """Give a view on what is there now that refuses to write."""
        self._connection.execute("PRAGMA query_only = ON")
        try:
            yield Snapshot(self._connection, where=self._where)
        finally:
            self._connection.execute("PRAGMA query_only = OFF")

    def _end_savepoint(self, *statements: str) -> None:
        try:
            for statement in statements:
                self._connection.execute(statement)
        except sqlite3.Error as error:
            raise self._given_up(error) from error

    def _given_up(self, why: object) -> StoreFull:
        return StoreFull(
            f"SQLite gave up a transaction on {self._where} ({why}); nothing of it was kept."
        )


_ENDINGS = ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE")


@lru_cache(maxsize=512)
def _refuse_ending(sql: str) -> None:
    """Keep the transaction whole: other callers' writes share it."""
    words = sql.split(None, 1)
    if words and words[0].rstrip(";").upper() in _ENDINGS:
        raise StoreError(f"A unit of work begins and ends by itself; it must not say {words[0]}.")
