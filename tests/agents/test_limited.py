"""Limits hold on the clock, long turns report, and nothing of a stopped turn is lost."""

from __future__ import annotations

import anyio
import pytest

from agentcanvas.agents.limited import Limited, Progress
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Outcome, Turn
from agentcanvas.clock import VirtualClock
from agentcanvas.protocol.limits import TaskLimits
from agentcanvas.protocol.records import (
    ChangeStatus,
    FailureClass,
    FileChangeEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    Usage,
    UsageEvent,
)
from tests.agents.conftest import Acting, Events, turn

pytestmark = [pytest.mark.anyio, pytest.mark.req("D32")]


async def test_a_turn_in_time_is_not_touched(clock: VirtualClock, events: Events) -> None:
    async def act(_: Turn, emit: Emit) -> str:
        await clock.sleep(59)
        emit(TextEvent(text="hm", **UNSTAMPED))
        return "done"

    result = await Limited(Acting(act), clock).run(turn(timeout_s=60, silent_s=60), events)
    assert (result.outcome, result.text) == (Outcome.OK, "done")
    assert clock.monotonic() == 59
    assert clock.sleeping == 0
    assert len(events) == 1


async def test_one_that_never_answers_times_out_with_what_it_said(
    clock: VirtualClock, events: Events
) -> None:
    closed = []

    async def act(_: Turn, emit: Emit) -> None:
        emit(SessionEvent(session_id="s1", **UNSTAMPED))
        emit(TextEvent(text="I begin", **UNSTAMPED))
        emit(UsageEvent(usage=Usage(input_tokens=100, output_tokens=1), **UNSTAMPED))
        emit(UsageEvent(usage=Usage(output_tokens=7), **UNSTAMPED))
        try:
            await anyio.sleep_forever()
        finally:
            closed.append(clock.monotonic())

    result = await Limited(Acting(act), clock).run(turn(timeout_s=1800), events)
    assert result.outcome is Outcome.TIMEOUT
    assert result.error_class is FailureClass.TIMEOUT
    assert result.error == "coder-1 was not done after 1800 s and was stopped."
    assert result.text == "I begin"
    assert result.session_id == "s1"
    assert result.usage == Usage(input_tokens=100, output_tokens=7)
    assert closed == [1800]


async def test_one_that_falls_silent_stalls(clock: VirtualClock, events: Events) -> None:
    async def act(__: Turn, emit: Emit) -> None:
        for _ in range(3):
            await clock.sleep(200)
            emit(ThinkingEvent(text="…", **UNSTAMPED))
        await anyio.sleep_forever()

    limited = Limited(Acting(act), clock)
    result = await limited.run(turn(timeout_s=1800, silent_s=300), events)
    assert result.outcome is Outcome.STALLED
    assert result.error == "coder-1 gave no sign for 300 s and was stopped."
    assert clock.monotonic() == 900


async def test_a_net_below_a_runtime_that_watches_itself_waits_longer(
    clock: VirtualClock, events: Events
) -> None:
    async def act(_: Turn, __: Emit) -> str:
        await clock.sleep(65)
        return "its own limit came first"

    result = await Limited(Acting(act), clock, grace_s=30).run(turn(timeout_s=60), events)
    assert result.text == "its own limit came first"


async def test_an_exception_comes_out_as_it_is(clock: VirtualClock, events: Events) -> None:
    async def act(_: Turn, __: Emit) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await Limited(Acting(act), clock).run(turn(timeout_s=1), events)


async def test_cancelling_from_outside_is_not_mistaken_for_a_limit(
    clock: VirtualClock, events: Events
) -> None:
    async def act(_: Turn, __: Emit) -> None:
        scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        await Limited(Acting(act), clock).run(turn(timeout_s=60), events)
        raise AssertionError("a cancelled turn returned")
    assert scope.cancelled_caught
    assert clock.monotonic() == 0


class Told:
    """Where progress goes."""

    def __init__(self) -> None:
        self.all: list[Progress] = []

    def __call__(self, progress: Progress) -> None:
        self.all.append(progress)


@pytest.mark.req("H8")
async def test_a_turn_over_two_minutes_reports_every_thirty_seconds(
    clock: VirtualClock, events: Events
) -> None:
    async def act(_: Turn, emit: Emit) -> str:
        emit(ToolCallEvent(name="edit", **UNSTAMPED))
        emit(FileChangeEvent(path="a.py", status=ChangeStatus.ADDED, **UNSTAMPED))
        await clock.sleep(130)
        emit(TextEvent(text="running\nthe tests", **UNSTAMPED))
        await clock.sleep(70)
        return "done"

    told = Told()
    await Limited(Acting(act), clock, told).run(turn(), events)
    assert [(each.elapsed_s, each.silent_s, each.current_step) for each in told.all] == [
        (120, 120, "edit"),
        (150, 20, "running the tests"),
        (180, 50, "running the tests"),
    ]
    assert {each.files for each in told.all} == {("a.py",)}
    assert {each.turn_id for each in told.all} == {"i1/ask:1"}


@pytest.mark.req("H8")
async def test_a_short_turn_reports_nothing(clock: VirtualClock, events: Events) -> None:
    async def act(_: Turn, __: Emit) -> str:
        await clock.sleep(119)
        return "done"

    told = Told()
    await Limited(Acting(act), clock, told).run(turn(), events)
    assert told.all == []


async def test_reporting_follows_the_settings(clock: VirtualClock, events: Events) -> None:
    async def act(_: Turn, __: Emit) -> str:
        await clock.sleep(9)
        return "done"

    told = Told()
    limits = TaskLimits(progress_after_s=4, progress_every_s=3)
    await Limited(Acting(act), clock, told, limits=limits).run(turn(), events)
    assert [each.elapsed_s for each in told.all] == [4, 7]
