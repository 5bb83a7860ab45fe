"""Reading beside the writer, and hearing of what is new (D2)."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import anyio
import pytest

from agentcanvas.errors import StoreClosed
from agentcanvas.store import Snapshot, Store, StoreLimits
from tests.store.helpers import turns, writer_kept_busy

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]


async def test_a_reader_sees_one_state_however_long_it_looks(path: Path) -> None:
    began, may_go_on = threading.Event(), threading.Event()

    def look_twice(look: Snapshot) -> tuple[int, int]:
        first = look.head()
        began.set()
        may_go_on.wait()
        return first, look.head()

    async with await Store.open(path) as store:
        await store.append("s", "k", b"{}")
        seen: list[tuple[int, int]] = []

        async def reader() -> None:
            seen.append(await store.read(look_twice))

        async with anyio.create_task_group() as group:
            group.start_soon(reader)
            await anyio.to_thread.run_sync(began.wait)
            await store.append("s", "k", b"{}")
            may_go_on.set()
        assert seen == [(1, 1)]
        assert await store.read(lambda look: look.head()) == 2


async def test_reading_does_not_wait_for_the_writer(path: Path) -> None:
    async with await Store.open(path) as store:
        await store.append("s", "k", b"{}")
        with writer_kept_busy(store):
            assert len(await store.events()) == 1


async def test_more_readers_than_connections_take_turns(path: Path) -> None:
    async with await Store.open(path, limits=StoreLimits(readers=2)) as store:
        await store.append_many([("s", "k", b"{}")] * 10)
        counts: list[int] = []

        async def reader() -> None:
            counts.append(len(await store.events()))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(reader)
        assert counts == [10] * 20


async def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises((sqlite3.OperationalError, Exception), match="readonly"):
        await store.read(lambda look: look.query("DELETE FROM meta"))
    await store.append("s", "k", b"{}")
    assert await store.read(lambda look: look.one("SELECT count(*) FROM meta")) == (1,)


async def test_a_reader_that_fails_harms_nobody(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await store.read(lambda look: 1 // look.head())
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await store.read(lambda look: look.query("SELECT * FROM nowhere"))
    await store.append("s", "k", b"{}")
    assert await store.read(lambda look: 1 // look.head()) == 1


async def test_nothing_is_missed_by_one_who_follows_the_head(store: Store) -> None:
    seen: list[int] = []

    async def follow() -> None:
        last = 0
        while last < 300:
            head = await store.wait_beyond(last)
            assert head > last
            seen.extend(event.seq for event in await store.events(after=last))
            last = seen[-1]

    async def write() -> None:
        for _ in range(30):
            await store.append("s", "k", b"{}")

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        for _ in range(10):
            group.start_soon(write)
    assert seen == list(range(1, 301))


async def test_followers_hear_of_heads_in_order_and_of_nothing_twice(store: Store) -> None:
    heads: list[int] = []

    async def follow() -> None:
        while not heads or heads[-1] < 20:
            heads.append(await store.wait_beyond(heads[-1] if heads else 0))

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        for _ in range(20):
            await store.append("s", "k", b"{}")
    assert heads == sorted(set(heads))
    assert heads[-1] == 20


async def test_waiting_for_what_is_there_already_returns_at_once(store: Store) -> None:
    await store.append_many([("s", "k", b"{}")] * 3)
    assert await store.wait_beyond(0) == 3
    assert await store.wait_beyond(2) == 3


async def test_events_from_threads_wake_followers_too(store: Store) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(store.wait_beyond, 0)
        await turns()
        store.submit(lambda t: t.append("s", "k", b"{}"))
    assert store.head == 1


async def test_a_write_that_appends_nothing_wakes_no_follower(store: Store) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(store.wait_beyond, 0)
            await store.transact(lambda t: t.execute("INSERT INTO meta VALUES ('a', 'b')"))
            await turns()
            scope.cancel()
    assert store.head == 0


async def test_followers_are_told_when_the_store_closes(store: Store) -> None:
    told: list[str] = []

    async def follow() -> None:
        try:
            await store.wait_beyond(0)
        except StoreClosed as error:
            told.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        await turns()
        await store.close()
    assert len(told) == 1
