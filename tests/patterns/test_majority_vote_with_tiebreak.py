"""majority_vote_with_tiebreak: blind ballots, a threshold, and a declared way out of a tie."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends
from agentcanvas.patterns.forms import Vote
from agentcanvas.patterns.majority_vote_with_tiebreak import Options
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P07")]

CHOICES = Options(choices=("wash", "wipe", "wait"))


async def vote(
    options: Options = CHOICES, judge: Part = None, stage: Part = None, **voters: Part
) -> Log:
    cast = {"evaluator": list(voters), "judge": ["judy"] if judge else []}
    return await play(
        "majority_vote_with_tiebreak", cast, voters | {"judy": judge}, options, **(stage or {})
    )


async def test_enough_votes_win_without_the_judge() -> None:
    log = await vote(judge="wait", ann=Vote("wash"), bob=Vote("wash"), cyd=Vote("wipe"))
    assert log.outcome.reason == "consensus_threshold: wash 0.67 >= 0.6"
    assert log.outcome.result == "wash"
    assert not log.asked("judy")


async def test_the_flows_threshold_goes_before_the_options() -> None:
    team: dict[str, Part] = {"ann": Vote("wash"), "bob": Vote("wash"), "cyd": Vote("wipe")}
    log = await vote(stage={"ends": Ends(consensus=0.9)}, **team)
    assert log.outcome.reason == "tie_break: wash by most votes"


async def test_ballots_are_asked_at_once_and_blind() -> None:
    log = await vote(
        stage={"seconds": lambda *_: 5.0}, ann=Vote("wash", "I like water"), bob=Vote("wash")
    )
    assert {each.at_ms for each in log.asked()} == {0}
    assert breaches(log, "majority_vote_with_tiebreak") == []


async def test_a_tie_goes_to_the_judge_who_sees_reasons_and_no_names() -> None:
    log = await vote(judge="wipe", ann=Vote("wash", "water"), bob=Vote("wipe", "cloth"))
    assert log.outcome.reason == "tie_break: wipe by the judge"
    asked = log.asked("judy")[0].text
    assert "water" in asked
    assert "ann" not in asked


async def test_the_judge_chooses_among_the_leaders_only() -> None:
    log = await vote(judge="wait", ann=Vote("wash"), bob=Vote("wipe"))
    assert "Answer with one of: wash, wipe." in log.asked("judy")[1].text
    assert log.outcome.reason == "tie_break: wash by the order of the choices"


async def test_without_a_judge_a_tie_goes_by_the_declared_order_and_is_on_record() -> None:
    log = await vote(ann=Vote("wipe"), bob=Vote("wash"))
    assert log.outcome.reason == "tie_break: wash by the order of the choices"
    assert [each.text for each in log.posted("tally")] == [
        "wash: 1, wipe: 1, wait: 0",
        log.outcome.reason,
    ]


async def test_a_leader_below_the_threshold_is_put_to_the_judge_with_the_others() -> None:
    team: dict[str, Part] = {
        name: Vote(choice)
        for name, choice in zip("abcde", ("wash", "wash", "wipe", "wait", "wait"), strict=True)
    }
    team["f"] = Vote("wash")
    log = await vote(judge="wait", **team)
    assert log.outcome.reason == "tie_break: wait by the judge"


async def test_abstentions_do_not_count_and_are_told() -> None:
    log = await vote(ann=Vote("wash"), bob=Vote("swim"), cyd=fails("cyd"), dee=Vote("wash"))
    assert log.outcome.reason == "consensus_threshold: wash 1.00 >= 0.6"
    assert log.posted("tally")[0].text == "wash: 2, wipe: 0, wait: 0, 2 abstained"
    assert len(log.asked("bob")) == 2


async def test_nobody_votes() -> None:
    log = await vote(ann="hm", bob="hm")
    assert (log.outcome.reason, log.outcome.done) == ("no votes", False)


async def test_without_choices_everybody_proposes_and_proposals_have_no_names() -> None:
    log = await vote(Options(), ann=["soap", Vote("proposal-2")], bob=["sand", Vote("proposal-2")])
    assert log.outcome.result == "sand"
    ballot = log.asked("ann")[1].text
    assert "- proposal-1: soap\n- proposal-2: sand" in ballot
    assert "bob" not in ballot


async def test_nobody_proposes() -> None:
    log = await vote(Options(), ann=fails("ann"), bob="")
    assert (log.outcome.reason, log.outcome.done) == ("no proposals", False)


async def test_two_leaders_are_a_tie_though_both_reach_the_threshold() -> None:
    options = Options(choices=("wash", "wipe"), threshold=0.5)
    log = await vote(options, judge="wipe", ann=Vote("wash"), bob=Vote("wipe"))
    assert log.outcome.reason == "tie_break: wipe by the judge"
