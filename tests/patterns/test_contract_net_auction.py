"""contract_net_auction: a call with a deadline, the best bid, and the next best after a failure."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Fate
from agentcanvas.patterns.contract_net_auction import Bid, Options
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P09")]

MINUTE = Options(bid_within_ms=60_000)


def bids(cost: float, done: Part = "did it") -> list[Part]:
    return [Bid(propose=True, cost=cost, plan=f"for {cost:g}"), done]


async def auction(manager: Part = None, stage: Part = None, **bidders: Part) -> Log:
    cast = {"manager": ["boss"] if manager else [], "bidder": list(bidders)}
    return await play(
        "contract_net_auction", cast, bidders | {"boss": manager}, MINUTE, **(stage or {})
    )


async def test_the_lowest_cost_is_awarded_and_the_others_hear_it_when_it_is_done() -> None:
    log = await auction(ann=bids(3), bob=bids(1), cyd=bids(2))
    assert log.outcome.reason == "done: bob for 1"
    assert [each.to for each in log.verbs("task")] == ["bob"]
    assert [(each.to, each.text) for each in log.verbs("tell")] == [
        ("cyd", "Your bid is rejected: awarded to bob"),
        ("ann", "Your bid is rejected: awarded to bob"),
    ]
    assert "for 1" in log.verbs("task")[0].text


async def test_of_equal_bids_the_one_listed_first_is_awarded() -> None:
    assert (await auction(ann=bids(1), bob=bids(1))).outcome.reason == "done: ann for 1"


async def test_a_bid_binds_and_a_failure_awards_the_next_best() -> None:
    log = await auction(
        ann=bids(3),
        bob=bids(1, fails("bob", "no soap")),
        cyd=bids(2, fails("cyd", "ill", Fate.TIMED_OUT)),
    )
    assert [each.to for each in log.verbs("task")] == ["bob", "cyd", "ann"]
    assert log.outcome.reason == "done: ann for 3"


async def test_when_everybody_fails_it_says_of_what() -> None:
    log = await auction(ann=bids(1, fails("ann", "no soap")), bob=bids(2, fails("bob", "no time")))
    assert (log.outcome.reason, log.outcome.done) == ("failure: every award failed", False)
    assert log.outcome.result == "ann failed: no soap\nbob failed: no time"


async def test_a_late_bid_is_rejected_as_late_however_good_it_is() -> None:
    log = await auction(
        stage={"seconds": lambda to, _: 61.0 if to == "bob" else 1.0}, ann=bids(3), bob=bids(0)
    )
    assert log.outcome.reason == "done: ann for 3"
    assert [(each.to, each.text) for each in log.verbs("tell")] == [
        ("bob", "Your bid is rejected: late")
    ]


@pytest.mark.parametrize(
    "refusal", [Bid(propose=False), "I would do it for free", Bid(propose=True, cost=-1)]
)
async def test_refusals_and_bids_without_the_form_are_no_bids(refusal: Part) -> None:
    log = await auction(ann=refusal)
    assert (log.outcome.reason, log.outcome.done) == ("no bids", False)
    assert len(log.asked("ann")) == 1
    assert not log.verbs("task")


async def test_a_manager_chooses_and_the_rest_follows_by_cost() -> None:
    log = await auction("ann", ann=bids(3, fails("ann")), bob=bids(2), cyd=bids(1))
    assert [each.to for each in log.verbs("task")] == ["ann", "cyd"]


async def test_a_manager_who_cannot_choose_leaves_it_to_the_cost() -> None:
    log = await auction("dave", ann=bids(3), bob=bids(2))
    assert log.outcome.reason == "done: bob for 2"


async def test_a_single_bid_needs_no_choice() -> None:
    assert not (await auction("ann", ann=bids(3))).asked("boss")
