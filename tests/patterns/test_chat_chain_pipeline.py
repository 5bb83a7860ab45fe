"""chat_chain_pipeline: dialogues in a row, of which only the conclusions go on."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Gate, Measure
from agentcanvas.patterns.chat_chain_pipeline import DUTIES, Options
from agentcanvas.patterns.forms import Verdict
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P03")]

YES, NO = Verdict(accept=True), Verdict(accept=False, reason="smaller")


def member(name: str, *drafts: Part, review: Part = YES) -> Part:
    """Drafts when it is its stage, and a review of the next one otherwise."""
    left = list(drafts) or [f"the {name} of it"]

    def reply(message: str) -> Part:
        if "You are the" in message:
            return left.pop(0) if len(left) > 1 else left[0]
        return "an answer" if "You are asked before" in message else review

    return reply


async def chain(options: Options | None = None, stage: Part = None, **parts: Part) -> Log:
    cast = {name: [name] for name in DUTIES}
    team = {name: parts.get(name, member(name)) for name in DUTIES}
    return await play("chat_chain_pipeline", cast, team, options, **(stage or {}))


async def test_the_stages_follow_each_other_and_the_last_conclusion_is_the_result() -> None:
    log = await chain()
    assert [each.to for each in log.verbs("task")] == list(DUTIES)
    assert (log.outcome.reason, log.outcome.result) == ("concluded", "the doc_writer of it")
    assert "the designer of it" in log.verbs("task")[2].text
    assert "the planner of it" not in log.verbs("task")[2].text


async def test_the_instructor_is_the_role_before_and_for_the_first_the_one_after() -> None:
    log = await chain()
    assert [each.to for each in log.verbs("ask")] == [
        "designer",
        "planner",
        "designer",
        "coder",
        "tester",
    ]


async def test_a_refused_draft_is_made_again_with_the_remark() -> None:
    log = await chain(Options(max_rounds=3), planner=member("planner", review=NO))
    drafts = [each for each in log.verbs("task") if each.to == "designer"]
    assert len(drafts) == 3
    assert "smaller" in drafts[1].text
    assert "Your last draft:\nthe designer of it" in drafts[1].text


async def test_two_unchanged_modifications_end_the_stage() -> None:
    log = await chain(Options(max_rounds=9), planner=member("planner", review=NO))
    assert len([each for each in log.verbs("task") if each.to == "designer"]) == 3
    assert log.outcome.done


async def test_the_assistant_may_ask_back_once_before_it_answers() -> None:
    coder = member("coder", "Question: hot or cold?", "Question: really?")
    log = await chain(coder=coder)
    assert [each.to for each in log.asked("coder", "designer")][-6:].count("designer") >= 2
    assert "an answer" in [each for each in log.verbs("task") if each.to == "coder"][1].text
    assert log.posted("conclusions")[2].text == "Question: really?"


async def test_with_one_round_there_is_no_time_for_questions() -> None:
    log = await chain(Options(max_rounds=1), coder=member("coder", "Question: hot?"))
    assert log.posted("conclusions")[2].text == "Question: hot?"


async def test_a_stage_without_a_conclusion_ends_the_chain_and_keeps_the_last_one() -> None:
    log = await chain(coder=fails("coder", "no keyboard"))
    assert (log.outcome.reason, log.outcome.done) == ("coder failed: no keyboard", False)
    assert log.outcome.result == "the designer of it"


async def test_the_flows_gate_is_held_at_the_end() -> None:
    stage = {
        "ends": Ends(gates=(Gate("tests_passed"),)),
        "measures": [Measure("tests_passed", 0, holds=False)],
    }
    log = await chain(stage=stage)
    assert log.outcome.reason == "quality_gate: tests_passed >= 1 does not hold"
    assert log.outcome.result == "the doc_writer of it"
