"""Writing: callers share a commit, are told after it, and do not disturb each other (D2)."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import Future
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StoreClosed, StoreError
from agentcanvas.store import Store, StoreLimits, Transaction
from tests.store.helpers import turns, writer_kept_busy

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]


def counter(transaction: Transaction) -> int:
    row = transaction.one("SELECT value FROM meta WHERE key = 'counter'")
    return int(row[0]) if row else 0


def count_up(transaction: Transaction) -> int:
    value = counter(transaction) + 1
    transaction.execute("INSERT OR REPLACE INTO meta VALUES ('counter', ?)", (str(value),))
    return value


async def test_writers_that_wait_at_the_same_time_share_one_commit(store: Store) -> None:
    async def writer(name: str) -> None:
        for turn in range(10):
            await store.append(name, "k", b"%d" % turn)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(writer, f"s{number}")
    statistics = store.statistics()
    assert statistics.writes == statistics.head == 1000
    assert statistics.commits == 10


async def test_what_queues_behind_a_slow_batch_is_committed_together(store: Store) -> None:
    async with anyio.create_task_group() as group:
        with writer_kept_busy(store):
            for number in range(20):
                group.start_soon(store.append, "s", "k", b"%d" % number)
                group.start_soon(store.transact, count_up)
                await turns()
            assert store.statistics().waiting == 40
    assert store.statistics().commits == 2


async def test_a_batch_has_a_greatest_size(path: Path) -> None:
    async with await Store.open(path, limits=StoreLimits(max_batch=16)) as store:
        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(store.append, "s", "k", b"{}")
        assert store.statistics().commits == 4


async def test_acknowledgements_come_in_the_order_of_the_numbers(store: Store) -> None:
    told: list[int] = []

    async def writer() -> None:
        for _ in range(5):
            seq = await store.append("s", "k", b"{}")
            told.append(seq)

    async def worker() -> None:
        for _ in range(5):
            seq = await store.transact(lambda t: t.append("s", "k", b"{}"))
            told.append(seq)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(writer)
            group.start_soon(worker)
    assert told == list(range(1, 101))


async def test_an_acknowledged_write_is_seen_by_every_reader(path: Path) -> None:
    async with await Store.open(path) as store:
        with sqlite3.connect(path) as stranger:
            for number in range(1, 20):
                seq = await store.append("s", "k", b"{}")
                assert seq == number == store.head
                assert stranger.execute("SELECT max(seq) FROM events").fetchone() == (number,)
        stranger.close()


async def test_an_event_and_the_rows_it_causes_are_one_transaction(store: Store) -> None:
    def both(transaction: Transaction) -> None:
        transaction.append("run/1", "sent", b"{}")
        transaction.execute("INSERT INTO meta VALUES ('message', 'sent')")

    def neither(transaction: Transaction) -> None:
        transaction.append("run/1", "sent", b"{}")
        transaction.execute("INSERT INTO meta VALUES ('message', 'twice')")

    await store.transact(both)
    with pytest.raises(sqlite3.IntegrityError):
        await store.transact(neither)
    assert [event.seq for event in await store.events()] == [1]
    assert await store.read(
        lambda look: look.query("SELECT value FROM meta WHERE key='message'")
    ) == [("sent",)]


async def test_a_unit_that_fails_takes_back_only_itself_and_leaves_no_gap(store: Store) -> None:
    class Mistake(Exception):
        pass

    def fail(transaction: Transaction) -> None:
        count_up(transaction)
        transaction.append("s", "never", b"{}")
        raise Mistake

    results: list[object] = []

    async def note(work: str) -> None:
        try:
            if work == "append":
                results.append(await store.append("s", "k", b"{}"))
            else:
                results.append(await store.transact(fail if work == "fail" else count_up))
        except Mistake:
            results.append("mistake")

    async with anyio.create_task_group() as group:
        for work in ("append", "count", "fail", "append", "fail", "count", "append"):
            group.start_soon(note, work)
    assert results == [1, 1, "mistake", 2, "mistake", 2, 3]
    assert store.statistics().commits == 1
    assert [event.seq for event in await store.events()] == [1, 2, 3]
    assert [event.kind for event in await store.events()] == ["k", "k", "k"]


async def test_a_unit_that_fails_alone_takes_back_the_batch_and_leaves_no_gap(store: Store) -> None:
    def fail(transaction: Transaction) -> None:
        count_up(transaction)
        transaction.append("s", "never", b"{}")
        transaction.execute("no SQL at all")

    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        await store.transact(fail)
    assert await store.append("s", "k", b"{}") == 1
    assert await store.transact(count_up) == 1
    assert [event.kind for event in await store.events()] == ["k"]


async def test_a_unit_sees_what_came_before_it_in_the_same_batch(store: Store) -> None:
    seen: list[int] = []

    async def look() -> None:
        seen.append(await store.transact(lambda t: len(t.events())))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(store.append, "s", "k", b"{}")
            group.start_soon(look)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("word", ["COMMIT", " rollback;", "begin immediate", "END", "release x"])
async def test_a_unit_cannot_end_the_transaction_it_shares(store: Store, word: str) -> None:
    with pytest.raises(StoreError, match="must not say"):
        await store.transact(lambda t: t.execute(word))
    assert await store.append("s", "k", b"{}") == 1


async def test_a_unit_may_raise_anything_without_harm_to_others(store: Store) -> None:
    def stop(_: Transaction) -> None:
        raise StopIteration

    async with anyio.create_task_group() as group:
        group.start_soon(store.append, "s", "k", b"{}")
        with pytest.raises(RuntimeError, match="StopIteration"):
            await store.transact(stop)
    assert store.head == 1


async def test_threads_write_too(store: Store) -> None:
    def from_a_thread() -> list[int]:
        futures: list[Future[int]] = [store.submit(count_up) for _ in range(10)]
        return [future.result() for future in futures]

    assert await anyio.to_thread.run_sync(from_a_thread) == list(range(1, 11))
    failed = store.submit(lambda t: t.execute("no SQL at all"))
    with pytest.raises(sqlite3.OperationalError):
        await asyncio.wrap_future(failed)


async def test_a_cancelled_caller_neither_loses_nor_halves_what_is_queued(store: Store) -> None:
    def two(transaction: Transaction) -> None:
        transaction.append("s", "first", b"{}")
        transaction.append("s", "second", b"{}")

    async with anyio.create_task_group() as group:
        with writer_kept_busy(store):
            group.start_soon(store.transact, two)
            group.start_soon(store.append, "s", "third", b"{}")
            await turns()
            group.cancel_scope.cancel()
    await store.append("s", "fourth", b"{}")
    assert [event.kind for event in await store.events()] == ["first", "second", "third", "fourth"]


async def test_the_queue_is_bounded_and_those_outside_come_in_by_turns(path: Path) -> None:
    limits = StoreLimits(max_waiting=8, max_batch=4)
    async with await Store.open(path, limits=limits) as store:
        told: list[tuple[int, int]] = []

        async def writer(number: int) -> None:
            told.append((number, await store.append("s", "k", b"{}")))

        async with anyio.create_task_group() as group:
            with writer_kept_busy(store):
                for number in range(1, 31):
                    group.start_soon(writer, number)
                await turns()
                assert store.statistics().waiting == 8
        assert told == [(number, number) for number in range(1, 31)]
        assert store.statistics().waiting == 0


async def test_the_queue_is_bounded_in_bytes_too(path: Path) -> None:
    limits = StoreLimits(max_waiting_bytes=1000)
    async with await Store.open(path, limits=limits) as store, anyio.create_task_group() as group:
        with writer_kept_busy(store):
            for _ in range(10):
                group.start_soon(store.append, "s", "k", bytes(400))
            await turns()
            assert store.statistics().waiting == 3


async def test_who_is_cancelled_while_waiting_for_room_has_written_nothing(path: Path) -> None:
    async with await Store.open(path, limits=StoreLimits(max_waiting=1)) as store:
        async with anyio.create_task_group() as group:
            with writer_kept_busy(store):
                group.start_soon(store.append, "s", "inside", b"{}")
                await turns()
                async with anyio.create_task_group() as others:
                    others.start_soon(store.append, "s", "outside", b"{}")
                    await turns()
                    others.cancel_scope.cancel()
        await store.append("s", "later", b"{}")
        assert [event.kind for event in await store.events()] == ["inside", "later"]
        assert store.statistics().waiting == 0


async def test_who_is_cancelled_at_the_moment_of_being_let_in_gives_the_place_back(
    path: Path,
) -> None:
    async with await Store.open(path, limits=StoreLimits(max_waiting=1)) as store:
        waiting: list[asyncio.Task[int]] = []

        async def cancel_the_next() -> int:
            seq = await store.append("s", "k", b"{}")
            waiting[0].cancel()  # let in by the same batch that woke us, but not awake yet
            return seq

        with writer_kept_busy(store):
            inside = asyncio.ensure_future(cancel_the_next())
            await turns()
            waiting = [asyncio.ensure_future(store.append("s", "k", b"{}")) for _ in range(3)]
            await turns()
        done = await asyncio.gather(inside, *waiting, return_exceptions=True)
        assert isinstance(done[1], asyncio.CancelledError)
        assert [done[0], *done[2:]] == [1, 2, 3]
        assert store.statistics().waiting == 0


async def test_closing_commits_what_is_queued_and_refuses_what_waits_for_room(path: Path) -> None:
    store = await Store.open(path, limits=StoreLimits(max_waiting=4))
    results: list[object] = []

    async def writer() -> None:
        try:
            results.append(await store.append("s", "k", b"{}"))
        except StoreClosed:
            results.append("closed")

    async with anyio.create_task_group() as group:
        with writer_kept_busy(store):
            for _ in range(10):
                group.start_soon(writer)
            await turns()
            group.start_soon(store.close)
            await turns()
    assert sorted(results, key=str) == [1, 2, 3, 4] + ["closed"] * 6
    async with await Store.open(path) as again:
        assert again.head == 4


async def test_a_closed_store_says_so_and_closing_twice_is_harmless(store: Store) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(store.close)
        group.start_soon(store.close)
    with pytest.raises(StoreClosed):
        await store.append("s", "k", b"{}")
    with pytest.raises(StoreClosed):
        await store.transact(count_up)
    with pytest.raises(StoreClosed):
        store.submit(count_up)
    with pytest.raises(StoreClosed):
        await store.events()
    with pytest.raises(StoreClosed):
        await store.wait_beyond(0)


async def test_closing_is_finished_even_when_cancelled(path: Path) -> None:
    store = await Store.open(path)
    async with anyio.create_task_group() as group:
        with writer_kept_busy(store):
            group.start_soon(store.close)
            await turns()
            group.cancel_scope.cancel()
    async with await Store.open(path):
        pass


@pytest.mark.req("D5")
async def test_virtual_time_stands_still_while_a_write_is_under_way(
    store: Store, clock: VirtualClock
) -> None:
    async def hurry() -> None:
        await clock.sleep(1)
        await store.append("s", "late", b"{}")

    async with anyio.create_task_group() as group:
        group.start_soon(hurry)
        for _ in range(50):
            await store.append("s", "early", b"{}")
            await store.events(after=store.head)
            assert clock.monotonic() == 0.0
    kinds = [event.kind for event in await store.events()]
    assert kinds == ["early"] * 50 + ["late"]
