"""manager_worker (P01): a manager splits, assigns, hears every report and integrates.

After AutoGen's conversable agents (arXiv 2308.08155): the manager plans, workers carry the tasks
out in parallel as far as the plan allows, every report comes back to the manager, and the result
passes a gate. A failed gate starts the next round, and there are never more than ``max_rounds``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from agentcanvas.pattern import Answer, Ask, Cast, Measure, Outcome, Role, Stage, Work
from agentcanvas.protocol.plan import Plan, PlannedTask, problems

MANAGER = "manager"
WORKER = "worker"

_TRIES_AT_A_PLAN = 2


class Options(msgspec.Struct, frozen=True):
    """``plan`` is a ready one for the first round; ``gate`` the metric the result is held to."""

    max_rounds: int = 2
    gate: str = "tests_passed"
    plan: Plan | None = None


class ManagerWorker:
    """Split, assign, report, integrate, gate."""

    id = "manager_worker"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(MANAGER, "splits the request, hears every report, integrates"),
        Role(WORKER, "carries out one task at a time", least=1, most=None, writes=True),
    )

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Plan, work and gate, a round at a time."""
        (manager,) = cast[MANAGER]
        job = _Job(manager, cast[WORKER], request, options)
        async for round_ in stage.rounds(options.max_rounds):
            outcome = await job.round(round_)
            if outcome is not None:
                return outcome
        return Outcome(f"max_rounds: {options.max_rounds}", done=False, result=job.result)


class _Job:
    """What one interaction knows from round to round."""

    def __init__(
        self, manager: str, workers: Sequence[str], request: str, options: Options
    ) -> None:
        self._manager = manager
        self._workers = tuple(workers)
        self._request = request
        self._options = options
        self._plan = options.plan
        self._used: set[str] = set()
        self._lesson = ""
        self.result = ""

    async def round(self, stage: Stage) -> Outcome | None:
        """One round; None when the gate sends it into another."""
        plan = await self._make_plan(stage)
        if isinstance(plan, str):
            return Outcome(f"no plan: {plan}", done=False, result=self.result)
        answers = await self._carry_out(stage, plan)
        if not all(answer.done for answer in answers):
            # What was rejected goes back to planning once, within the same budget (C2).
            self._lesson = _reports(plan, answers)
            again = await self._make_plan(stage)
            if not isinstance(again, str):
                self._lesson += "\n" + _reports(again, await self._carry_out(stage, again))
        else:
            self._lesson = _reports(plan, answers)
        integrated = await stage.ask(self._manager, _integrate(self._request, self._lesson))
        self.result = integrated.text
        measure = await stage.check(self._options.gate)
        if measure.holds:
            return Outcome(f"quality_gate: {measure.metric}", done=True, result=self.result)
        self._lesson += f"\n{_failed(measure)}"
        return None

    async def _make_plan(self, stage: Stage) -> Plan | str:
        """A plan that can be carried out, or why there is none."""
        ready, self._plan = self._plan, None
        if ready is not None:
            wrong = problems(ready, self._workers, taken=self._used)
            return "; ".join(wrong) if wrong else self._accept(ready)
        wrong = []
        for _ in range(_TRIES_AT_A_PLAN):
            answer = await stage.ask_for(Plan, self._manager, self._ask_for_plan(wrong))
            if answer.value is None:
                return answer.reason or "the manager gave none"
            wrong = problems(answer.value, self._workers, taken=self._used)
            if not wrong:
                return self._accept(answer.value)
        return "; ".join(wrong)

    def _accept(self, plan: Plan) -> Plan:
        self._used |= {task.task_id for task in plan.tasks}
        return plan

    async def _carry_out(self, stage: Stage, plan: Plan) -> tuple[Answer[None], ...]:
        return await stage.ask_all([_ask(task) for task in plan.tasks])

    def _ask_for_plan(self, wrong: Sequence[str]) -> str:
        parts = [
            f"Split this request into tasks for {', '.join(self._workers)}:\n{self._request}",
            "Tasks that may run at the same time must not change the same files.",
        ]
        if self._used:
            parts.append(f"These task ids are taken: {', '.join(sorted(self._used))}.")
        if self._lesson:
            parts.append(f"What happened so far:\n{self._lesson}\nPlan only what is still missing.")
        if wrong:
            parts.append("Your plan cannot be carried out:\n" + "\n".join(f"- {w}" for w in wrong))
        return "\n\n".join(parts)


def _ask(task: PlannedTask) -> Ask:
    work = Work(
        task.task_id,
        after=task.depends_on,
        scope=None if task.scope is UNSET else task.scope,
        acceptance_criteria=task.acceptance_criteria,
        testing_required=task.testing_required,
    )
    return Ask(task.agent, task.description, work)


def _reports(plan: Plan, answers: Sequence[Answer[None]]) -> str:
    """Every worker's answer, whatever became of it."""
    lines = []
    for task, answer in zip(plan.tasks, answers, strict=True):
        why = f": {answer.reason}" if answer.reason else ""
        lines.append(f"- {task.task_id} by {answer.agent}: {answer.fate}{why}\n  {answer.text}")
    return "\n".join(lines)


def _integrate(request: str, reports: str) -> str:
    return (
        f"The request was:\n{request}\n\nThe workers report:\n{reports}\n\n"
        "Say in a few lines what was achieved and what is missing."
    )


def _failed(measure: Measure) -> str:
    detail = f": {measure.detail}" if measure.detail else ""
    return f"The gate {measure.metric} does not hold (it is {measure.value:g}){detail}"
