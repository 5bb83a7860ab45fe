"""Both clocks keep the same promises; the virtual one does so without waiting (D5)."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.clock import Clock, SystemClock, VirtualClock, rfc3339

pytestmark = [pytest.mark.anyio, pytest.mark.req("D5")]

HOUR = 3600.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 1)))
def test_rfc3339_text_reads_back_to_the_millisecond(moment: datetime) -> None:
    ms = int(moment.timestamp()) * 1000 + moment.microsecond // 1000
    text = rfc3339(ms)
    assert text.endswith("Z")
    assert len(text) == len("2026-01-31T09:30:00.000Z")
    assert datetime.fromisoformat(text) == moment.replace(
        microsecond=moment.microsecond // 1000 * 1000
    )


async def test_the_system_clock_never_wakes_a_sleeper_early() -> None:
    clock: Clock = SystemClock()
    for _ in range(20):
        deadline = clock.monotonic() + 0.0007
        await clock.sleep_until(deadline)
        assert clock.monotonic() >= deadline


async def test_the_system_clock_tells_the_same_moment_as_number_and_as_text() -> None:
    clock = SystemClock()
    before, text, after = clock.now_ms(), clock.now(), clock.now_ms()
    assert rfc3339(before) <= text <= rfc3339(after)


async def test_a_deadline_in_the_past_still_lets_others_run(clock: VirtualClock) -> None:
    for each in (clock, SystemClock()):
        turns: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_note, turns, "other")
            await anyio.lowlevel.checkpoint()
            await each.sleep(-1)
            turns.append("sleeper")
        assert turns == ["other", "sleeper"]


async def _note(turns: list[str], turn: str) -> None:
    turns.append(turn)


async def test_an_hour_passes_at_once_when_all_tasks_wait(clock: VirtualClock) -> None:
    started_ms = clock.now_ms()
    await clock.sleep(HOUR)
    assert clock.monotonic() == HOUR
    assert clock.now_ms() - started_ms == 3_600_000


async def test_sleepers_wake_in_the_order_of_their_deadlines(clock: VirtualClock) -> None:
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as group:
        for name, seconds in [("c", 3.0), ("a", 1.0), ("b", 2.0), ("a2", 1.0)]:
            group.start_soon(sleeper, name, seconds)
    assert woken == [("a", 1.0), ("a2", 1.0), ("b", 2.0), ("c", 3.0)]


async def test_the_clock_stands_still_while_a_task_can_run(clock: VirtualClock) -> None:
    seen: list[float] = []

    async def worker() -> None:
        for _ in range(500):
            await anyio.lowlevel.checkpoint()
            seen.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, HOUR)
        group.start_soon(worker)
    assert set(seen) == {0.0}
    assert clock.monotonic() == HOUR


async def test_a_conversation_over_a_real_socket_is_over_before_the_clock_jumps(
    clock: VirtualClock,
) -> None:
    heard_at: list[float] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def talk() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(50):
            writer.write(b"hello\n")
            await reader.readline()
            heard_at.append(clock.monotonic())
        writer.close()
        await writer.wait_closed()

    async with server, anyio.create_task_group() as group:
        group.start_soon(clock.sleep, HOUR)
        await talk()
    assert clock.monotonic() == HOUR
    assert heard_at == [0.0] * 50


async def test_a_held_clock_waits_for_the_thread_that_works_for_the_loop(
    clock: VirtualClock,
) -> None:
    loop = asyncio.get_running_loop()
    seen: list[tuple[str, float]] = []

    async def look() -> None:
        seen.append(("looked", clock.monotonic()))

    def call_the_idle_loop_again_and_again() -> None:
        for _ in range(20):
            asyncio.run_coroutine_threadsafe(look(), loop).result()

    async def sleeper() -> None:
        await clock.sleep(1)
        seen.append(("slept", clock.monotonic()))

    async with anyio.create_task_group() as group:
        group.start_soon(sleeper)
        clock.hold()
        try:
            await anyio.to_thread.run_sync(call_the_idle_loop_again_and_again)
        finally:
            clock.release()
    assert seen == [("looked", 0.0)] * 20 + [("slept", 1.0)]


async def test_without_jumps_time_moves_only_by_advance() -> None:
    clock = VirtualClock(jumps=False)
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(ticker)
        await anyio.wait_all_tasks_blocked()
        assert clock.sleeping == 1
        await clock.advance(35)
        assert ticks == [10.0, 20.0, 30.0]
        assert clock.monotonic() == 35.0
        await clock.advance(5)
        assert ticks == [10.0, 20.0, 30.0, 40.0]
        group.cancel_scope.cancel()


async def test_advance_does_not_run_past_its_target_on_a_jumping_clock(clock: VirtualClock) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, HOUR)
        await clock.advance(60)
        assert clock.monotonic() == 60.0
    assert clock.monotonic() == HOUR


async def test_advance_waits_for_a_held_clock_between_two_sleepers(clock: VirtualClock) -> None:
    may_finish = threading.Event()
    seen: list[float] = []

    async def first() -> None:
        await clock.sleep(1)
        clock.hold()
        try:
            may_finish.set()
            await anyio.to_thread.run_sync(may_finish.wait)
        finally:
            clock.release()
        seen.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        group.start_soon(clock.sleep, 2)
        await clock.advance(5)
    assert seen == [1.0]


async def test_a_cancelled_sleeper_does_not_hold_up_or_wake_anything(clock: VirtualClock) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 1)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert clock.sleeping == 0
    await clock.sleep(HOUR)
    assert clock.monotonic() == HOUR


async def test_setting_the_wall_clock_moves_no_deadline(clock: VirtualClock) -> None:
    async def set_back() -> None:
        await clock.sleep(1)
        clock.set_wall(0)

    async with anyio.create_task_group() as group:
        group.start_soon(set_back)
        await clock.sleep(10)
    assert clock.monotonic() == 10.0
    assert clock.now_ms() == 9_000
    assert clock.now() == "1970-01-01T00:00:09.000Z"


def test_a_clock_left_in_the_middle_of_a_wait_serves_another_loop(clock: VirtualClock) -> None:
    async def abandon() -> None:
        waiting = asyncio.ensure_future(clock.sleep(HOUR))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(abandon())
    asyncio.run(clock.sleep(1))
    assert clock.monotonic() == 1.0
