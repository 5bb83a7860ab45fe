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
from agentcanvas.patterns.forms import Positive
from agentcanvas.patterns.planning import TRIES_AT_A_PLAN, NoPlan, Planning, plan_text
from agentcanvas.protocol.plan import Plan, PlannedTask
from agentcanvas.protocol.records import FailureClass

MANAGER = "manager"
WORKER = "worker"

_TRIES_AT_A_FORM = 2
_TOO_BIG = frozenset({FailureClass.TURN_LIMIT, FailureClass.TIMEOUT, FailureClass.STALLED})
"""What a turn fails of when its task is too big for it (H4)."""

Done = tuple[PlannedTask, Answer[None]]


class Options(msgspec.Struct, frozen=True):
    """``plan`` is a ready one for the first round; ``gate`` the metric the result is held to.

    Both ``max_rounds`` and ``gate`` give way to the ends that the flow sets. ``max_tasks`` is how
    many tasks a plan may have. With ``plan_only`` it ends when there is a plan.
    """

    max_rounds: Positive = 2
    max_tasks: Positive = 20
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
        async for round_ in stage.rounds(most):
            outcome = await job.round(round_)
            if outcome is not None:
                return outcome
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
    plan = TRIES_AT_A_PLAN * _TRIES_AT_A_FORM
    first = (tasks or max_tasks) * turns_a_task + (0 if tasks else plan)
    again = plan + max_tasks * turns_a_task
    later = 3 * again + 1  # planned, split, and planned once more; then integrated
    return first + 2 * again + 1 + (rounds - 1) * later


class _Job:
    """What one interaction knows from round to round."""

    def __init__(self, cast: Cast, request: str, options: Options, gates: Sequence[Gate]) -> None:
        self._manager = next(iter(cast.get(MANAGER, ())), None)
        self._workers = cast[WORKER]
        self._request = request
        self._options = options
        self._gates = gates
        self._planning = Planning(
            self._manager,
            self._workers,
            request,
            ready=options.plan,
            max_tasks=options.max_tasks,
        )
        self._lesson = ""
        self._integrated = ""

    @property
    def result(self) -> str:
        """What it has come to, as far as it is known."""
        return self._integrated or self._lesson

    async def round(self, stage: Stage) -> Outcome | None:
        """One round; None when what it came to sends it into another."""
        plan = await self._planning.plan(stage, lesson=self._lesson)
        if isinstance(plan, NoPlan):
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
                self._learn(stage, _failed(measure))
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
            named = "\n".join(f"- {task.task_id}: {task.description}" for task, _ in big)
            split = await self._planning.plan(stage, lesson=self._lesson, big=named)
            if isinstance(split, Plan):
                rest = [each for each in missing if each not in big and not _skipped(each)]
                done = await self._carry_out(stage, split)
                missing = rest + [each for each in done if not each[1].done]
        if missing:
            # What was rejected goes back to planning once, within the same budget (C2).
            again = await self._planning.plan(stage, lesson=self._lesson)
            if isinstance(again, Plan):
                done = await self._carry_out(stage, again)
                missing = [each for each in done if not each[1].done]
        return missing

    async def _carry_out(self, stage: Stage, plan: Plan) -> list[Done]:
        answers = await stage.ask_all([_ask(task) for task in plan.tasks])
        done = list(zip(plan.tasks, answers, strict=True))
        self._learn(stage, _reports(done))
        return done

    async def _integrate(self, stage: Stage) -> None:
        if self._manager is not None:
            words = stage.words(
                "manager_worker.integrate", request=self._request, reports=self._lesson
            )
            self._integrated = (await stage.ask(self._manager, words)).text
            stage.keep(self.result)

    def _learn(self, stage: Stage, lesson: str) -> None:
        self._lesson = f"{self._lesson}\n{lesson}".lstrip()
        stage.keep(self.result)


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


def _unfinished(missing: Sequence[Done]) -> str:
    task, answer = missing[0]
    why = f": {answer.reason}" if answer.reason else ""
    return f"{answer.fate}: {task.task_id}{why}"


def _failed(measure: Measure) -> str:
    detail = f": {measure.detail}" if measure.detail else ""
    return f"The gate {measure.metric} does not hold (it is {measure.value:g}){detail}"
