"""self_consistency_ensemble: blind samples, and what most of them come to."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Fate
from agentcanvas.patterns.forms import Score
from agentcanvas.patterns.self_consistency_ensemble import Options, Sample
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P08")]

BEST = Options(samples=3, select="score")


async def drawn(
    options: Options | None = None, scorer: Part = None, stage: Part = None, **samplers: Part
) -> Log:
    cast = {"sampler": list(samplers), "aggregator": ["agg"] if scorer else []}
    return await play(
        "self_consistency_ensemble", cast, samplers | {"agg": scorer}, options, **(stage or {})
    )


def says(*answers: str) -> list[Sample]:
    return [Sample(f"way {n}", answer) for n, answer in enumerate(answers, 1)]


async def test_five_blind_samples_of_one_agent_and_the_majority_of_their_answers() -> None:
    log = await drawn(ann=says("4", "5", "4.", " 4 ", "6"))
    assert len(log.asked()) == 5
    assert len({each.text for each in log.asked()}) == 1
    assert log.outcome.reason == "majority: 3 of 5"
    assert log.outcome.result.startswith("4\n\nway 1\n\n4: 3, 5: 1, 6: 1")


async def test_every_sampler_draws_at_least_once_and_they_take_turns() -> None:
    log = await drawn(Options(samples=1), ann=says("4"), bob=says("4"))
    assert [each.to for each in log.asked()] == ["ann", "bob"]
    log = await drawn(ann=says("4"), bob=says("4"))
    assert [each.to for each in log.asked()] == ["ann", "bob", "ann", "bob", "ann"]


async def test_a_sample_without_an_answer_does_not_count() -> None:
    log = await drawn(ann=says("4"), bob="five, I think", cyd=fails("cyd"))
    assert log.outcome.reason == "majority: 2 of 2"
    assert "3 abstained" in log.outcome.result


async def test_a_tie_goes_to_what_was_said_first() -> None:
    log = await drawn(Options(samples=2), ann=says("4"), bob=says("5"))
    assert log.outcome.reason == "majority: 1 of 2 (tie: the first said)"
    assert log.outcome.result.startswith("4")


async def test_no_answer_at_all() -> None:
    log = await drawn(ann="hm")
    assert (log.outcome.reason, log.outcome.done) == ("no answer", False)


async def test_the_best_scored_draft_lands_and_only_that() -> None:
    log = await drawn(BEST, [Score(0.2), Score(0.9), Score(0.4)], ann="a", bob="b", cyd="c")
    assert [each.text for each in log.verbs("land")] == ["c2"]
    assert (log.outcome.reason, log.outcome.result) == ("best of 3: 0.9", "b")


async def test_a_draft_that_is_refused_makes_way_for_the_next_best() -> None:
    log = await drawn(
        BEST,
        [Score(0.2), Score(0.9), Score(0.4)],
        {"verdicts": {"c2": Fate.REJECTED}},
        ann="a",
        bob="b",
        cyd="c",
    )
    assert log.outcome.reason == "best of 3: 0.4"
    none = await drawn(
        BEST, None, {"verdicts": dict.fromkeys(("c1", "c2", "c3"), Fate.REJECTED)}, ann="a"
    )
    assert (none.outcome.reason, none.outcome.done) == ("no draft was accepted", False)


async def test_without_an_aggregator_the_first_accepted_draft_is_taken() -> None:
    log = await drawn(BEST, None, {"verdicts": {"c1": Fate.REJECTED}}, ann="a", bob="b", cyd="c")
    assert (log.outcome.reason, log.outcome.result) == ("the first of 3 that was accepted", "b")


async def test_no_draft_at_all() -> None:
    log = await drawn(BEST, None, ann=fails("ann"))
    assert (log.outcome.reason, log.outcome.done) == ("no draft", False)
