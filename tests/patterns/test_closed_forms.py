"""Auctions award what is best by their rule, and negotiations meet where the arithmetic says."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.pattern import Ends
from agentcanvas.patterns.bilateral_negotiation_offer_counteroffer import Offer, Options
from agentcanvas.patterns.contract_net_auction import Bid
from tests.patterns.team import Log, fails, play

pytestmark = pytest.mark.req("I4")

COSTS = st.lists(st.integers(1, 50), min_size=1, max_size=8, unique=True)


@given(costs=COSTS, data=st.data())
def test_the_award_goes_to_the_best_bid_of_those_who_do_it(
    costs: list[int], data: st.DataObject
) -> None:
    bidders = {f"b{i}": cost for i, cost in enumerate(costs)}
    withdrawn = data.draw(st.sets(st.sampled_from(list(bidders))))
    unwilling = data.draw(st.sets(st.sampled_from(list(bidders))))
    parts = {
        name: [
            Bid(propose=name not in unwilling, cost=cost),
            fails(name) if name in withdrawn else "done",
        ]
        for name, cost in bidders.items()
    }

    async def auctioned() -> Log:
        return await play("contract_net_auction", {"bidder": tuple(bidders)}, parts)

    log = anyio.run(auctioned)
    able = {n: c for n, c in bidders.items() if n not in withdrawn | unwilling}
    awarded = [said.to for said in log.verbs("task")]
    in_order = sorted((n for n in bidders if n not in unwilling), key=lambda n: bidders[n])
    if able:
        best = min(able, key=lambda name: able[name])
        assert log.outcome.reason == f"done: {best} for {able[best]}"
        assert awarded == in_order[: in_order.index(best) + 1]
    else:
        assert not log.outcome.done
        assert awarded == in_order


@given(
    asks=st.integers(10, 100),
    bids=st.integers(0, 60),
    down=st.integers(1, 10),
    up=st.integers(1, 10),
)
def test_linear_concessions_meet_where_they_must(asks: int, bids: int, down: int, up: int) -> None:
    """The seller asks a - k·d in round k, the buyer bids b + k·u; whoever sees it first accepts.

    The buyer accepts in the first round with a - k·d <= b + k·u, the seller one half-round later
    in the first with b + k·u >= a - (k+1)·d.
    """
    parts = {
        "seller": [Offer(asks - k * down) for k in range(120)],
        "buyer": [Offer(bids + k * up) for k in range(120)],
    }
    cast = {"proposer": ("seller",), "responder": ("buyer",)}
    options = Options(max_rounds=120)

    async def negotiated() -> Log:
        name = "bilateral_negotiation_offer_counteroffer"
        return await play(name, cast, parts, options, ends=Ends(rounds=120))

    outcome = anyio.run(negotiated).outcome
    buyer_in = max(0, -((bids - asks) // (down + up)))
    seller_in = max(0, -((bids - asks + down) // (down + up)))
    if buyer_in <= seller_in:
        expected = ("accepted by buyer", f"the price: {asks - buyer_in * down}")
    else:
        expected = ("accepted by seller", f"the price: {bids + seller_in * up}")
    assert (outcome.reason, outcome.result) == expected
