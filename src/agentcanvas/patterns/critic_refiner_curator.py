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
from agentcanvas.patterns.forms import Positive, Verdict

JUDGE, CRITIC, REFINER, CURATOR = "judge", "critic", "refiner", "curator"
CONVERGED = "converged"


class Steps(msgspec.Struct, frozen=True):
    """Steps in their order, each complete in itself; the last holds the answer."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1)]


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
    roles = (
        Role(JUDGE, "says whether the steps are right; else the critic does", least=0, system=True),
        Role(CRITIC, "names the first wrong step"),
        Role(REFINER, "writes the steps and redoes them from the wrong one"),
        Role(CURATOR, "keeps what was learnt"),
    )

    def most(self, size: Size, options: Options) -> Most:
        """A draft, rounds of judge, critic and refiner, a last judgement and a lesson."""
        rounds = size.rounds or options.max_rounds
        return Most(size.typed * (1 + 3 * rounds + 3))

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Refine until it is right, or the rounds are over."""
        lessons = "\n".join(f"- {each}" for each in await stage.recall(request))
        words = stage.words("critic_refiner_curator.draft", request=request, lessons=lessons)
        draft = await stage.ask_for(Steps, cast[REFINER][0], words)
        if draft.value is None:
            return Outcome(f"no draft: {draft.reason}", done=False)
        steps = draft.value.steps
        most = stage.ends.rounds or options.max_rounds
        async for round_ in stage.rounds(most):
            stage.keep(_numbered(steps))
            flaw = await _flaw(round_, cast, request, steps, lessons)
            if flaw is None:
                return await _learned(stage, cast, request, steps)
            kept = steps[: flaw.step - 1]
            words = stage.words(
                "critic_refiner_curator.refine",
                request=request,
                kept=_numbered(kept),
                problem=flaw.problem,
                number=flaw.step,
            )
            redone = await round_.ask_for(Steps, cast[REFINER][0], words)
            steps = (*kept, *redone.value.steps) if redone.value else steps
        stage.keep(_numbered(steps))
        if await _flaw(stage, cast, request, steps, lessons, closing=True) is None:
            return await _learned(stage, cast, request, steps)
        return Outcome(f"max_rounds: {most}", done=False, result=_numbered(steps))


async def _flaw(
    stage: Stage,
    cast: Cast,
    request: str,
    steps: Sequence[str],
    lessons: str,
    *,
    closing: bool = False,
) -> Flaw | None:
    """What is wrong first; None when the judge, or without one the critic, says it is right.

    ``closing``: nobody redoes it any more, so that the judge's word is enough.
    """
    told, problem = _numbered(steps), ""
    if cast.get(JUDGE):
        words = stage.words("critic_refiner_curator.judge", request=request, steps=told)
        verdict = (await stage.ask_for(Verdict, cast[JUDGE][0], words)).value
        if await _converged(stage, verdict is not None and verdict.accept):
            return None
        problem = verdict.reason if verdict else ""
        if closing:
            return Flaw(1, problem)
    words = stage.words(
        "critic_refiner_curator.criticise",
        request=request,
        steps=told,
        problem=problem,
        lessons=lessons,
    )
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
    result = _numbered(steps)
    words = stage.words("critic_refiner_curator.learn", request=request, steps=result)
    lesson = (await stage.ask_for(Lesson, cast[CURATOR][0], words)).value
    if lesson is not None and lesson.lesson:
        await stage.note(lesson.lesson, [request])
    return Outcome(f"quality_gate: {CONVERGED} >= 1", done=True, result=result)


def _numbered(steps: Sequence[str]) -> str:
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
