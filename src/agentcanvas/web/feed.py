"""The live feed: every event of every run, from any point on, without loss or repeats.

The store is the queue. Each subscriber reads it at its own pace from its own place, so that a slow
one holds up nobody, costs no memory, and finds its place again after a break.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import NamedTuple

from agentcanvas.runs import events as e
from agentcanvas.store import Event, Snapshot, Store
from agentcanvas.web.lines import line_of_row
from agentcanvas.web.stream import frame

_ROWS = 500
_BYTES = 1024 * 1024
_EPOCH_LENGTH = 12
_NUMBER = re.compile(r"[0-9]{1,18}")
_SHARED = 8
"""Batches at hand for whoever comes to the same place next; at most as many MB."""


class _Batch(NamedTuple):
    last: int
    frames: list[tuple[str, bytes]]
    """Run and frame."""


class Feed:
    """The events of one store.

    A place in it is ``<epoch>-<seq>``. The epoch is the store's own name for its history, which
    lives in the file and changes when a back-up is brought back: numbers of another history would
    point at other events.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._epoch = ""
        self._recent: dict[int, asyncio.Task[_Batch]] = {}

    async def epoch(self) -> str:
        """The name of this history."""
        if not self._epoch:
            row = await self._store.read(
                lambda look: look.one("SELECT value FROM meta WHERE key = 'id'")
            )
            assert row is not None, "every store has a name since its second migration"
            self._epoch = str(row[0]).replace("-", "")[:_EPOCH_LENGTH]
        return self._epoch

    async def head(self) -> str:
        """The place of the newest event."""
        return await self.place(self._store.head)

    async def place(self, seq: int) -> str:
        """The place of an event."""
        return f"{await self.epoch()}-{seq}"

    async def find(self, place: str) -> int | None:
        """The number of the event at a place; None when it is not in this history any more."""
        seq = await self.number_in(place)
        if seq is None:
            return None
        oldest = await self._store.read(_oldest)
        return seq if oldest - 1 <= seq <= self._store.head else None

    async def number_in(self, place: str) -> int | None:
        """The number that a place of this history names, whatever is there; None of any other."""
        epoch, _, digits = place.rpartition("-")
        if epoch != await self.epoch() or not _NUMBER.fullmatch(digits):
            return None
        return int(digits)

    async def frames(self, place: str, run_id: str | None = None) -> AsyncGenerator[bytes, None]:
        """What came after a place, and then whatever happens, as it happens."""
        epoch = await self.epoch()
        after = await self.find(place)
        if after is None:
            after = self._store.head
            head = f"{epoch}-{after}"
            yield frame(b'{"head":"%s"}' % head.encode(), event="reset", id=head)
        while True:
            await self._store.wait_beyond(after)
            batch = await self._batch(after)
            after = batch.last
            frames = [frame for of, frame in batch.frames if run_id is None or of == run_id]
            if frames:
                yield b"".join(frames)

    async def _batch(self, after: int) -> _Batch:
        """What comes next; those who stand at the same place share one look at the store."""
        reading = self._recent.get(after)
        if reading is None:
            reading = asyncio.create_task(self._read(after), name=f"feed after {after}")
            self._recent[after] = reading
            reading.add_done_callback(lambda done: self._drop_failed(after, done))
            if len(self._recent) > _SHARED:
                del self._recent[next(iter(self._recent))]
        # A reader who leaves must not take the others' batch along.
        return await asyncio.shield(reading)

    def _drop_failed(self, after: int, done: asyncio.Task[_Batch]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._recent.pop(after, None)

    async def _read(self, after: int) -> _Batch:
        def look(at: Snapshot) -> tuple[list[Event], int]:
            rows = at.events(after=after, limit=_ROWS, most_bytes=_BYTES)
            return rows, rows[-1].seq if rows else at.head()  # none: they were forgotten

        rows, last = await self._store.read(look)
        epoch = await self.epoch()
        frames = [
            (row.stream.rpartition("/")[2], frame(line_of_row(row), id=f"{epoch}-{row.seq}"))
            for row in rows
            if row.kind in e.KINDS
        ]
        return _Batch(last, frames)


def _oldest(look: Snapshot) -> int:
    row = look.one("SELECT min(seq) FROM events")
    return row[0] if row and row[0] is not None else look.head() + 1
