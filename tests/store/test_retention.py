"""Old events are forgotten by rule, but none that a file still lacks (D2)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.store import Retention, Store
from agentcanvas.store.retention import ROWS_A_STEP
from tests.store.helpers import PerStream, content

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2")]

DAY_MS = 24 * 3600 * 1000


async def numbers(store: Store, stream: str | None = None) -> list[int]:
    return [event.seq for event in await store.events(stream=stream, limit=100_000)]


async def test_the_newest_of_each_stream_are_kept(store: Store) -> None:
    await store.append_many([(f"run/{index % 2}", "k", b"{}") for index in range(10)])
    await store.append_many([("hub", "k", b"{}")] * 5)
    assert await store.retain(Retention(streams="run/", keep_last=2)) == 6
    assert await numbers(store, "run/0") == [7, 9]
    assert await numbers(store, "run/1") == [8, 10]
    assert await numbers(store, "hub") == [11, 12, 13, 14, 15]


async def test_what_is_older_than_the_limit_goes(store: Store, clock: VirtualClock) -> None:
    for _ in range(5):
        await store.append("a", "k", b"{}")
        await clock.advance(DAY_MS / 1000)
    assert await store.retain(Retention(streams="", keep_ms=2 * DAY_MS)) == 3
    assert await numbers(store) == [4, 5]


async def test_a_clock_that_was_set_back_costs_no_young_event(
    store: Store, clock: VirtualClock
) -> None:
    start_ms = clock.now_ms()
    for at_ms in (10, 20, 3, 30):
        clock.set_wall(start_ms + at_ms * DAY_MS)
        await store.append("a", "k", b"{}")
    assert await store.retain(Retention(streams="", keep_ms=15 * DAY_MS)) == 2
    assert await numbers(store) == [2, 4]


async def test_either_limit_of_a_rule_and_every_rule_counts(
    store: Store, clock: VirtualClock
) -> None:
    await store.append_many([("a", "k", b"{}"), ("b", "k", b"{}")])
    await clock.advance(DAY_MS / 1000)
    await store.append_many([("a", "k", b"{}")] * 3 + [("b", "k", b"{}")] * 3)
    rules = [
        Retention(streams="a", keep_ms=DAY_MS, keep_last=2),
        Retention(streams="b", keep_last=3),
        Retention(streams="c", keep_last=0),
    ]
    assert await store.retain(*rules) == 3
    assert await numbers(store, "a") == [4, 5]
    assert await numbers(store, "b") == [6, 7, 8]
    assert await store.retain(*rules) == 0


async def test_a_number_is_never_given_twice(path: Path) -> None:
    async with await Store.open(path) as store:
        await store.append_many([("a", "k", b"{}")] * 7)
        assert await store.retain(Retention(streams="a", keep_last=0)) == 7
        assert await store.append("a", "k", b"{}") == 8
        await store.retain(Retention(streams="a", keep_last=0))
    async with await Store.open(path) as store:
        assert store.head == 8
        assert await store.append("a", "k", b"{}") == 9


async def test_no_event_goes_before_its_line_is_in_the_file(path: Path) -> None:
    async with await Store.open(path, projections=[PerStream()]) as store:
        await store.append("a", "k", b"1")
    async with await Store.open(path) as store:  # nobody projects meanwhile
        await store.append_many([("a", "k", b"2"), ("a", "k", b"3")])
        assert await store.retain(Retention(streams="", keep_last=0)) == 1
        assert await numbers(store) == [2, 3]
    async with await Store.open(path, projections=[PerStream()]) as store:
        assert await store.retain(Retention(streams="", keep_last=0)) == 2
    assert content(path.parent / "logs/a.jsonl").count(b"\n") == 3


async def test_lines_of_forgotten_events_stay_in_the_files(path: Path) -> None:
    for _ in range(3):
        async with await Store.open(path, projections=[PerStream()]) as store:
            await store.append("a", "k", b"1")
            await store.retain(Retention(streams="", keep_last=0))
    assert content(path.parent / "logs/a.jsonl").count(b"\n") == 3


async def test_the_file_gives_its_room_back_in_a_few_steps(path: Path) -> None:
    number = 4 * ROWS_A_STEP
    async with await Store.open(path) as store:
        await store.append_many([("old", "k", bytes(2000))] * number)
    before = len(content(path))
    async with await Store.open(path) as store:
        assert await store.retain(Retention(streams="old", keep_last=1)) == number - 1
        assert store.statistics().commits < 15
        assert await store.check() == []
    assert len(content(path)) < before / 10


async def test_others_write_between_the_steps(path: Path) -> None:
    number = 4 * ROWS_A_STEP
    async with await Store.open(path) as store:
        await store.append_many([("old", "k", b"{}")] * number)
        forgotten = 0
        appended: list[int] = []

        async def write() -> None:
            while not forgotten:
                seq = await store.append("new", "k", b"{}")
                appended.append(seq)

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            forgotten = await store.retain(Retention(streams="old", keep_last=1))
        assert len(appended) >= 4  # one beside each step, at least
        assert await numbers(store) == [number, *appended]
