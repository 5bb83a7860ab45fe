"""plan_execute_observe_reflect: steps that are looked at, and rules that are kept."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Fate
from agentcanvas.patterns.forms import Steps
from agentcanvas.patterns.plan_execute_observe_reflect import Observation, Options, Reflection
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P18")]

CAST = {"planner": ["pla"], "executor": ["exe"], "observer": ["obs"], "reflector": ["ref"]}
ON, OFF, DONE = (
    Observation(progress=True),
    Observation(progress=False, seen="stains"),
    Observation(progress=True, done=True),
)


def steps(*words: str) -> Steps:
    return Steps(words)


async def looped(options: Options | None = None, stage: Part = None, **parts: Part) -> Log:
    team = {
        "pla": steps("soak", "wash"),
        "exe": "did it",
        "obs": [ON, DONE],
        "ref": Reflection(("Soak first",)),
    } | parts
    log = await play("plan_execute_observe_reflect", CAST, team, options, **(stage or {}))
    assert breaches(log, "plan_execute_observe_reflect") == []
    return log


async def test_plan_act_observe_and_reflect_once() -> None:
    log = await looped()
    assert [each.to for each in log.asked()] == ["pla", "exe", "obs", "exe", "obs", "ref"]
    assert (log.outcome.reason, log.outcome.done) == ("done", True)
    assert log.outcome.result.startswith("step-1: soak\ndid it\nSeen: ")


async def test_the_rule_is_noted_with_the_steps_it_comes_from() -> None:
    (note,) = (await looped()).verbs("note")
    assert (note.text, note.reply) == ("Soak first", "step-1, step-2")


async def test_rules_of_before_reach_the_planner() -> None:
    log = await looped(stage={"memory": ["Wash up: never scratch"]})
    assert "- Wash up: never scratch" in log.asked("pla")[0].text


async def test_three_stalls_cause_a_new_plan_that_knows_what_happened() -> None:
    log = await looped(pla=[steps("a", "b", "c", "d"), steps("e")], obs=[OFF, OFF, OFF, DONE])
    assert [each.to for each in log.asked()].count("exe") == 4
    assert "Seen: stains" in log.asked("pla")[1].text
    assert log.outcome.reason == "done"


async def test_progress_in_between_begins_the_count_anew() -> None:
    log = await looped(pla=steps("a", "b", "c", "d", "e"), obs=[OFF, OFF, ON, OFF, OFF])
    assert len(log.asked("pla")) == 1
    assert (log.outcome.reason, log.outcome.done) == ("plan carried out (max_rounds: 1)", False)


async def test_plans_that_all_stall_end_the_loop_and_are_reflected_on() -> None:
    log = await looped(pla=steps("a", "b", "c", "d"), obs=OFF)
    assert len(log.asked("pla")) == 2
    assert log.outcome.reason == "stalled: 3 steps without progress (max_rounds: 1)"
    assert log.asked()[-1].to == "ref"


async def test_steps_are_bounded_over_all_plans_of_a_loop() -> None:
    log = await looped(Options(max_steps=4), pla=steps("a", "b", "c"), obs=[OFF, OFF, OFF, ON])
    assert len(log.asked("exe")) == 4
    assert log.outcome.reason == "max_steps (max_rounds: 1)"


async def test_another_loop_plans_with_the_rule_just_learnt() -> None:
    log = await looped(Options(max_rounds=2), obs=[ON, ON, DONE])
    assert "- Soak first" in log.asked("pla")[1].text
    assert log.outcome.reason == "done"


async def test_a_step_that_fails_is_shown_to_the_observer() -> None:
    log = await looped(exe=fails("exe", "no water", Fate.TIMED_OUT))
    assert "timed_out: no water" in log.asked("obs")[0].text


async def test_an_observer_who_breaks_the_form_saw_no_progress() -> None:
    log = await looped(pla=steps("a", "b", "c"), obs="looks fine", stage=None)
    assert log.outcome.reason.startswith("stalled")


async def test_without_a_plan_it_ends_and_what_was_done_stays() -> None:
    log = await looped(pla=[steps("a", "b", "c"), "hm", "hm"], obs=OFF)
    assert log.outcome.reason.startswith("no plan: ")
    assert log.outcome.result.startswith("step-1: a")


async def test_nothing_learnt_nothing_noted() -> None:
    assert not (await looped(ref=Reflection())).verbs("note")
    assert not (await looped(ref="everything was fine")).verbs("note")
