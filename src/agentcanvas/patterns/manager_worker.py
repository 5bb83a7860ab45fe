"""manager_worker (P01): a manager splits, assigns, hears every report and integrates.

After AutoGen's conversable agents (arXiv 2308.08155): the manager plans, workers carry the tasks
out in parallel as far as the plan allows, every report comes back to the manager, and the result
passes a gate. A failed gate starts the next round, and there are never more than ``max_rounds``.

Without a manager the plan is a ready one, or the whole request for the only worker, and the result
is the list of reports.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import (
    Answer,
    Ask,
    Cast,
    Fate,
    Gate,
    Measure,
    Most,
    Outcome,
    Role,
    Size,
    Stage,
    Work,
)
from agentcanvas.protocol.plan import Plan, PlannedTask, problems
from agentcanvas.protocol.records import FailureClass

MANAGER = "manager"
WORKER = "worker"

_TRIES_AT_A_PLAN = 2
_TRIES_AT_A_FORM = 2
_LOOKS_AT_A_PLAN = 3
"""How often a person is shown an edited plan that cannot be carried out."""
_TOO_BIG = frozenset({FailureClass.TURN_LIMIT, FailureClass.TIMEOUT, FailureClass.STALLED})
"""What a turn fails of when its task is too big for it (H4)."""

Done = tuple[PlannedTask, Answer[None]]


class Options(msgspec.Struct, frozen=True):
    """``plan`` is a ready one for the first round; ``gate`` the metric the result is held to.

    Both ``max_rounds`` and ``gate`` give way to the ends that the flow sets. ``max_tasks`` is how
    many tasks a plan may have. With ``plan_only`` it ends when there is a plan.
    """

    max_rounds: int = 2
    max_tasks: int = 20
    gate: str = "tests_passed"
    plan: Plan | None = None
    plan_only: bool = False


class ManagerWorker:
    """Split, assign, report, integrate, gate."""

    id = "manager_worker"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(MANAGER, "splits the request, hears every report, integrates", least=0, system=True),
        Role(WORKER, "carries out one task at a time", least=1, most=None, writes=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every plan refused once, every task split, planned anew and revised."""
        turns = most_turns(
            managed=bool(size.players.get(MANAGER)),
            rounds=size.rounds or options.max_rounds,
            tasks=size.tasks,
            turns_a_task=size.task,
            max_tasks=options.max_tasks,
        )
        return Most(turns)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Plan, work and gate, a round at a time."""
        job = _Job(cast, request, options, stage.ends.gates or (Gate(options.gate),))
        most = stage.ends.rounds or options.max_rounds
        try:
            async for round_ in stage.rounds(most):
                outcome = await job.round(round_)
                if outcome is not None:
                    return outcome
        except StageEnded as limit:
            return Outcome(str(limit), done=False, result=job.result)
        return Outcome(f"max_rounds: {most}", done=False, result=job.result)


def most_turns(
    *, managed: bool, rounds: int, tasks: int, turns_a_task: int, max_tasks: int = 20
) -> int:
    """The worst case: every plan refused once, every task split, planned anew and revised.

    ``tasks`` is the size of a ready plan, 0 without one; ``turns_a_task`` what one task can take,
    reviews and revisions included.
    """
    if not managed:
        return rounds * (tasks or 1) * turns_a_task
    plan = _TRIES_AT_A_PLAN * _TRIES_AT_A_FORM
    first = (tasks or max_tasks) * turns_a_task + (0 if tasks else plan)
    again = plan + max_tasks * turns_a_task
    later = 3 * again + 1  # planned, split, and planned once more; then integrated
    return first + 2 * again + 1 + (rounds - 1) * later


class _NoPlan(msgspec.Struct, frozen=True):
    """Why nothing can be carried out."""

    reason: str


class _Job:
    """What one interaction knows from round to round."""

    def __init__(self, cast: Cast, request: str, options: Options, gates: Sequence[Gate]) -> None:
        self._manager = next(iter(cast.get(MANAGER, ())), None)
        self._workers = cast[WORKER]
        self._request = request
        self._options = options
        self._gates = gates
        self._ready = options.plan
        self._used: set[str] = set()
        self._lesson = ""
        self._integrated = ""

    @property
    def result(self) -> str:
        """What it has come to, as far as it is known."""
        return self._integrated or self._lesson

    async def round(self, stage: Stage) -> Outcome | None:
        """One round; None when what it came to sends it into another."""
        plan = await self._plan(stage)
        if isinstance(plan, _NoPlan):
            return Outcome(plan.reason, done=False, result=self.result)
        if self._options.plan_only:
            return Outcome("plan_only", done=True, result=plan_text(plan))
        missing = await self._work(stage, plan)
        await self._integrate(stage)
        for gate in self._gates:
            measure = await stage.check(gate.metric)
            if measure.holds and not missing:
                but = f" ({measure.detail})" if measure.detail else ""
                return Outcome(f"{gate}{but}", done=True, result=self.result)
            if not measure.holds:
                self._learn(_failed(measure))
        if self._manager is None and (missing or len(self._workers) > 1):
            # Nobody can say who should do what in another round.
            reason = _unfinished(missing) if missing else f"{self._gates[0]} does not hold"
            return Outcome(reason, done=False, result=self.result)
        return None

    async def _work(self, stage: Stage, plan: Plan) -> list[Done]:
        """Carry a plan out and what comes of it; what is still missing then."""
        self._lesson = ""
        missing = [each for each in await self._carry_out(stage, plan) if not each[1].done]
        if self._manager is None:
            return missing
        big = [each for each in missing if each[1].failure in _TOO_BIG]
        if big:
            # What waited for a task that is split is planned again with its parts.
            split = await self._plan(stage, _too_big(big))
            if isinstance(split, Plan):
                rest = [each for each in missing if each not in big and not _skipped(each)]
                done = await self._carry_out(stage, split)
                missing = rest + [each for each in done if not each[1].done]
        if missing:
            # What was rejected goes back to planning once, within the same budget (C2).
            again = await self._plan(stage)
            if isinstance(again, Plan):
                done = await self._carry_out(stage, again)
                missing = [each for each in done if not each[1].done]
        return missing

    async def _carry_out(self, stage: Stage, plan: Plan) -> list[Done]:
        answers = await stage.ask_all([_ask(task) for task in plan.tasks])
        done = list(zip(plan.tasks, answers, strict=True))
        self._learn(_reports(done))
        return done

    async def _integrate(self, stage: Stage) -> None:
        if self._manager is not None:
            message = _integrate(self._request, self._lesson)
            self._integrated = (await stage.ask(self._manager, message)).text

    def _learn(self, lesson: str) -> None:
        self._lesson = f"{self._lesson}\n{lesson}".lstrip()

    # -- planning --------------------------------------------------------------------------------

    async def _plan(self, stage: Stage, wish: str = "") -> Plan | _NoPlan:
        """A plan that can be carried out, and that the person has seen if they want to."""
        plan = await self._make(stage, wish)
        if isinstance(plan, Plan):
            plan = await self._show(stage, plan)
        if isinstance(plan, Plan):
            self._used |= {task.task_id for task in plan.tasks}
        return plan

    async def _make(self, stage: Stage, wish: str) -> Plan | _NoPlan:
        ready, self._ready = self._ready, None
        if ready is not None:
            wrong = self._problems(ready)
            return _NoPlan(f"no plan: {'; '.join(wrong)}") if wrong else ready
        if self._manager is None:
            return self._whole_request()
        wrong = []
        for _ in range(_TRIES_AT_A_PLAN):
            message = self._ask_for_plan(wish, wrong)
            answer = await stage.ask_for(Plan, self._manager, message)
            if answer.value is None:
                return _NoPlan(f"no plan: {answer.reason or 'the manager gave none'}")
            wrong = self._problems(answer.value)
            if not wrong:
                return answer.value
        return _NoPlan(f"no plan: {'; '.join(wrong)}")

    async def _show(self, stage: Stage, plan: Plan) -> Plan | _NoPlan:
        wrong: list[str] = []
        for _ in range(_LOOKS_AT_A_PLAN):
            title = "\n\n".join([*_complaint("This plan", wrong), plan_text(plan)])
            answer = await stage.confirm(Plan, plan, title)
            if answer.value is None:
                why = f": {answer.reason}" if answer.reason else ""
                return _NoPlan(f"plan {answer.fate}{why}")
            plan = answer.value
            wrong = self._problems(plan)
            if not wrong:
                return plan
        return _NoPlan(f"no plan: {'; '.join(wrong)}")

    def _problems(self, plan: Plan) -> list[str]:
        found = problems(plan, self._workers, taken=self._used)
        most = self._options.max_tasks
        if len(plan.tasks) > most:
            found.append(f"The plan has {len(plan.tasks)} tasks; at most {most} are allowed")
        return found

    def _whole_request(self) -> Plan | _NoPlan:
        if len(self._workers) > 1:
            return _NoPlan(
                f"no plan: there are {len(self._workers)} workers and no manager to divide the "
                "request; name a manager, or list the tasks"
            )
        number = len(self._used) + 1
        lesson = f"\n\nWhat happened so far:\n{self._lesson}" if self._lesson else ""
        task = PlannedTask(f"task-{number}", self._workers[0], f"{self._request}{lesson}")
        return Plan((task,))

    def _ask_for_plan(self, wish: str, wrong: Sequence[str]) -> str:
        parts = [
            f"Split this request into tasks for {', '.join(self._workers)}:\n{self._request}",
            "Tasks that may run at the same time must not change the same files.",
        ]
        if self._used:
            parts.append(f"These task ids are taken: {', '.join(sorted(self._used))}.")
        if self._lesson:
            parts.append(f"What happened so far:\n{self._lesson}\nPlan only what is still missing.")
        if wish:
            parts.append(wish)
        return "\n\n".join([*parts, *_complaint("Your plan", wrong)])


def plan_text(plan: Plan) -> str:
    """A plan for people: a line a task, and what it waits for and may change."""
    lines = [plan.summary] if plan.summary else []
    for task in plan.tasks:
        after = ", ".join(other.task_id for other in task.depends_on)
        waits = f" (after {after})" if after else ""
        scope = f"\n  may change {', '.join(task.scope)}" if task.scope else ""
        lines.append(f"- {task.task_id} by {task.agent}{waits}: {task.description}{scope}")
    return "\n".join(lines)


def _ask(task: PlannedTask) -> Ask:
    work = Work(
        task.task_id,
        after=task.depends_on,
        scope=None if task.scope is UNSET else task.scope,
        acceptance_criteria=task.acceptance_criteria,
        testing_required=task.testing_required,
    )
    return Ask(task.agent, task.description, work, role=WORKER)


def _reports(done: Sequence[Done]) -> str:
    """Every worker's answer, whatever became of it."""
    lines = []
    for task, answer in done:
        why = f": {answer.reason}" if answer.reason else ""
        lines.append(f"- {task.task_id} by {answer.agent}: {answer.fate}{why}\n  {answer.text}")
    return "\n".join(lines)


def _skipped(each: Done) -> bool:
    return each[1].fate is Fate.SKIPPED


def _too_big(big: Sequence[Done]) -> str:
    named = "\n".join(f"- {task.task_id}: {task.description}" for task, _ in big)
    return (
        f"These tasks were too big for one turn:\n{named}\n"
        "Split each into smaller ones, and plan again what waited for them."
    )


def _unfinished(missing: Sequence[Done]) -> str:
    task, answer = missing[0]
    why = f": {answer.reason}" if answer.reason else ""
    return f"{answer.fate}: {task.task_id}{why}"


def _integrate(request: str, reports: str) -> str:
    return (
        f"The request was:\n{request}\n\nThe workers report:\n{reports}\n\n"
        "Say in a few lines what was achieved and what is missing."
    )


def _failed(measure: Measure) -> str:
    detail = f": {measure.detail}" if measure.detail else ""
    return f"The gate {measure.metric} does not hold (it is {measure.value:g}){detail}"


def _complaint(whose: str, wrong: Sequence[str]) -> list[str]:
    return [f"{whose} cannot be carried out:\n" + "\n".join(f"- {w}" for w in wrong)] * bool(wrong)
