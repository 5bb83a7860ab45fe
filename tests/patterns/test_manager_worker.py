"""manager_worker over a scripted stage: what the source prescribes, and what must never happen."""

from __future__ import annotations

import json

import pytest

from agentcanvas.pattern import Answer, Fate, Measure, Outcome
from agentcanvas.patterns.manager_worker import MANAGER, WORKER, ManagerWorker, Options
from agentcanvas.patterns.scripted import Reply, Said, ScriptedStage
from agentcanvas.protocol.plan import Dependency, Plan, PlannedTask

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
    return await ManagerWorker().run(stage, CAST, "mend the tests", options or Options())


def to_boss(stage: ScriptedStage) -> list[Said]:
    return [said for said in stage.record if said.to == "boss"]


async def test_every_workers_reply_reaches_the_manager() -> None:
    stage = ScriptedStage(Boss(plan(("a", "ann"), ("b", "bob"))), measures=[GREEN])
    outcome = await play(stage)
    assert outcome == Outcome("quality_gate: tests_passed", done=True, result="all is well")
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
