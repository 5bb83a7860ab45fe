"""protocol_bridge: there and back, and nothing that counts is lost."""

from __future__ import annotations

import json
import uuid

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.pattern import Answer, Fate
from agentcanvas.patterns.protocol_bridge_mcp_acp_a2a_anp import Options
from agentcanvas.protocol.dialect import DialectName, detect
from agentcanvas.protocol.dialects import decode, translate
from agentcanvas.protocol.records import FailureClass
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P20")]

NAME = "protocol_bridge_mcp_acp_a2a_anp"


async def bridged(
    options: Options | None = None, request: str = "Wash up", seconds: Part = None, **others: Part
) -> Log:
    stage = {"seconds": seconds} if seconds else {}
    log = await play(NAME, {"local": ["ann", *others]}, others, options, request=request, **stage)
    assert breaches(log, NAME) == []
    return log


async def test_each_other_agent_is_asked_in_its_own_dialect() -> None:
    log = await bridged(bob="washed", cyd="dried", dee="stacked", eve="put away")
    spoken = [detect(each.text.encode()) for each in log.posted("wire")[::2]]
    assert spoken == [*DialectName, DialectName.MAC]
    assert log.posted("wire")[0].text in log.asked("bob")[0].text
    assert (log.outcome.reason, log.outcome.done) == ("answered", True)
    assert log.outcome.result == "bob: washed\n\ncyd: dried\n\ndee: stacked\n\neve: put away"


async def test_the_first_hears_every_answer_and_is_asked_nothing() -> None:
    log = await bridged(bob="washed", cyd=fails("cyd", "no cloth"))
    assert [(each.to, each.text) for each in log.verbs("tell")] == [
        ("ann", "bob: washed"),
        ("ann", "cyd: failed: no cloth"),
    ]


@pytest.mark.parametrize("dialect", DialectName)
@pytest.mark.parametrize("failure", [None, FailureClass.RATE_LIMIT, FailureClass.TIMEOUT])
async def test_a_failure_keeps_its_class_in_every_dialect(
    dialect: DialectName, failure: FailureClass | None
) -> None:
    lost = Answer[None]("bob", "", Fate.FAILED, "no water", failure=failure)
    log = await bridged(Options(dialects=(dialect,)), bob=lost)
    back = decode(log.posted("wire")[1].text.encode()).envelope
    assert getattr(back.body, "error_code", None) == (failure or Fate.FAILED).upper()
    assert log.outcome.reason == f"failed: bob: {failure or 'failed'}"
    assert not log.outcome.done


@pytest.mark.parametrize("over", DialectName)
@pytest.mark.parametrize("dialect", DialectName)
async def test_there_and_back_over_any_other_dialect_is_the_same(
    dialect: DialectName, over: DialectName
) -> None:
    log = await bridged(Options(dialects=(dialect,)), bob="washed", cyd=fails("cyd", "no"))
    for each in log.posted("wire"):
        wire = each.text.encode()
        there = decode(wire).envelope
        back = decode(translate(translate(wire, over), dialect)).envelope
        assert (back.id, back.correlation_id, back.reply_to) == (
            there.id,
            there.correlation_id,
            there.reply_to,
        )
        assert getattr(back.body, "error_code", None) == getattr(there.body, "error_code", None)


async def test_all_messages_of_one_request_are_one_conversation() -> None:
    log = await bridged(seconds=lambda *_: 5.0, bob="washed", cyd="dried")
    envelopes = [decode(each.text.encode()).envelope for each in log.posted("wire")]
    assert len({each.correlation_id for each in envelopes}) == 1
    assert len({each.id for each in envelopes}) == 4
    assert [each.time_ms for each in envelopes] == [0, 5_000, 5_000, 10_000]


async def put_by(bridge: Part, dialect: DialectName = DialectName.MAC) -> Log:
    cast = {"local": ["ann", "bob"], "bridge": ["bea"]}
    options = Options(dialects=(dialect,))
    log = await play(NAME, cast, {"bob": "washed", "bea": bridge}, options)
    assert breaches(log, NAME) == []
    return log


def wire_in(message: str) -> str:
    return next(line for line in message.splitlines() if line.startswith("{"))


@pytest.mark.parametrize("dialect", DialectName)
async def test_a_bridge_agent_puts_a_message_in_other_words(dialect: DialectName) -> None:
    def politely(message: str) -> str:
        return wire_in(message).replace("Wash up", "Please wash up")

    log = await put_by(politely, dialect)
    assert len(log.asked("bea")) == 2
    assert "Please wash up" in log.asked("bob")[0].text
    assert (log.outcome.reason, log.outcome.result) == ("answered", "bob: washed")


async def test_a_bridge_agent_that_loses_something_is_told_once_and_then_the_rules_spell_it() -> (
    None
):
    def forgets(message: str) -> str:
        message_id = json.loads(wire_in(message))["message_id"]
        return wire_in(message).replace(message_id, str(uuid.uuid4()))

    log = await put_by(forgets)
    first, again, *_ = log.asked("bea")
    assert "It lost:" not in first.text
    assert "It lost: id." in again.text
    assert len(log.asked("bea")) == 4
    assert log.posted("wire")[0].text == wire_in(first.text)
    assert log.outcome.done


async def test_a_bridge_agent_that_talks_nonsense_loses_the_message() -> None:
    log = await put_by("Sure, I translated it!")
    assert "It lost: message." in log.asked("bea")[1].text
    assert log.outcome.done


@given(st.text(min_size=1), st.text())
def test_whatever_is_asked_and_answered_crosses(request: str, answer: str) -> None:
    async def run() -> Log:
        return await bridged(request=request, bob=answer, cyd=answer, dee=answer)

    log = anyio.run(run)
    assert log.outcome.reason == "answered"
