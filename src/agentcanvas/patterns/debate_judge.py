"""debate_judge (P05): arguments take turns until a judge decides, or answers until they agree.

``judge`` is after Irving et al. (arXiv 1805.00899): two precommitted sides alternate, and the judge
decides on the transcript, which names sides and nobody. ``consensus`` is after Du et al. (arXiv
2305.14325): everybody answers, then reads in each round what the others said in the one before and
answers again; the majority of the last round counts, and there is no judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive, why
from agentcanvas.patterns.tally import Tally, alike, count

DEBATER = "debater"
JUDGE = "judge"


class Position(msgspec.Struct, frozen=True):
    """An answer in a few words, as others would write it too, and what speaks for it."""

    answer: str
    argument: str


class Options(msgspec.Struct, frozen=True):
    """``sides`` are what the judge chooses between; the debaters take them in turn.

    Each speaks in each of ``max_rounds``. With the ``variant`` consensus nobody judges: the
    majority counts, and ``sides`` mean nothing.
    """

    max_rounds: Positive = 3
    variant: Literal["judge", "consensus"] = "judge"
    sides: tuple[str, str] = ("for", "against")


class DebateJudge:
    """Argue, then decide."""

    id = "debate_judge"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(DEBATER, "argues for a side, or answers and reads the others", least=2, most=None),
        Role(JUDGE, "decides on the arguments; not needed for consensus", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Everybody once a round, and one decision."""
        turns = (size.rounds or options.max_rounds) * size.count(DEBATER)
        if options.variant == "consensus":
            return Most.of({DEBATER: turns * size.typed})
        return Most.of({DEBATER: turns * size.ask, JUDGE: size.typed})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Play the variant that the options name."""
        most = stage.ends.rounds or options.max_rounds
        if options.variant == "consensus":
            return await _consensus(stage, cast[DEBATER], request, most)
        if not cast.get(JUDGE):
            return Outcome("no judge: name one in roles, or set variant: consensus", done=False)
        return await _judged(stage, cast, request, options.sides, most)


async def _judged(
    stage: Stage, cast: Cast, request: str, sides: tuple[str, str], most: int
) -> Outcome:
    transcript = ""
    async for round_ in stage.rounds(most):
        for index, debater in enumerate(cast[DEBATER]):
            side = sides[index % len(sides)]
            words = stage.words(
                "debate_judge.argue",
                request=request,
                side=side,
                other=sides[(index + 1) % len(sides)],
                transcript=transcript,
            )
            answer = await round_.ask(debater, words)
            argument = answer.text if answer.done else f"(no argument: {answer.fate})"
            transcript = f"{transcript}\n\nSide {side!r}:\n{argument}".lstrip()
            stage.keep(transcript)
    words = stage.words("debate_judge.judge", request=request, transcript=transcript)
    verdict = await stage.decide(cast[JUDGE][0], words, sides)
    if verdict.value is None:
        return Outcome(f"no decision: {verdict.reason}", done=False, result=transcript)
    return Outcome(f"judge_decision: {verdict.value}", done=True, result=why(verdict))


async def _consensus(stage: Stage, debaters: Sequence[str], request: str, most: int) -> Outcome:
    before: dict[str, Position] = {}
    tally = Tally({})
    async for round_ in stage.rounds(most):
        asks = [Ask(each, _answer_words(stage, request, each, before)) for each in debaters]
        answers = await round_.ask_all_for(Position, asks)
        before = {each.agent: each.value for each in answers if each.value is not None}
        tally = count(alike(each.value.answer) if each.value else None for each in answers)
        await round_.post("tally", str(tally))
        stage.keep(str(tally))
        threshold = stage.ends.consensus
        if threshold is not None and tally.share >= threshold:
            return _agreed(f"consensus_threshold: {threshold:g}", tally, before)
    return _agreed("majority", tally, before)


def _agreed(reason: str, tally: Tally, last: dict[str, Position]) -> Outcome:
    """The majority of the last round; of several as large, the one that was said first."""
    if not tally.leaders:
        return Outcome("no answer", done=False)
    answer = tally.leaders[0]
    arguments = [each.argument for each in last.values() if alike(each.answer) == answer]
    tie = " (tie: the first said)" if len(tally.leaders) > 1 else ""
    result = "\n".join([f"{answer} ({tally})", *arguments])
    return Outcome(f"{reason}: {answer}{tie}", done=True, result=result)


def _answer_words(stage: Stage, request: str, who: str, before: dict[str, Position]) -> str:
    others = [f"- {said.answer}: {said.argument}" for name, said in before.items() if name != who]
    own = f"{before[who].answer}: {before[who].argument}" if who in before else ""
    return stage.words("debate_judge.answer", request=request, own=own, others="\n".join(others))
