"""redteam_defender_judge: attacks, answers, and scores by a rubric that only the judge reads."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Fate, Gate, Measure
from agentcanvas.patterns.forms import Score
from agentcanvas.patterns.redteam_defender_judge import Options
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P16")]

RUBRIC = Options(rubric="Nothing may be lost")


async def attacked(
    judge: Part = None, options: Options = RUBRIC, stage: Part = None, **team: Part
) -> Log:
    parts = {"max": ["attack 1", "attack 2", "attack 3"], "dan": "mended"} | team
    cast = {
        "red_team": [name for name in parts if name != "dan"],
        "defender": ["dan"],
        "judge": ["judy"] if judge else [],
    }
    log = await play(
        "redteam_defender_judge", cast, parts | {"judy": judge}, options, **(stage or {})
    )
    assert breaches(log, "redteam_defender_judge") == []
    return log


async def test_every_attack_is_answered_and_scored_by_the_rubric() -> None:
    log = await attacked(Score(0.9))
    assert [each.to for each in log.asked()] == ["max", "dan", "judy"]
    assert log.outcome.reason == "quality_gate: score >= 0.7 (0.9)"
    asked = log.asked("judy")[0].text
    assert "Nothing may be lost" in asked
    assert "attack 1" in asked
    assert "mended" in asked


async def test_the_red_team_learns_from_the_rounds_before() -> None:
    log = await attacked([Score(0.2), Score(0.9)])
    again = log.asked("max")[1].text
    assert "Attack:\nattack 1\n\nAnswer:\nmended\n\nScore: 0.2" in again


async def test_a_round_is_as_good_as_its_worst_answer() -> None:
    log = await attacked([Score(0.9), Score(0.1)], Options(max_rounds=1), eve="attack b")
    assert (log.outcome.reason, log.outcome.done) == ("max_rounds: 1", False)
    assert [each.reply for each in log.verbs("check")] == ["0.1"]


async def test_the_flows_gate_says_what_is_good_enough() -> None:
    stage = {"ends": Ends(gates=(Gate("score", ">=", 0.95),))}
    log = await attacked(Score(0.9), stage=stage)
    assert log.outcome.reason == "max_rounds: 2"
    assert len(log.asked("max")) == 2


@pytest.mark.parametrize("judge", ["great!", fails("judy"), Score(1.5)])
async def test_what_the_judge_does_not_score_counts_as_not_defended(judge: Part) -> None:
    log = await attacked(judge, Options(max_rounds=1))
    assert (log.outcome.reason, log.outcome.done) == ("max_rounds: 1", False)
    assert "Score: 0" in log.outcome.result


async def test_a_defence_that_failed_is_judged_as_what_it_is() -> None:
    log = await attacked(Score(0), dan=fails("dan", "the verdict", Fate.REJECTED))
    assert "(rejected: the verdict)" in log.asked("judy")[0].text


async def test_an_attacker_who_fails_attacks_nothing() -> None:
    log = await attacked(Score(1), max=fails("max"), eve="attack b")
    assert len(log.asked("dan")) == 1
    nobody = await attacked(Score(1), max=fails("max"))
    assert (nobody.outcome.reason, nobody.outcome.done) == ("no attack", False)


async def test_without_a_judge_the_metric_is_measured_on_the_work() -> None:
    measures = [Measure("score", 0.5, holds=False), Measure("score", 0.8, holds=True)]
    log = await attacked(stage={"measures": measures})
    assert log.outcome.reason == "quality_gate: score >= 0.7 (0.8)"
    assert "Score" not in log.outcome.result


async def test_a_limit_keeps_attacks_and_answers() -> None:
    log = await attacked(Score(0.1), stage={"turns": 4})
    assert log.outcome.reason == "budget: no more turns"
    assert log.outcome.result.startswith("Attack:\nattack 1")
