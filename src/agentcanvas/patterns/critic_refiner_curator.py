"""critic_refiner_curator (P06): find the first wrong step, redo from there, learn when it is right.

After Table-Critic (arXiv 2502.11799): a judge looks at the steps; if they are wrong, the critic
names the first wrong one and the refiner redoes from it, so that what comes before stays as it is.
The curator keeps what was learnt, once the judge says that the steps are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive, Steps, Verdict, put
from agentcanvas.patterns.wording import listed, numbered

JUDGE, CRITIC, REFINER, CURATOR = "judge", "critic", "refiner", "curator"
CONVERGED = "converged"


class Flaw(msgspec.Struct, frozen=True):
    """The number of the first wrong step, 0 if none is wrong, and what is wrong with it."""

    step: Annotated[int, Meta(ge=0)]
    problem: str = ""


class Lesson(msgspec.Struct, frozen=True):
    """One sentence that helps with the next task of this kind; empty if there is none."""

    lesson: str = ""


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` refinements are made at most."""

    max_rounds: Positive = 3


class CriticRefinerCurator:
    """Judge, criticise, refine, learn."""

    id = "critic_refiner_curator"
    options: type[msgspec.Struct] = Options
    looks_at_gates = True
    roles = (
        Role(JUDGE, "says whether the steps are right; else the critic does", least=0, system=True),
        Role(CRITIC, "names the first wrong step"),
        Role(REFINER, "writes the steps and redoes them from the wrong one"),
        Role(CURATOR, "keeps what was learnt"),
    )

    def most(self, size: Size, options: Options) -> Most:
        """A draft, rounds of judge, critic and refiner, a last judgement and a lesson."""
        rounds = size.rounds or options.max_rounds
        turns = {CRITIC: rounds, REFINER: 1 + rounds, CURATOR: 1}
        turns[JUDGE if size.count(JUDGE) else CRITIC] = rounds + 1
        return Most.of({role: size.typed * asked for role, asked in turns.items()})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Refine until it is right, or the rounds are over."""
        facts = {"request": request, "lessons": listed(await stage.recall(request))}
        refiner = cast[REFINER][0]
        draft = await put(stage, Steps, refiner, "critic_refiner_curator.draft", **facts)
        if draft.value is None:
            return Outcome(f"no draft: {draft.reason}", done=False)
        steps = draft.value.steps
        most = stage.ends.rounds or options.max_rounds
        async for round_ in stage.rounds(most):
            stage.keep(numbered(steps))
            flaw = await _flaw(round_, cast, steps, facts)
            if flaw is None:
                return await _learned(stage, cast, request, steps)
            kept = steps[: flaw.step - 1]
            wrong = {"number": flaw.step, "problem": flaw.problem, "kept": numbered(kept)}
            words = stage.words("critic_refiner_curator.refine", request=request, **wrong)
            redone = await round_.ask_for(Steps, refiner, words)
            steps = (*kept, *redone.value.steps) if redone.value else steps
        stage.keep(numbered(steps))
        if await _flaw(stage, cast, steps, facts, closing=True) is None:
            return await _learned(stage, cast, request, steps)
        return Outcome(f"max_rounds: {most}", done=False, result=numbered(steps))


async def _flaw(
    stage: Stage, cast: Cast, steps: Sequence[str], facts: dict[str, str], *, closing: bool = False
) -> Flaw | None:
    """What is wrong first; None when the judge, or without one the critic, says it is right.

    ``closing``: nobody redoes it any more, so that the judge's word is enough.
    """
    told, problem = {**facts, "steps": numbered(steps)}, ""
    if cast.get(JUDGE):
        judge = cast[JUDGE][0]
        verdict = (await put(stage, Verdict, judge, "critic_refiner_curator.judge", **told)).value
        if await _converged(stage, verdict is not None and verdict.accept):
            return None
        problem = verdict.reason if verdict else ""
        if closing:
            return Flaw(1, problem)
    words = stage.words("critic_refiner_curator.criticise", **told, problem=problem)
    flaw = (await stage.ask_for(Flaw, cast[CRITIC][0], words)).value
    if not cast.get(JUDGE) and await _converged(stage, flaw is not None and flaw.step == 0):
        return None
    if flaw is None or not 1 <= flaw.step <= len(steps):
        return Flaw(1, problem or "nobody could name the first wrong step")
    return flaw


async def _converged(stage: Stage, right: bool) -> bool:
    await stage.check(CONVERGED, value=float(right))
    return right


async def _learned(stage: Stage, cast: Cast, request: str, steps: Sequence[str]) -> Outcome:
    """The outcome, and the lesson that the curator draws from it."""
    words = stage.words("critic_refiner_curator.learn", request=request, steps=numbered(steps))
    lesson = (await stage.ask_for(Lesson, cast[CURATOR][0], words)).value
    if lesson is not None and lesson.lesson:
        await stage.note(lesson.lesson, [request])
    return Outcome(f"quality_gate: {CONVERGED} >= 1", done=True, result=numbered(steps))
