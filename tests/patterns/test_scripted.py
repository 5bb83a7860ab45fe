"""The Stage for tests keeps the promises of the real one that a pattern can see."""

from __future__ import annotations

import msgspec
import pytest

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Ask, Ends, Fate, Gate, Measure, Stage, Work
from agentcanvas.patterns.scripted import ScriptedStage
from agentcanvas.protocol.plan import Dependency

pytestmark = [pytest.mark.anyio, pytest.mark.req("D4")]


def echo(to: str, message: str) -> str:
    return f"{to}: {message}"


async def test_it_is_a_stage() -> None:
    stage: Stage = ScriptedStage(echo)
    assert (await stage.ask("ann", "hi")).text == "ann: hi"


@pytest.mark.parametrize("reply", ['{"choice": "yes"}', "Yes.", '"yes"'])
async def test_a_decision_is_one_of_the_choices(reply: str) -> None:
    answer = await ScriptedStage(lambda *_: reply).decide("ann", "well?", ["yes", "no"])
    assert (answer.fate, answer.value) == (Fate.DONE, "yes")


async def test_another_answer_is_asked_for_once_more_and_then_fails() -> None:
    stage = ScriptedStage(lambda *_: "perhaps")
    answer = await stage.decide("ann", "well?", ["yes", "no"])
    assert (answer.fate, answer.value) == (Fate.FAILED, None)
    assert [said.text for said in stage.record] == [
        "well?",
        "well?\n\nAnswer with one of: yes, no.",
    ]


async def test_work_that_does_not_land_is_a_candidate_until_it_is_landed() -> None:
    stage = ScriptedStage(echo, verdicts={"c2": Fate.REJECTED})
    asks = [Ask("ann", "a", Work("a"), land=False), Ask("bob", "b", Work("b"), land=False)]
    one, other = await stage.ask_all(asks)
    assert one.proposal is not None
    assert other.proposal is not None
    assert [(await stage.land(ref)).fate for ref in (one.proposal, other.proposal)] == [
        Fate.DONE,
        Fate.REJECTED,
    ]


async def test_a_board_keeps_the_latest_of_a_topic() -> None:
    stage = ScriptedStage(echo, keep_last_n=2)
    for text in "abc":
        await stage.post("news", text, by="ann")
    await stage.post("other", "d")
    assert [(entry.number, entry.text) for entry in await stage.read("news")] == [
        (2, "b"),
        (3, "c"),
    ]


async def test_rounds_and_gates_are_the_flows() -> None:
    ends = Ends(rounds=2, gates=(Gate("cost", "<=", 3),))
    stage = ScriptedStage(echo, ends=ends, measures=[Measure("cost", 4, holds=True)])
    assert len([round_ async for round_ in stage.rounds(5)]) == 2
    assert not (await stage.check("cost")).holds


async def test_a_limit_of_turns_ends_the_verb_that_meets_it() -> None:
    stage = ScriptedStage(echo, turns=1)
    await stage.ask("ann", "a")
    with pytest.raises(StageEnded):
        await stage.ask_all([Ask("ann", "b")])


async def test_a_dependency_outside_the_batch_was_met_before() -> None:
    stage = ScriptedStage(echo)
    (answer,) = await stage.ask_all([Ask("ann", "b", Work("b", (Dependency("a"),)))])
    assert answer.done


async def test_a_person_who_breaks_the_form_is_told_once() -> None:
    class Form(msgspec.Struct):
        size: int

    given = [b'{"size": "big"}', b'{"size": 3}']
    stage = ScriptedStage(echo, person=lambda *_: given.pop(0))
    answer = await stage.confirm(Form, Form(1), "how big?")
    assert answer.value == Form(3)
    assert "does not have the form" in stage.record[1].text


async def test_memory_is_looked_through() -> None:
    stage = ScriptedStage(echo, memory=["Tabs, not spaces", "Use pytest"])
    assert await stage.recall("PYTEST") == ("Use pytest",)
