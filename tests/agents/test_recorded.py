"""A recorded turn is dated, numbered and closed, whatever happens inside."""

from __future__ import annotations

from typing import NoReturn

import anyio
import pytest

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.recorded import Recorded
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Outcome, Turn, failed
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import DeadlineExceeded, PermissionDenied, SandboxError
from agentcanvas.protocol.records import (
    ErrorEvent,
    FailureClass,
    ResultEvent,
    TextEvent,
    decode_jsonl,
    encode_jsonl,
)
from tests.agents.conftest import Acting, Events, turn

pytestmark = [pytest.mark.anyio, pytest.mark.req("V1", "D40", "H8")]


async def test_events_are_dated_and_numbered_and_the_result_closes_them(
    clock: VirtualClock, events: Events
) -> None:
    async def act(_: Turn, emit: Emit) -> str:
        emit(TextEvent(text="one", **UNSTAMPED))
        await clock.sleep(2)
        emit(TextEvent(text="two", **UNSTAMPED))
        return "done"

    start, kept = clock.now_ms(), Events()
    recorded = Recorded(Acting(act), clock, kept, next_seq=5)
    result = await recorded.run(turn(), events)
    assert result.text == "done"
    assert kept == [
        TextEvent(ts=start, seq=5, text="one"),
        TextEvent(ts=start + 2000, seq=6, text="two"),
        ResultEvent(ts=start + 2000, seq=7, text="done"),
    ]
    assert events == kept
    assert decode_jsonl(encode_jsonl(kept)) == tuple(kept)
    await recorded.run(turn(), events)
    assert [event.seq for event in kept] == [5, 6, 7, 8, 9, 10]


async def test_an_answer_without_its_form_closes_as_not_ok(
    clock: VirtualClock, events: Events
) -> None:
    async def act(_: Turn, __: Emit) -> str:
        return "hm"

    asked = turn(form=JsonForm({"type": "object"}))
    result = await Recorded(Acting(act), clock, events).run(asked, Events())
    assert (result.outcome, result.ok) == (Outcome.OK, False)
    assert events == [ResultEvent(ts=clock.now_ms(), seq=0, text="hm", ok=False)]


async def test_a_failure_closes_with_its_class(clock: VirtualClock, events: Events) -> None:
    async def act(_: Turn, __: Emit) -> object:
        return failed("The key is not accepted.", FailureClass.AUTH)

    await Recorded(Acting(act), clock, events).run(turn(), Events())
    (closing,) = events.of(ErrorEvent)
    assert (closing.error_class, closing.message) == (FailureClass.AUTH, "The key is not accepted.")


@pytest.mark.parametrize(
    ("error", "error_class", "sentence"),
    [
        (SandboxError("No room left"), FailureClass.UNKNOWN, "No room left"),
        (PermissionDenied("Not yours"), FailureClass.DENIED, "Not yours"),
        (DeadlineExceeded("Too late"), FailureClass.TIMEOUT, "Too late"),
        (
            KeyError("x"),
            FailureClass.CRASH,
            "The runtime of coder-1 broke: KeyError: 'x'",
        ),
    ],
)
async def test_an_exception_becomes_a_result_without_a_traceback(
    clock: VirtualClock,
    events: Events,
    error: Exception,
    error_class: FailureClass,
    sentence: str,
) -> None:
    async def act(_: Turn, __: Emit) -> NoReturn:
        raise error

    result = await Recorded(Acting(act), clock, events).run(turn(), Events())
    assert (result.outcome, result.error_class, result.error) == (
        Outcome.FAILED,
        error_class,
        sentence,
    )
    assert len(events.of(ErrorEvent)) == 1


async def test_a_cancelled_turn_is_closed_and_stays_cancelled(
    clock: VirtualClock, events: Events
) -> None:
    async def act(_: Turn, __: Emit) -> None:
        scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        await Recorded(Acting(act), clock, events).run(turn(), Events())
    assert scope.cancelled_caught
    (closing,) = events
    assert isinstance(closing, ErrorEvent)
    assert closing.error_class is FailureClass.CANCELLED
