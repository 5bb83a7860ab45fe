"""manager_worker (P01): a manager splits, assigns, hears every report and integrates.

After AutoGen's conversable agents (arXiv 2308.08155): the manager plans, workers carry the tasks
out in parallel as far as the plan allows, every report comes back to the manager, and the result
passes a gate. A failed gate starts the next round, and there are never more than ``max_rounds``.

Without a manager the plan is a ready one, or the whole request for the only worker, and the result
is the list of reports.
"""

from __future__ import annotations

import msgspec

from agentcanvas.pattern import Cast, Gate, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive
from agentcanvas.patterns.planning import TRIES_AT_A_PLAN, NoPlan, Planning, plan_text
from agentcanvas.patterns.tasks import Tasks
from agentcanvas.protocol.plan import Plan

MANAGER = "manager"
WORKER = "worker"


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
    looks_at_gates = True
    roles = (
        Role(MANAGER, "splits the request, hears every report, integrates", least=0, system=True),
        Role(WORKER, "carries out one task at a time", least=1, most=None, writes=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every plan refused once, every task split, planned anew and revised."""
        rounds = size.rounds or options.max_rounds
        ready = len(options.plan.tasks) if options.plan else size.tasks
        if not size.count(MANAGER):
            # After a ready plan, what is missing is one task, if there is but one worker.
            again = rounds - 1 if size.count(WORKER) == 1 else 0
            return Most.of({WORKER: ((ready or 1) + again) * size.task})
        # Planned, split, and planned once more; then integrated.
        plans = 3 * rounds - bool(ready)
        manages = plans * TRIES_AT_A_PLAN * size.typed + rounds * size.ask
        works = (plans * options.max_tasks + ready) * size.task
        return Most.of({MANAGER: manages, WORKER: works})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Plan, work and gate, a round at a time."""
        manager, workers = next(iter(cast.get(MANAGER, ())), None), cast[WORKER]
        planning = Planning(
            manager, workers, request, ready=options.plan, max_tasks=options.max_tasks
        )
        gates = stage.ends.gates or (Gate(options.gate),)
        most = stage.ends.rounds or options.max_rounds
        lesson = integrated = ""
        async for round_ in stage.rounds(most):
            plan = await planning.plan(round_, lesson=lesson)
            if isinstance(plan, NoPlan):
                return Outcome(plan.reason, done=False, result=integrated or lesson)
            if options.plan_only:
                return Outcome("plan_only", done=True, result=plan_text(plan))
            tasks = Tasks(WORKER, before=integrated)
            await tasks.carry_out(round_, plan)
            if manager is not None:
                await _plan_again(round_, planning, tasks)
                facts = {"request": request, "reports": tasks.reports}
                words = stage.words("manager_worker.integrate", **facts)
                integrated = (await round_.ask(manager, words)).text
            lesson = tasks.reports
            for gate in gates:
                stage.keep(integrated or lesson)
                measure = await round_.check(gate.metric)
                if measure.holds and not tasks.missing:
                    but = f" ({measure.detail})" if measure.detail else ""
                    return Outcome(f"{gate}{but}", done=True, result=integrated or lesson)
                if not measure.holds:
                    lesson = f"{lesson}\n{measure}"
            if manager is None and (tasks.missing or len(workers) > 1):
                # Nobody can say who should do what in another round.
                reason = f"{gates[0]} does not hold"
                reason = tasks.why_unfinished() if tasks.missing else reason
                return Outcome(reason, done=False, result=lesson)
        return Outcome(f"max_rounds: {most}", done=False, result=integrated or lesson)


async def _plan_again(stage: Stage, planning: Planning, tasks: Tasks) -> None:
    """Have what was too big done in parts, and what is still missing planned once more.

    What was rejected goes back to planning once, within the same budget (C2).
    """
    if tasks.too_big:
        # What waited for a task that is split is planned again with its parts.
        split = await planning.plan(stage, lesson=tasks.reports, big=tasks.too_big)
        if isinstance(split, Plan):
            tasks.let_go_of_too_big()
            await tasks.carry_out(stage, split)
    if tasks.missing:
        again = await planning.plan(stage, lesson=tasks.reports)
        if isinstance(again, Plan):
            tasks.missing.clear()
            await tasks.carry_out(stage, again)
