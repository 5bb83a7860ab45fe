"""manager_worker over a scripted stage: what the source prescribes, and what must never happen."""

from __future__ import annotations

import json

import pytest

from agentcanvas.pattern import Answer, Ends, Fate, Gate, Measure, Outcome
from agentcanvas.patterns.manager_worker import MANAGER, WORKER, ManagerWorker, Options
from agentcanvas.patterns.scripted import Reply, Said, ScriptedStage
from agentcanvas.protocol.plan import Dependency, Plan, PlannedTask
from agentcanvas.protocol.records import FailureClass

pytestmark = [pytest.mark.anyio, pytest.mark.req("P01", "D20", "C2")]

CAST = {MANAGER: ("boss",), WORKER: ("ann", "bob")}
GREEN = Measure("tests_passed", 1, holds=True)
RED = Measure("tests_passed", 0, holds=False, detail="2 of 9 tests fail")


def plan(*tasks: tuple[str, str], after: str | None = None) -> str:
    """A plan as the manager writes it; ``after`` makes the last task wait for another."""
    made: list[dict[str, object]] = [
        {"task_id": id_, "agent": agent, "description": f"do {id_}", "scope": [f"{id_}/**"]}
        for id_, agent in tasks
    ]
    if after:
        made[-1]["depends_on"] = [{"task_id": after}]
    return json.dumps({"tasks": made})


class Boss:
    """Hands out plans in turn, and integrates."""

    def __init__(self, *plans: str, fates: dict[str, Fate] | None = None) -> None:
        self._plans = list(plans)
        self._fates = fates or {}

    def __call__(self, to: str, message: str) -> Reply:
        if to == "boss":
            return self._plans.pop(0) if "Split this request" in message else "all is well"
        task = message.removeprefix("do ")
        fate = self._fates.get(task, Fate.DONE)
        return Answer(to, f"{task} by {to}", fate, "" if fate is Fate.DONE else f"{task} is bad")


async def play(stage: ScriptedStage, options: Options | None = None) -> Outcome:
    return await stage.perform(ManagerWorker(), CAST, "mend the tests", options or Options())


def to_boss(stage: ScriptedStage) -> list[Said]:
    return [said for said in stage.record if said.to == "boss"]


async def test_every_workers_reply_reaches_the_manager() -> None:
    stage = ScriptedStage(Boss(plan(("a", "ann"), ("b", "bob"))), measures=[GREEN])
    outcome = await play(stage)
    assert outcome == Outcome("quality_gate: tests_passed >= 1", done=True, result="all is well")
    report = to_boss(stage)[-1].text
    assert "a by ann" in report
    assert "b by bob" in report


async def test_a_failed_gate_starts_round_two_and_never_round_three() -> None:
    plans = [plan((f"t{n}", "ann")) for n in range(5)]
    stage = ScriptedStage(Boss(*plans), measures=[RED, RED, RED])
    outcome = await play(stage)
    assert outcome.reason == "max_rounds: 2"
    assert not outcome.done
    assert outcome.result == "all is well"
    assert [said.round for said in stage.record if said.verb == "check"] == [1, 2]


async def test_the_second_plan_is_told_why_the_gate_failed_and_which_ids_are_taken() -> None:
    stage = ScriptedStage(Boss(plan(("a", "ann")), plan(("b", "ann"))), measures=[RED, GREEN])
    assert (await play(stage)).done
    second = next(said for said in to_boss(stage) if said.round == 2).text
    assert "2 of 9 tests fail" in second
    assert "These task ids are taken: a." in second


async def test_a_rejected_task_goes_back_to_planning_once() -> None:
    boss = Boss(plan(("a", "ann"), ("b", "bob")), plan(("c", "bob")), fates={"b": Fate.REJECTED})
    stage = ScriptedStage(boss, measures=[GREEN])
    assert (await play(stage)).done
    replan = to_boss(stage)[1].text
    assert "b by bob: rejected: b is bad" in replan
    tasks = [said.text for said in stage.record if said.verb == "task"]
    assert tasks == ["do a", "do b", "do c"]


async def test_a_task_is_not_asked_when_what_it_needs_failed() -> None:
    first = plan(("a", "ann"), ("b", "bob"), after="a")
    boss = Boss(first, plan(("c", "bob")), fates={"a": Fate.FAILED})
    stage = ScriptedStage(boss, measures=[GREEN])
    await play(stage)
    assert [said.text for said in stage.record if said.verb == "task"] == ["do a", "do c"]
    assert "b by bob: skipped: a did not end well" in to_boss(stage)[1].text


async def test_a_plan_that_cannot_be_carried_out_is_asked_for_once_more() -> None:
    stage = ScriptedStage(Boss(plan(("a", "eve")), plan(("a", "ann"))), measures=[GREEN])
    assert (await play(stage)).done
    assert "a goes to eve, who is not here; use ann or bob" in to_boss(stage)[1].text


async def test_two_bad_plans_end_the_interaction_with_the_reason() -> None:
    stage = ScriptedStage(Boss(plan(("a", "eve")), plan(("a", "eve"))))
    outcome = await play(stage)
    assert not outcome.done
    assert outcome.reason.startswith("no plan: a goes to eve")
    assert not [said for said in stage.record if said.verb == "task"]


async def test_an_answer_that_is_no_plan_ends_it_after_asking_once_more() -> None:
    stage = ScriptedStage(Boss("well, let me think", "I would rather not"))
    outcome = await play(stage)
    assert not outcome.done
    assert "does not have the form" in outcome.reason
    assert len(to_boss(stage)) == 2


async def test_a_ready_plan_is_carried_out_without_asking_for_one() -> None:
    ready = Plan(
        (
            PlannedTask("a", "ann", "do a", scope=("a/**",)),
            PlannedTask("b", "bob", "do b", (Dependency("a"),)),
        )
    )
    stage = ScriptedStage(Boss(), measures=[GREEN])
    assert (await play(stage, Options(plan=ready))).done
    assert [said.verb for said in stage.record] == ["task", "task", "ask", "check"]


async def test_tasks_that_stay_undone_are_not_made_good_by_a_green_gate() -> None:
    """The workspace may be green because nothing landed."""
    plans = [plan((f"t{n}", "ann")) for n in range(4)]
    bad = {f"t{n}": Fate.REJECTED for n in range(4)}
    stage = ScriptedStage(Boss(*plans, fates=bad), measures=[GREEN, GREEN])
    outcome = await play(stage)
    assert (outcome.reason, outcome.done) == ("max_rounds: 2", False)


async def test_the_flows_ends_come_before_the_options() -> None:
    plans = [plan((f"t{n}", "ann")) for n in range(9)]
    ends = Ends(rounds=1, gates=(Gate("score", ">=", 0.7),))
    low, high = Measure("score", 0.5, holds=True), Measure("score", 0.7, holds=False)
    outcome = await play(ScriptedStage(Boss(*plans), measures=[low], ends=ends))
    assert outcome == Outcome("max_rounds: 1", done=False, result="all is well")
    outcome = await play(ScriptedStage(Boss(*plans), measures=[high], ends=ends))
    assert outcome == Outcome("quality_gate: score >= 0.7", done=True, result="all is well")


async def test_a_limit_keeps_what_the_workers_reported() -> None:
    boss = Boss(plan(("a", "ann"), ("b", "bob")))
    outcome = await play(ScriptedStage(boss, turns=3))
    assert (outcome.reason, outcome.done) == ("budget: no more turns", False)
    assert "a by ann" in outcome.result
    assert "b by bob" in outcome.result


# -- without a manager ----------------------------------------------------------------------------


def alone(*workers: str) -> dict[str, tuple[str, ...]]:
    return {WORKER: workers}


async def test_without_a_manager_the_only_worker_gets_the_whole_request() -> None:
    stage = ScriptedStage(lambda _, message: f"did: {message}", measures=[GREEN])
    outcome = await stage.perform(ManagerWorker(), alone("ann"), "mend the tests", Options())
    assert outcome.done
    assert outcome.result == "- task-1 by ann: done\n  did: mend the tests"
    assert [(said.verb, said.to) for said in stage.record] == [("task", "ann"), ("check", "")]


async def test_without_a_manager_a_failed_gate_gives_the_worker_a_second_round() -> None:
    stage = ScriptedStage(lambda *_: "did it", measures=[RED, GREEN])
    assert (await stage.perform(ManagerWorker(), alone("ann"), "mend it", Options())).done
    second = [said.text for said in stage.record if said.verb == "task"][1]
    assert second.startswith("mend it")
    assert "2 of 9 tests fail" in second


async def test_without_a_manager_several_workers_need_a_plan() -> None:
    stage = ScriptedStage(lambda *_: "did it")
    outcome = await stage.perform(ManagerWorker(), alone("ann", "bob"), "mend it", Options())
    assert not outcome.done
    assert "2 workers and no manager" in outcome.reason
    assert not stage.record


async def test_without_a_manager_a_rejection_ends_it_with_its_reason() -> None:
    stage = ScriptedStage(
        lambda to, _: Answer(to, "did it", Fate.REJECTED, "not what I meant"), measures=[GREEN]
    )
    outcome = await stage.perform(ManagerWorker(), alone("ann"), "mend it", Options())
    assert (outcome.reason, outcome.done) == ("rejected: task-1: not what I meant", False)
    assert len([said for said in stage.record if said.verb == "task"]) == 1


async def test_without_a_manager_a_ready_plan_for_several_is_tried_once() -> None:
    ready = Plan(
        (
            PlannedTask("a", "ann", "do a", scope=("a",)),
            PlannedTask("b", "bob", "do b", scope=("b",)),
        )
    )
    stage = ScriptedStage(lambda *_: "did it", measures=[RED])
    outcome = await stage.perform(
        ManagerWorker(), alone("ann", "bob"), "mend it", Options(plan=ready)
    )
    assert (outcome.reason, outcome.done) == (
        "quality_gate: tests_passed >= 1 does not hold",
        False,
    )
    assert "- a by ann: done" in outcome.result


# -- tasks that are too big -----------------------------------------------------------------------


class BigTask(Boss):
    """As the other, but ``t`` runs into a limit of its turn."""

    def __call__(self, to: str, message: str) -> Reply:
        if message == "do t":
            return Answer(to, "", Fate.FAILED, "30 turns", failure=FailureClass.TURN_LIMIT)
        return super().__call__(to, message)


async def test_a_task_that_is_too_big_is_split_once_with_new_ids() -> None:
    first = plan(("t", "ann"), ("after", "bob"), after="t")
    stage = ScriptedStage(BigTask(first, plan(("t1", "ann"), ("t2", "bob"))), measures=[GREEN])
    assert (await play(stage)).done
    tasks = [said.text for said in stage.record if said.verb == "task"]
    assert tasks == ["do t", "do t1", "do t2"]
    split = to_boss(stage)[1].text
    assert "These tasks were too big for one turn:\n- t: do t\n" in split
    assert "These task ids are taken: after, t." in split
    assert len(to_boss(stage)) == 3, "a plan, a split, a summary"


async def test_parts_that_fail_go_back_to_planning_like_anything_else_but_are_not_split() -> None:
    boss = BigTask(
        plan(("t", "ann")), plan(("u", "ann")), plan(("v", "ann")), fates={"u": Fate.FAILED}
    )
    stage = ScriptedStage(boss, measures=[GREEN])
    assert (await play(stage)).done
    asked = [said.text for said in to_boss(stage)]
    assert ["too big" in text for text in asked] == [False, True, False, False]


async def test_a_rejected_task_beside_one_that_is_split_is_planned_again_too() -> None:
    boss = BigTask(
        plan(("t", "ann"), ("r", "bob")),
        plan(("t1", "ann")),
        plan(("r1", "bob")),
        fates={"r": Fate.REJECTED},
    )
    stage = ScriptedStage(boss, measures=[GREEN])
    assert (await play(stage)).done
    tasks = [said.text for said in stage.record if said.verb == "task"]
    assert tasks == ["do t", "do r", "do t1", "do r1"]


# -- a person looks at the plan -------------------------------------------------------------------


async def test_a_person_may_change_the_plan_before_it_starts() -> None:
    def person(title: str, value: bytes) -> bytes:
        assert "- a by ann: do a\n  may change a/**" in title
        return value.replace(b'"ann"', b'"bob"')

    stage = ScriptedStage(Boss(plan(("a", "ann"))), measures=[GREEN], person=person)
    assert (await play(stage)).done
    assert [said.to for said in stage.record if said.verb == "task"] == ["bob"]


async def test_a_declined_plan_ends_it_before_anything_is_done() -> None:
    stage = ScriptedStage(Boss(plan(("a", "ann"))), person=lambda *_: None)
    outcome = await play(stage)
    assert (outcome.reason, outcome.done) == ("plan rejected: declined", False)
    assert not [said for said in stage.record if said.verb == "task"]


async def test_an_edit_that_cannot_be_carried_out_comes_back_with_its_problems_three_times() -> (
    None
):
    titles: list[str] = []

    def person(title: str, value: bytes) -> bytes:
        titles.append(title)
        return value.replace(b'"ann"', b'"eve"')

    stage = ScriptedStage(Boss(plan(("a", "ann"))), person=person)
    outcome = await play(stage)
    assert outcome.reason.startswith("no plan: a goes to eve")
    assert len(titles) == 3
    assert "cannot be carried out" not in titles[0]
    assert "This plan cannot be carried out:\n- a goes to eve, who is not here" in titles[1]


async def test_a_second_look_can_mend_the_plan() -> None:
    edits = [(b'"ann"', b'"eve"'), (b'"eve"', b'"bob"')]
    stage = ScriptedStage(
        Boss(plan(("a", "ann"))),
        measures=[GREEN],
        person=lambda _, value: value.replace(*edits.pop(0)),
    )
    assert (await play(stage)).done
    assert [said.to for said in stage.record if said.verb == "task"] == ["bob"]


async def test_plan_only_ends_with_the_plan_as_text() -> None:
    stage = ScriptedStage(Boss(plan(("a", "ann"), ("b", "bob"), after="a")))
    outcome = await play(stage, Options(plan_only=True))
    assert outcome == Outcome(
        "plan_only",
        done=True,
        result="- a by ann: do a\n  may change a/**\n- b by bob (after a): do b\n  may change b/**",
    )
    assert not [said for said in stage.record if said.verb == "task"]
