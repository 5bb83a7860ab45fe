"""Getting a plan that can be carried out: a ready one, a manager's, or the whole request as a task.

A manager's plan that cannot be carried out is asked for once more with all that is wrong. The
person may look at it, if the run wants that, and is shown what is wrong with an edit.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentcanvas.pattern import Stage
from agentcanvas.protocol.plan import Plan, PlannedTask, problems

TRIES_AT_A_PLAN = 2
_LOOKS_AT_A_PLAN = 3
"""How often a person is shown an edited plan that cannot be carried out."""


class NoPlan(msgspec.Struct, frozen=True):
    """Why nothing can be carried out."""

    reason: str


class Planning:
    """The plans of one interaction; every task id is used once."""

    def __init__(
        self,
        manager: str | None,
        workers: Sequence[str],
        request: str,
        *,
        ready: Plan | None,
        max_tasks: int,
    ) -> None:
        self._manager = manager
        self._workers = workers
        self._request = request
        self._ready = ready
        self._max_tasks = max_tasks
        self._used: set[str] = set()

    async def plan(self, stage: Stage, *, lesson: str = "", big: str = "") -> Plan | NoPlan:
        """The next plan: what happened so far is known, and which tasks are to be split."""
        plan = await self._make(stage, lesson, big)
        if isinstance(plan, Plan):
            plan = await self._show(stage, plan)
        if isinstance(plan, Plan):
            self._used |= {task.task_id for task in plan.tasks}
        return plan

    async def _make(self, stage: Stage, lesson: str, big: str) -> Plan | NoPlan:
        ready, self._ready = self._ready, None
        if ready is not None:
            wrong = self._problems(ready)
            return _refused(wrong) if wrong else ready
        if self._manager is None:
            return self._whole_request(lesson)
        wrong = []
        for _ in range(TRIES_AT_A_PLAN):
            words = stage.words(
                "manager_worker.plan",
                workers=", ".join(self._workers),
                request=self._request,
                taken=", ".join(sorted(self._used)),
                lesson=lesson,
                big=big,
                wrong=_listed(wrong),
            )
            answer = await stage.ask_for(Plan, self._manager, words)
            if answer.value is None:
                return NoPlan(f"no plan: {answer.reason or 'the manager gave none'}")
            wrong = self._problems(answer.value)
            if not wrong:
                return answer.value
        return _refused(wrong)

    async def _show(self, stage: Stage, plan: Plan) -> Plan | NoPlan:
        wrong: list[str] = []
        for _ in range(_LOOKS_AT_A_PLAN):
            complaint = f"This plan cannot be carried out:\n{_listed(wrong)}\n\n" if wrong else ""
            answer = await stage.confirm(Plan, plan, f"{complaint}{plan_text(plan)}")
            if answer.value is None:
                why = f": {answer.reason}" if answer.reason else ""
                return NoPlan(f"plan {answer.fate}{why}")
            plan = answer.value
            wrong = self._problems(plan)
            if not wrong:
                return plan
        return _refused(wrong)

    def _problems(self, plan: Plan) -> list[str]:
        found = problems(plan, self._workers, taken=self._used)
        if len(plan.tasks) > self._max_tasks:
            many = f"The plan has {len(plan.tasks)} tasks; at most {self._max_tasks} are allowed"
            found.append(many)
        return found

    def _whole_request(self, lesson: str) -> Plan | NoPlan:
        if len(self._workers) > 1:
            return NoPlan(
                f"no plan: there are {len(self._workers)} workers and no manager to divide the "
                "request; name a manager, or list the tasks"
            )
        so_far = f"\n\nWhat happened so far:\n{lesson}" if lesson else ""
        name = f"task-{len(self._used) + 1}"
        return Plan((PlannedTask(name, self._workers[0], f"{self._request}{so_far}"),))


def plan_text(plan: Plan) -> str:
    """A plan for people: a line a task, and what it waits for and may change."""
    lines = [plan.summary] if plan.summary else []
    for task in plan.tasks:
        after = ", ".join(other.task_id for other in task.depends_on)
        waits = f" (after {after})" if after else ""
        scope = f"\n  may change {', '.join(task.scope)}" if task.scope else ""
        lines.append(f"- {task.task_id} by {task.agent}{waits}: {task.description}{scope}")
    return "\n".join(lines)


def _refused(wrong: Sequence[str]) -> NoPlan:
    return NoPlan(f"no plan: {'; '.join(wrong)}")


def _listed(wrong: Sequence[str]) -> str:
    return "\n".join(f"- {each}" for each in wrong)
