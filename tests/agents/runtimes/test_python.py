"""Any callable can be an agent; what it raises is a sentence, and its thread cannot disturb."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.limited import Limited
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Outcome, Turn, TurnResult, failed
from agentcanvas.agents.runtimes.python import PythonRuntime
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import PermissionDenied, ValidationError
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.records import FailureClass, RawEvent, TextEvent
from tests.agents.conftest import Events, turn

pytestmark = pytest.mark.anyio


class Vote(msgspec.Struct):
    choice: str


async def later(turn: Turn) -> str:
    await anyio.lowlevel.checkpoint()
    return turn.prompt.upper()


def at_once(turn: Turn) -> str:
    return turn.prompt.upper()


class Reviewer:
    async def __call__(self, turn: Turn, emit: Emit) -> str:
        emit(TextEvent(text="hm", **UNSTAMPED))
        return turn.prompt.upper()

    def method(self, turn: Turn, *, emit: Emit) -> str:
        emit(TextEvent(text="hm", **UNSTAMPED))
        return turn.prompt.upper()


async def prefixed(prefix: str, turn: Turn, emit: Emit) -> str:
    emit(TextEvent(text="hm", **UNSTAMPED))
    return prefix + turn.prompt.upper()


def deferred(turn: Turn, emit: Emit) -> Awaitable[str]:
    return prefixed("", turn, emit)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (later, 0),
        (at_once, 0),
        (lambda _turn: "DO IT.", 0),
        (Reviewer(), 1),
        (Reviewer().method, 1),
        (partial(prefixed, ""), 1),
        (deferred, 1),
    ],
)
async def test_functions_methods_and_objects_answer(
    function: Callable[..., Any], said: int, clock: VirtualClock, events: Events
) -> None:
    result = await PythonRuntime(function, clock).run(turn(), events)
    assert (result.outcome, result.text) == (Outcome.OK, "DO IT.")
    assert len(events) == said


async def test_data_and_text_forms_are_answers_too(clock: VirtualClock, events: Events) -> None:
    response = StandardResponse(intent="Do it", plan=("Do it",))
    result = await PythonRuntime(lambda _turn: response, clock).run(
        turn(form=StandardResponse), events
    )
    assert result.value is response
    assert result.text.startswith("1. Intent\nDo it")
    vote = PythonRuntime(lambda _turn: {"choice": "a"}, clock)
    result = await vote.run(turn(form=JsonForm.of(Vote)), events)
    assert (result.text, result.value) == ('{"choice":"a"}', Vote("a"))
    breach = await PythonRuntime(lambda _turn: {"chose": 1}, clock).run(
        turn(form=JsonForm.of(Vote)), events
    )
    assert (breach.ok, breach.breach) == (False, '"choice" is missing: add it.')
    assert (await PythonRuntime(lambda _turn: None, clock).run(turn(), events)).text == ""


async def test_a_whole_result_is_passed_on(clock: VirtualClock, events: Events) -> None:
    given = failed("Not today.", FailureClass.DENIED)
    result: TurnResult = await PythonRuntime(lambda _turn: given, clock).run(turn(), events)
    assert result is given


def broken(turn: Turn) -> str:
    raise ValueError("no such\nthing.")


async def test_an_exception_is_a_sentence_and_its_traceback_is_in_the_transcript(
    clock: VirtualClock, events: Events
) -> None:
    result = await PythonRuntime(broken, clock).run(turn(), events)
    assert (result.outcome, result.error_class) == (Outcome.FAILED, FailureClass.CRASH)
    assert result.error == "broken raised ValueError: no such thing."
    assert "Traceback" not in result.error
    assert any("in broken" in event.line for event in events.of(RawEvent))


async def test_an_error_of_ours_speaks_for_itself(clock: VirtualClock, events: Events) -> None:
    def refuse(turn: Turn) -> str:
        raise PermissionDenied("Not yours to change")

    result = await PythonRuntime(refuse, clock).run(turn(), events)
    assert result.error.endswith("refuse: Not yours to change")
    assert events == []


async def test_an_answer_that_is_no_data_is_named(clock: VirtualClock, events: Events) -> None:
    result = await PythonRuntime(lambda _turn: object(), clock).run(turn(), events)
    assert result.outcome is Outcome.FAILED
    assert "cannot be written as JSON" in result.error


@pytest.mark.parametrize("function", [lambda: "", lambda _turn, _other: "", "text"])
def test_what_cannot_be_called_with_a_turn_is_refused(
    function: object, clock: VirtualClock
) -> None:
    with pytest.raises(ValidationError, match="cannot be an agent"):
        PythonRuntime(function, clock)  # type: ignore[arg-type]  # that is what is tested


async def test_one_that_never_answers_is_ended_by_its_limit(
    clock: VirtualClock, events: Events
) -> None:
    async def never(turn: Turn) -> None:
        await anyio.sleep_forever()

    limited = Limited(PythonRuntime(never, clock), clock)
    result = await limited.run(turn(timeout_s=60), events)
    assert result.outcome is Outcome.TIMEOUT
    assert clock.monotonic() == 60


async def test_a_thread_left_behind_can_say_nothing_any_more(
    clock: VirtualClock, events: Events
) -> None:
    go_on, ended = threading.Event(), threading.Event()

    def blocking(turn: Turn, emit: Emit) -> str:
        emit(TextEvent(text="begun", **UNSTAMPED))
        go_on.wait(30)
        emit(TextEvent(text="too late", **UNSTAMPED))
        ended.set()
        return "too late"

    def when_begun(event: object) -> None:
        events.append(event)  # type: ignore[arg-type]  # whatever is said
        scope.cancel()

    with anyio.CancelScope() as scope:
        await PythonRuntime(blocking, clock).run(turn(), when_begun)
    assert scope.cancelled_caught
    go_on.set()
    assert await anyio.to_thread.run_sync(ended.wait, 30)
    assert [event.text for event in events.of(TextEvent)] == ["begun"]


@pytest.mark.req("D5")
async def test_a_virtual_clock_stands_still_while_a_thread_works(
    clock: VirtualClock, events: Events
) -> None:
    asleep = threading.Event()

    def slow(turn: Turn) -> str:
        asleep.wait(0.05)
        return "done"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 3600)
        assert (await PythonRuntime(slow, clock).run(turn(), events)).text == "done"
        assert clock.monotonic() == 0
