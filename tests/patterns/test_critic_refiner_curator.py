"""critic_refiner_curator: redo from the first wrong step, and learn when it is right."""

from __future__ import annotations

import pytest

from agentcanvas.patterns.critic_refiner_curator import Flaw, Lesson, Options
from agentcanvas.patterns.forms import Steps, Verdict
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P06")]

NO, YES = Verdict(accept=False, reason="no soap"), Verdict(accept=True)
DRAFT = Steps(("fill", "wash", "stack"))


async def refined(
    options: Options | None = None, judged: bool = True, stage: Part = None, **parts: Part
) -> Log:
    cast = {
        "judge": ["judy"] if judged else [],
        "critic": ["carl"],
        "refiner": ["rita"],
        "curator": ["cora"],
    }
    team = {"judy": YES, "carl": Flaw(1, "?"), "rita": DRAFT, "cora": Lesson("Soap first")} | parts
    return await play("critic_refiner_curator", cast, team, options, **(stage or {}))


def criticised(log: Log) -> list[str]:
    return [each.text for each in log.asked("judy")]


async def test_what_is_right_at_once_is_only_judged_and_learnt() -> None:
    log = await refined()
    assert [each.to for each in log.asked()] == ["rita", "judy", "cora"]
    assert log.outcome.reason == "quality_gate: converged >= 1"
    assert [each.text for each in log.verbs("note")] == ["Soap first"]


async def test_steps_before_the_wrong_one_stay_byte_for_byte() -> None:
    log = await refined(
        judy=[NO, YES],
        carl=Flaw(3, "wet"),
        rita=[Steps(("fill ", "wash\t", "stack")), Steps(("dry", "stack"))],
    )
    assert breaches(log, "critic_refiner_curator") == []
    assert log.outcome.result == "1. fill \n2. wash\t\n3. dry\n4. stack"


async def test_the_refiner_sees_what_stays_and_what_was_wrong() -> None:
    log = await refined(judy=[NO, YES], carl=Flaw(2, "without soap"))
    again = log.asked("rita")[1].text
    assert "from step 2 on" in again
    assert "1. fill" in again
    assert "2. wash" not in again
    assert "without soap" in again


@pytest.mark.parametrize("flaw", [Flaw(0), Flaw(9, "?"), "no idea"])
async def test_a_critic_who_names_no_step_sends_it_back_to_the_first(flaw: Part) -> None:
    log = await refined(judy=[NO, YES], carl=flaw)
    assert "from step 1 on" in log.asked("rita")[1].text
    assert "no soap" in log.asked("rita")[1].text


async def test_the_last_refinement_is_judged_too_and_then_it_ends() -> None:
    log = await refined(Options(max_rounds=1), judy=[NO, YES])
    assert log.outcome.done
    never = await refined(Options(max_rounds=2), judy=NO)
    assert (never.outcome.reason, never.outcome.done) == ("max_rounds: 2", False)
    assert never.outcome.result.startswith("1. fill")
    assert not never.asked("cora")
    assert never.asked()[-1].to == "judy", "nobody asks what is wrong when nobody redoes it"


async def test_without_a_judge_the_critic_says_when_it_is_right() -> None:
    log = await refined(judged=False, carl=[Flaw(2, "soap"), Flaw(0)])
    assert breaches(log, "critic_refiner_curator") == []
    assert log.outcome.done
    assert [each.reply for each in log.verbs("check")] == ["0", "1"]


async def test_a_redraft_that_breaks_its_form_leaves_the_steps_as_they_were() -> None:
    log = await refined(judy=[NO, YES], rita=[DRAFT, "hm", "hm"])
    assert log.outcome.result == "1. fill\n2. wash\n3. stack"


async def test_without_a_draft_there_is_nothing_to_judge() -> None:
    log = await refined(rita="I would rather not")
    assert log.outcome.reason.startswith("no draft: ")
    assert not log.asked("judy")


async def test_lessons_of_before_reach_refiner_and_critic() -> None:
    log = await refined(judy=[NO, YES], stage={"memory": ["Wash up with hot water"]})
    assert "hot water" in log.asked("rita")[0].text
    assert "hot water" in log.asked("carl")[0].text


async def test_an_empty_lesson_is_not_noted() -> None:
    assert not (await refined(cora=Lesson())).verbs("note")
