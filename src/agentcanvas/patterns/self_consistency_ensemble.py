"""self_consistency_ensemble (P08): several blind drafts, then the answer most of them come to.

After Wang et al. (arXiv 2203.11171): N samples that do not see each other, and an unweighted
majority of the answers parsed from them; a sample without an answer does not count. With
``select: score`` an aggregator scores each draft and the best is taken, and drafts that change
files are candidates of which only the chosen one lands.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Answer, Ask, Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Score
from agentcanvas.patterns.tally import alike, count

SAMPLER = "sampler"
AGGREGATOR = "aggregator"


class Sample(msgspec.Struct, frozen=True):
    """The way to the answer, then the answer alone, as short as it can be said."""

    reasoning: str
    answer: str


class Options(msgspec.Struct, frozen=True):
    """``samples`` drafts are made in all; with fewer samplers than that they take turns.

    ``select`` is what decides: the ``majority`` of the answers, or the ``score`` of each draft.
    """

    samples: Annotated[int, Meta(ge=1, le=100)] = 5
    select: Literal["majority", "score"] = "majority"


class SelfConsistencyEnsemble:
    """Draft often, keep the most consistent."""

    id = "self_consistency_ensemble"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(SAMPLER, "answers without seeing the others", most=None, writes=True),
        Role(AGGREGATOR, "scores the drafts, for select: score", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every sample; or every draft, which is judged at most once, and its score."""
        drafts = max(options.samples, size.count(SAMPLER))
        if options.select == "majority":
            return Most.of({SAMPLER: drafts * size.typed})
        scores = drafts * size.typed if size.count(AGGREGATOR) else 0
        return Most.of({SAMPLER: drafts * size.task, AGGREGATOR: scores})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """One round of drafts, and one choice."""
        number = max(options.samples, len(cast[SAMPLER]))
        samplers = tuple(islice(cycle(cast[SAMPLER]), number))
        if options.select == "score":
            return await _best(stage, cast, request, samplers)
        words = stage.words("self_consistency_ensemble.sample", request=request)
        samples = await stage.ask_all_for(Sample, [Ask(each, words) for each in samplers])
        tally = count(alike(each.value.answer) if each.value else None for each in samples)
        await stage.post("tally", str(tally))
        if not tally.leaders:
            return Outcome("no answer", done=False, result=str(tally))
        answer = tally.leaders[0]
        tie = " (tie: the first said)" if len(tally.leaders) > 1 else ""
        said = next(s.value for s in samples if s.value and alike(s.value.answer) == answer)
        result = f"{said.answer}\n\n{said.reasoning}\n\n{tally}"
        return Outcome(
            f"majority: {tally.counts[answer]} of {tally.cast}{tie}", done=True, result=result
        )


async def _best(stage: Stage, cast: Cast, request: str, samplers: Sequence[str]) -> Outcome:
    """Score what was drafted, take the best, and land it; the first of several as good."""
    words = stage.words("self_consistency_ensemble.draft", request=request)
    drafts = await stage.ask_all(
        [
            Ask(each, words, Work(f"draft-{n}", optional=True), land=False)
            for n, each in enumerate(samplers, 1)
        ]
    )
    made = [draft for draft in drafts if draft.done]
    if not made:
        return Outcome("no draft", done=False)
    for draft, score in await _ranked(stage, cast, request, made):
        if draft.proposal is None or (await stage.land(draft.proposal)).done:
            how = f"best of {len(made)}: {score:g}"
            if not cast.get(AGGREGATOR):
                how = f"the first of {len(made)} that was accepted"
            return Outcome(how, done=True, result=draft.text)
    return Outcome("no draft was accepted", done=False, result=made[0].text)


async def _ranked(
    stage: Stage, cast: Cast, request: str, drafts: Sequence[Answer[None]]
) -> list[tuple[Answer[None], float]]:
    """Drafts with their scores, the best first; without an aggregator as they were made."""
    if not cast.get(AGGREGATOR):
        return [(draft, 0.0) for draft in drafts]
    asks = [
        Ask(
            cast[AGGREGATOR][0],
            stage.words("self_consistency_ensemble.score", request=request, draft=draft.text),
        )
        for draft in drafts
    ]
    answers = await stage.ask_all_for(Score, asks)
    scores = [each.value.score if each.value else 0.0 for each in answers]
    return sorted(zip(drafts, scores, strict=True), key=lambda pair: -pair[1])
