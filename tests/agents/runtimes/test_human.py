"""A person is asked through one inbox, with a form, a deadline and perhaps a default (D24)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import msgspec
import pytest
from msgspec import UNSET

from agentcanvas.agents.answers import JsonForm, asks_for
from agentcanvas.agents.runtime import Image, Outcome
from agentcanvas.agents.runtimes.human import HumanRuntime
from agentcanvas.clock import VirtualClock
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.records import FailureClass, TextEvent
from tests.agents.conftest import Events, turn

pytestmark = [pytest.mark.anyio, pytest.mark.req("D24")]


class Verdict(msgspec.Struct):
    decision: Literal["apply", "reject", "revise"]
    reason: str = ""


VERDICT = JsonForm.of(Verdict)


class Inbox:
    """Answers in order; when there are no more, it never does."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Sequence[Any] = answers
        self.asks: list[PersonAsk] = []

    async def __call__(self, ask: PersonAsk) -> PersonAnswer:
        self.asks.append(ask)
        if len(self.asks) > len(self._answers):
            await anyio.sleep_forever()
        return PersonAnswer(self._answers[len(self.asks) - 1], "ada")


async def test_a_turn_becomes_an_ask_and_the_answer_its_result(
    clock: VirtualClock, events: Events
) -> None:
    inbox = Inbox({"decision": "apply"})
    runtime = HumanRuntime("ada", inbox, clock, default={"decision": "reject"})
    image = Image(Path("/shots/one.png"), "image/png")
    asked = turn(form=VERDICT, timeout_s=90, task_id="T1", images=(image,))
    result = await runtime.run(asked, events)
    assert (result.ok, result.value) == (True, Verdict("apply"))
    assert inbox.asks == [
        PersonAsk(
            ask_id="i1/ask:1",
            person="ada",
            run_id=asked.run_id,
            agent_id="coder-1",
            scope="task:T1",
            text="Do it.",
            instruction=asks_for(VERDICT),
            schema=dict(VERDICT.schema),
            deadline_ms=clock.now_ms() + 90_000,
            default={"decision": "reject"},
            images=("/shots/one.png",),
        )
    ]
    assert [event.text for event in events.of(TextEvent)] == ['{"decision":"apply"}']
    assert clock.sleeping == 0


async def test_plain_text_is_asked_for_and_answered_as_text(
    clock: VirtualClock, events: Events
) -> None:
    inbox = Inbox("Use port 7717.")
    result = await HumanRuntime("ada", inbox, clock).run(turn(), events)
    assert result.text == "Use port 7717."
    (ask,) = inbox.asks
    assert (ask.scope, ask.instruction, ask.schema, ask.deadline_ms, ask.default) == (
        "turn:i1/ask:1",
        "",
        UNSET,
        UNSET,
        UNSET,
    )


async def test_an_answer_that_breaks_the_form_is_asked_for_again_with_what_is_wrong(
    clock: VirtualClock, events: Events
) -> None:
    inbox = Inbox("maybe", {"decision": "perhaps"}, {"decision": "revise", "reason": "x"})
    result = await HumanRuntime("ada", inbox, clock).run(turn(form=VERDICT), events)
    assert result.value == Verdict("revise", "x")
    assert [ask.ask_id for ask in inbox.asks] == ["i1/ask:1", "i1/ask:1#2", "i1/ask:1#3"]
    assert inbox.asks[0].problem == ""
    assert "no JSON" in inbox.asks[1].problem
    assert '"decision" must be one of' in inbox.asks[2].problem


async def test_after_three_tries_the_breach_is_the_result(
    clock: VirtualClock, events: Events
) -> None:
    inbox = Inbox(*["maybe"] * 9)
    result = await HumanRuntime("ada", inbox, clock).run(turn(form=VERDICT), events)
    assert len(inbox.asks) == 3
    assert (result.outcome, result.ok) == (Outcome.OK, False)


async def test_a_person_can_fill_in_a_text_form(clock: VirtualClock, events: Events) -> None:
    inbox = Inbox(asks_for(StandardResponse))
    result = await HumanRuntime("ada", inbox, clock).run(turn(form=StandardResponse), events)
    assert isinstance(result.value, StandardResponse)


async def test_when_the_time_is_over_the_default_is_taken_and_said(
    clock: VirtualClock, events: Events
) -> None:
    runtime = HumanRuntime("ada", Inbox(), clock, default={"decision": "reject"})
    result = await runtime.run(turn(form=VERDICT, timeout_s=3600), events)
    assert (result.ok, result.value) == (True, Verdict("reject"))
    assert result.notes == ("ada did not answer within 3600 s; the default was taken.",)
    assert clock.monotonic() == 3600


async def test_without_a_default_it_times_out(clock: VirtualClock, events: Events) -> None:
    result = await HumanRuntime("ada", Inbox(), clock).run(turn(timeout_s=60), events)
    assert (result.outcome, result.error_class) == (Outcome.TIMEOUT, FailureClass.TIMEOUT)
    assert result.error == "ada did not answer within 60 s; ask again, or give a default."


async def test_an_inbox_that_fails_is_not_hidden(clock: VirtualClock, events: Events) -> None:
    async def closed(_: PersonAsk) -> PersonAnswer:
        raise KeyError("inbox")

    with pytest.raises(KeyError):
        await HumanRuntime("ada", closed, clock).run(turn(timeout_s=60), events)


async def test_waiting_can_be_cancelled(clock: VirtualClock, events: Events) -> None:
    inbox = Inbox()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(HumanRuntime("ada", inbox, clock).run, turn(), events)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert len(inbox.asks) == 1


def test_an_ask_can_be_sent() -> None:
    ask = PersonAsk(
        ask_id="a", person="ada", run_id="r", agent_id="c", scope="task:T1", text="Well?"
    )
    sent = msgspec.json.encode(ask)
    assert b"deadline_ms" not in sent
    assert msgspec.json.decode(sent, type=PersonAsk) == ask
