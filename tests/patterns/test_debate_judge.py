"""debate_judge: sides in turn and a judge, or rounds until they agree."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Fate
from agentcanvas.patterns.debate_judge import Options, Position
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P05")]

CONSENSUS = Options(variant="consensus")


async def debate(
    options: Options | None = None,
    judge: Part = None,
    stage: Part = None,
    **debaters: Part,
) -> Log:
    cast = {"debater": list(debaters), "judge": ["judy"] if judge else []}
    return await play("debate_judge", cast, debaters | {"judy": judge}, options, **(stage or {}))


def says(*answers: str, who: str = "") -> list[Position]:
    return [Position(answer, f"{who} {n} thinks {answer}") for n, answer in enumerate(answers, 1)]


async def test_sides_alternate_for_three_rounds_and_then_the_judge_decides_once() -> None:
    log = await debate(judge="for", dora="yes", emil="no")
    assert [each.to for each in log.asked()] == ["dora", "emil"] * 3 + ["judy"]
    assert (log.outcome.reason, log.outcome.done) == ("judge_decision: for", True)


async def test_a_debater_hears_the_other_side_before_it_answers() -> None:
    log = await debate(judge="for", dora=["d1", "d2", "d3"], emil=["e1", "e2", "e3"])
    assert "d1" in log.asked("emil")[0].text
    assert "e1" in log.asked("dora")[1].text


async def test_sides_are_committed_beforehand_and_more_debaters_take_them_in_turn() -> None:
    options = Options(max_rounds=1, sides=("tea", "milk"))
    log = await debate(options, judge="milk", a="1", b="2", c="3")
    assert ['side "tea"' in each.text for each in log.asked("a", "b", "c")] == [True, False, True]


async def test_who_argued_makes_no_difference_to_what_the_judge_reads() -> None:
    one = await debate(judge="for", dora="yes", emil="no")
    other = await debate(judge="for", zoe="yes", yan="no")
    assert one.asked("judy")[0].text == other.asked("judy")[0].text


async def test_a_debater_who_fails_is_on_the_transcript_and_the_debate_goes_on() -> None:
    log = await debate(judge="for", dora="yes", emil=fails("emil", fate=Fate.TIMED_OUT))
    assert "(no argument: timed_out)" in log.asked("judy")[0].text


async def test_a_judge_who_does_not_decide_leaves_the_transcript() -> None:
    log = await debate(judge="both are right", dora="yes", emil="no")
    assert log.outcome.reason == "no decision: Answer with one of: for, against."
    assert not log.outcome.done
    assert "yes" in log.outcome.result
    assert len(log.asked("judy")) == 2


async def test_without_a_judge_nothing_is_spent() -> None:
    log = await debate(dora="yes", emil="no")
    assert log.outcome.reason == "no judge: name one in roles, or set variant: consensus"
    assert not log.said


async def test_a_limit_keeps_the_transcript() -> None:
    log = await debate(judge="for", dora="yes", emil="no", stage={"turns": 3})
    assert log.outcome.reason == "budget: no more turns"
    assert log.outcome.result.count("Side") == 3


async def test_consensus_reads_only_the_round_before_of_the_others() -> None:
    team: dict[str, Part] = {who: says("4", "5", "5", who=who) for who in ("ann", "bob", "cyd")}
    log = await debate(CONSENSUS, **team)
    assert breaches(log, "debate_judge") == []
    assert len(log.asked()) == 9
    assert (log.outcome.reason, log.outcome.done) == ("majority: 5", True)


async def test_consensus_counts_the_last_round_and_forms_that_mean_the_same() -> None:
    log = await debate(
        CONSENSUS,
        ann=says("4", "4", "Five.", who="a"),
        bob=says("4", "4", "five", who="b"),
        cyd=says("4", who="c"),
    )
    assert log.outcome.reason == "majority: five"
    assert log.outcome.result.startswith("five (five: 2, 4: 1)")


async def test_consensus_ends_early_at_the_flows_threshold() -> None:
    stage = {"ends": Ends(consensus=0.6)}
    log = await debate(CONSENSUS, ann=says("4"), bob=says("4"), cyd=says("5"), stage=stage)
    assert log.outcome.reason == "consensus_threshold: 0.6: 4"
    assert len(log.asked()) == 3


async def test_a_tie_goes_to_what_was_said_first_and_is_said_so() -> None:
    log = await debate(Options(1, "consensus"), ann=says("4"), bob=says("5"))
    assert log.outcome.reason == "majority: 4 (tie: the first said)"


async def test_whoever_breaks_the_form_abstains() -> None:
    log = await debate(Options(1, "consensus"), ann="four", bob=says("5"))
    assert log.outcome.result.startswith("5 (5: 1, 1 abstained)")
    nobody = await debate(Options(1, "consensus"), ann="four", bob="five")
    assert (nobody.outcome.reason, nobody.outcome.done) == ("no answer", False)


async def test_an_own_answer_is_not_among_the_others() -> None:
    log = await debate(CONSENSUS, ann=says("4", who="a"), bob=says("5", who="b"))
    others = log.asked("ann")[1].text.partition("The others' answers")[2]
    assert "b 1 thinks 5" in others
    assert "a 1 thinks 4" not in others
