"""Followers of runs: one reads for all, and nobody misses anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.runs.tail import Page, Tail
from agentcanvas.store import Snapshot, Store

pytestmark = [pytest.mark.anyio, pytest.mark.req("V1")]

T = TypeVar("T")
STREAMS = [f"team/run_{number}" for number in range(8)]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with await Store.in_memory() as store:
        yield store


class Reads:
    """Counts the reads of a store."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = store.read

        async def counted(look: Callable[[Snapshot], T]) -> T:
            self.count += 1
            return await read(look)

        monkeypatch.setattr(store, "read", counted)


async def follow(tail: Tail, stream: str, last: bytes) -> list[bytes]:
    """All events of a stream, until one comes that is the last."""
    found: list[bytes] = []
    page = await tail.page(stream, 0)
    after = 0
    while True:
        for row in page.rows:
            after = row.seq
            found.append(row.body)
            if row.body == last:
                return found
        page = await (
            tail.page(stream, after) if page.is_full else tail.beyond(stream, after, page.head)
        )


async def test_every_follower_gets_its_own_events_in_order_and_each_once(store: Store) -> None:
    tail = Tail(store, VirtualClock())
    found: dict[str, list[bytes]] = {}
    bodies = [b"%d" % number for number in range(50)]

    async def one(stream: str) -> None:
        found[stream] = await follow(tail, stream, bodies[-1])

    async with anyio.create_task_group() as group:
        for stream in STREAMS:
            group.start_soon(one, stream)
        for body in bodies:
            await store.append_many([(stream, "said", body) for stream in STREAMS])
    assert found == dict.fromkeys(STREAMS, bodies)


async def test_one_reads_for_all_who_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = Tail(store, VirtualClock())
    reads = Reads(store, monkeypatch)
    pages: Counter[str] = Counter()

    async def one(stream: str) -> None:
        page = await tail.beyond(stream, 0, 0)
        pages[stream] += len(page.rows)

    async with anyio.create_task_group() as group:
        for stream in STREAMS:
            group.start_soon(one, stream)
        await anyio.wait_all_tasks_blocked()
        await store.append_many([(stream, "said", b"1") for stream in STREAMS])
    assert pages == Counter(STREAMS)
    assert reads.count <= 2, "the first who looks, and one for all who came meanwhile"


async def test_when_the_reader_leaves_another_reads(store: Store) -> None:
    tail = Tail(store, VirtualClock())
    await store.append("team/run_0", "said", b"1")
    await tail.beyond("team/run_0", 0, 0)  # the next read has to wait a moment
    found: list[Page] = []

    async def patient() -> None:
        page = await tail.beyond("team/run_0", 0, 0)
        while not page.rows:
            page = await tail.beyond("team/run_0", 0, page.head)
        found.append(page)

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as leaving:
            group.start_soon(patient)
            leaving.cancel()
            await tail.beyond("team/run_0", 0, 0)
    assert [len(page.rows) for page in found] == [1]
