"""plan_execute_observe_reflect (P18): act, look, and learn a rule for the next time.

After ReAct (arXiv 2210.03629) and Reflexion (arXiv 2303.11366): the planner plans with the rules
learnt before, the executor takes one step, the observer says whether it got further, the reflector
turns what happened into rules, which go to memory with the steps they come from. Three steps in a
row that got nowhere cause a new plan instead of another step.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive

PLANNER, EXECUTOR, OBSERVER, REFLECTOR = "planner", "executor", "observer", "reflector"

STALLS = 3
"""So many steps without progress in a row, and the plan is given up."""


class Steps(msgspec.Struct, frozen=True):
    """The steps of the plan, in their order."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1)]


class Observation(msgspec.Struct, frozen=True):
    """Whether the step got further, whether the whole request is done, and what is to be seen."""

    progress: bool
    done: bool = False
    seen: str = ""


class Reflection(msgspec.Struct, frozen=True):
    """Rules to go by the next time, each a sentence; none if nothing was learnt."""

    rules: tuple[str, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` loops of a plan, and in each so many steps and new plans at most."""

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
        loop = (options.max_plans + 1) * size.typed + options.max_steps * (size.task + size.typed)
        return Most((size.rounds or options.max_rounds) * loop)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """One loop, or as many as the flow wants until it is done."""
        rules = list(await stage.recall(request))
        loop = _Loop(cast, request, options)
        most = stage.ends.rounds or options.max_rounds
        reason = ""
        async for round_ in stage.rounds(most):
            reason = await loop.turn(round_, rules)
            stage.keep(loop.history)
            learnt = await _reflect(round_, cast, request, loop.history, loop.taken)
            rules += learnt
            if reason == "done":
                return Outcome("done", done=True, result=loop.history)
            if reason.startswith("no plan"):
                return Outcome(reason, done=False, result=loop.history)
        return Outcome(f"{reason} (max_rounds: {most})", done=False, result=loop.history)


class _Loop:
    """What was done so far, over all loops."""

    def __init__(self, cast: Cast, request: str, options: Options) -> None:
        self._cast = cast
        self._request = request
        self._options = options
        self._history: list[str] = []
        self.taken: list[str] = []

    @property
    def history(self) -> str:
        """The steps and what was seen, a paragraph each."""
        return "\n\n".join(self._history)

    async def turn(self, stage: Stage, rules: list[str]) -> str:
        """Plan and act; says why it ended."""
        left = self._options.max_steps
        for _ in range(self._options.max_plans):
            words = stage.words(
                "plan_execute_observe_reflect.plan",
                request=self._request,
                rules="\n".join(f"- {rule}" for rule in rules),
                history=self.history,
            )
            plan = await stage.ask_for(Steps, self._cast[PLANNER][0], words)
            if plan.value is None:
                return f"no plan: {plan.reason}"
            stalls = 0
            for step in plan.value.steps[:left]:
                left -= 1
                seen = await self._step(stage, step)
                if seen.done:
                    return "done"
                stalls = 0 if seen.progress else stalls + 1
                if stalls == STALLS:
                    break
            if stalls < STALLS:
                return "max_steps" if not left else "plan carried out"
        return f"stalled: {STALLS} steps without progress"

    async def _step(self, stage: Stage, step: str) -> Observation:
        task = f"step-{len(self.taken) + 1}"
        self.taken.append(task)
        words = stage.words(
            "plan_execute_observe_reflect.execute",
            request=self._request,
            step=step,
            history=self.history,
        )
        act = await stage.ask(self._cast[EXECUTOR][0], words, work=Work(task, optional=True))
        did = act.text if act.done else f"{act.fate}: {act.reason}"
        words = stage.words(
            "plan_execute_observe_reflect.observe", request=self._request, step=step, did=did
        )
        observed = await stage.ask_for(Observation, self._cast[OBSERVER][0], words)
        seen = observed.value or Observation(progress=False, seen=observed.reason)
        self._history.append(f"{task}: {step}\n{did}\nSeen: {seen.seen}")
        stage.keep(self.history)
        return seen


async def _reflect(
    stage: Stage, cast: Cast, request: str, history: str, sources: list[str]
) -> tuple[str, ...]:
    """What is learnt for the next time; it is in memory afterwards."""
    words = stage.words("plan_execute_observe_reflect.reflect", request=request, history=history)
    reflection = (await stage.ask_for(Reflection, cast[REFLECTOR][0], words)).value or Reflection()
    for rule in reflection.rules:
        await stage.note(rule, sources)
    return reflection.rules
