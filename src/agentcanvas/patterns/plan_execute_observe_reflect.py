"""plan_execute_observe_reflect (P18): act, look, and learn a rule for the next time.

After ReAct (arXiv 2210.03629) and Reflexion (arXiv 2303.11366): the planner plans with the rules
learnt before, the executor takes one step, the observer says whether it got further, the reflector
turns what happened into rules, which go to memory with the steps they come from. Three steps in a
row that got nowhere cause a new plan instead of another step.
"""

from __future__ import annotations

import msgspec

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, Steps
from agentcanvas.patterns.wording import listed

PLANNER, EXECUTOR, OBSERVER, REFLECTOR = "planner", "executor", "observer", "reflector"

STALLS = 3
"""So many steps without progress in a row, and the plan is given up."""


class Observation(msgspec.Struct, frozen=True):
    """Whether the step got further, whether the whole request is done, and what is to be seen."""

    progress: bool
    done: bool = False
    seen: str = ""


class Reflection(msgspec.Struct, frozen=True):
    """Rules to go by the next time, each a sentence; none if nothing was learnt."""

    rules: tuple[str, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` loops at most, and in each ``max_steps`` steps of ``max_plans`` plans."""

    max_rounds: Positive = 1
    max_steps: Positive = 10
    max_plans: Positive = 2


class PlanExecuteObserveReflect:
    """Plan, act, observe, reflect."""

    id = "plan_execute_observe_reflect"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(PLANNER, "plans the steps"),
        Role(EXECUTOR, "takes one step", writes=True),
        Role(OBSERVER, "says whether it got further"),
        Role(REFLECTOR, "says what was learnt"),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every loop its plans, its steps with what was seen, and a reflection."""
        loops = size.rounds or options.max_rounds
        steps = loops * options.max_steps
        plans, looks = loops * options.max_plans * size.typed, steps * size.typed
        acts, learns = steps * size.task, loops * size.typed
        return Most.of({PLANNER: plans, EXECUTOR: acts, OBSERVER: looks, REFLECTOR: learns})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """One loop, or as many as the flow wants until it is done."""
        rules = list(await stage.recall(request))
        history: list[str] = []
        most = stage.ends.rounds or options.max_rounds
        reason = ""
        async for round_ in stage.rounds(most):
            facts = {"request": request, "rules": listed(rules)}
            reason = await _loop(round_, cast, facts, history, options)
            facts |= {"history": "\n\n".join(history)}
            words = stage.words("plan_execute_observe_reflect.reflect", **facts)
            learnt = (await round_.ask_for(Reflection, cast[REFLECTOR][0], words)).value
            for rule in learnt.rules if learnt else ():
                await round_.note(rule, [f"step-{n}" for n, _ in enumerate(history, 1)])
                rules.append(rule)
            if reason == "done" or reason.startswith("no plan"):
                return Outcome(reason, done=reason == "done", result=facts["history"])
        return Outcome(f"{reason} (max_rounds: {most})", done=False, result="\n\n".join(history))


async def _loop(
    stage: Stage, cast: Cast, facts: dict[str, str], history: list[str], options: Options
) -> str:
    """Plan and act, as often as it stalls; says why it ended."""
    left = options.max_steps
    for _ in range(options.max_plans):
        known = {**facts, "history": "\n\n".join(history)}
        words = stage.words("plan_execute_observe_reflect.plan", **known)
        plan = await stage.ask_for(Steps, cast[PLANNER][0], words)
        if plan.value is None:
            return f"no plan: {plan.reason}"
        stalls = 0
        for step in plan.value.steps[:left]:
            left -= 1
            seen = await _step(stage, cast, facts["request"], step, history)
            if seen.done:
                return "done"
            stalls = 0 if seen.progress else stalls + 1
            if stalls == STALLS:
                break
        if stalls < STALLS:
            return "max_steps" if not left else "plan carried out"
    return f"stalled: {STALLS} steps without progress"


async def _step(
    stage: Stage, cast: Cast, request: str, step: str, history: list[str]
) -> Observation:
    """Take one step and look at it; both are history then."""
    task = f"step-{len(history) + 1}"
    facts = {"request": request, "step": step}
    told = "\n\n".join(history)
    words = stage.words("plan_execute_observe_reflect.execute", **facts, history=told)
    act = await stage.ask(cast[EXECUTOR][0], words, work=Work(task, optional=True))
    words = stage.words("plan_execute_observe_reflect.observe", **facts, did=act.heard)
    observed = await stage.ask_for(Observation, cast[OBSERVER][0], words)
    seen = observed.value or Observation(progress=False, seen=observed.reason)
    history.append(f"{task}: {step}\n{act.heard}\nSeen: {seen.seen}")
    stage.keep("\n\n".join(history))
    return seen
