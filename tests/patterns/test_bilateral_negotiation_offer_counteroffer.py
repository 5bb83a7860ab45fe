"""bilateral_negotiation: offers that only come closer, and a deal or the conflict deal."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.patterns.bilateral_negotiation_offer_counteroffer import Offer, Options
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P10")]

NAME = "bilateral_negotiation_offer_counteroffer"


async def haggle(seller: Part, buyer: Part, options: Options | None = None, **stage: Part) -> Log:
    cast = {"proposer": ["sal"], "responder": ["bea"]}
    return await play(NAME, cast, {"sal": seller, "bea": buyer}, options, **stage)


def offers(*values: float) -> list[Offer]:
    return [Offer(value, f"terms of {value:g}") for value in values]


async def test_offers_alternate_until_the_others_is_as_good_as_the_own_next() -> None:
    log = await haggle(offers(10, 8, 6), offers(2, 4, 6))
    assert [(each.by, each.text) for each in log.posted("offers")] == [
        ("sal", "10"),
        ("bea", "2"),
        ("sal", "8"),
        ("bea", "4"),
        ("sal", "6"),
    ]
    assert log.outcome.reason == "accepted by bea"
    assert log.outcome.result == "the price: 6\nterms of 6"


async def test_the_first_offer_of_the_other_may_be_better_than_what_one_would_ask() -> None:
    log = await haggle(offers(3), offers(5))
    assert (log.outcome.reason, log.outcome.result.splitlines()[0]) == (
        "accepted by bea",
        "the price: 3",
    )


async def test_an_offer_is_accepted_by_saying_so() -> None:
    log = await haggle(offers(10), [Offer(0, accept=True)])
    assert log.outcome.result.startswith("the price: 10")


async def test_there_is_nothing_to_accept_before_an_offer() -> None:
    log = await haggle([Offer(10, accept=True)], offers(10))
    assert log.outcome.reason == "accepted by bea"


async def test_nobody_goes_back_behind_an_own_offer() -> None:
    log = await haggle(offers(10, 12, 14, 9, 9), offers(5, 2, 4, 5, 5))
    assert [each.text for each in log.posted("offers")] == [
        "10",
        "5",
        "10",
        "5",
        "10",
        "5",
        "9",
        "5",
        "9",
        "5",
    ]
    assert breaches(log, NAME) == []


async def test_the_deadline_gives_the_conflict_deal() -> None:
    log = await haggle(
        offers(10), offers(1), Options(max_rounds=3, conflict_deal="we ask the boss")
    )
    assert (log.outcome.reason, log.outcome.done, log.outcome.result) == (
        "max_rounds: 3",
        False,
        "we ask the boss",
    )
    late = await haggle(offers(10), offers(1), Options(conflict_deal="we ask the boss"), turns=3)
    assert (late.outcome.reason, late.outcome.result) == (
        "budget: no more turns",
        "we ask the boss",
    )


async def test_who_wants_less_first_goes_upwards() -> None:
    log = await haggle(offers(1, 3, 5), offers(9, 7, 5), Options(proposer_wants="less"))
    assert log.outcome.result.startswith("the price: 5")
    assert breaches(log, NAME) == []


async def test_a_side_that_says_nothing_of_the_form_leaves_its_last_offer_standing() -> None:
    log = await haggle([Offer(10), "hm", "hm", Offer(5)], offers(2, 3, 5))
    assert log.outcome.result.startswith("the price: 5")


async def test_each_side_knows_both_last_offers_and_the_rounds_left() -> None:
    asked = (await haggle(offers(10, 8, 6), offers(2, 4, 6))).asked("sal")[1].text
    for words in (
        "want more",
        "Your last offer:\n10",
        "The other's last offer:\n2. terms of 2",
        "Rounds left: 4",
    ):
        assert words in asked


@pytest.mark.parametrize(("first", "then"), [(10.0, 1.0), (20.0, 2.0), (9.0, 1.5)])
async def test_linear_concession_meets_where_the_lines_cross(first: float, then: float) -> None:
    """Seller s0 - a k against buyer b0 + b k: the first k at which the lines have crossed."""
    rounds = 12
    selling = [first - then * k for k in range(rounds + 1)]
    buying = [1.0 + k for k in range(rounds)]
    log = await haggle(offers(*selling), offers(*buying), Options(max_rounds=rounds))
    moves = [
        pair
        for k in range(rounds)
        for pair in ((selling[k], buying[k]), (selling[k + 1], buying[k]))
    ]
    # In turn the buyer sees the seller's offer, then the seller the buyer's: the first that has
    # crossed is taken by whoever sees it.
    turn = next(n for n, (asked, offered) in enumerate(moves) if asked <= offered)
    foreseen = moves[turn][turn % 2]
    assert log.outcome.result.splitlines()[0] == f"the price: {foreseen:g}"


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=6),
    st.lists(st.floats(-50, 50), min_size=1, max_size=6),
)
def test_whatever_they_say_offers_are_monotone_and_a_deal_is_an_offer(
    selling: list[float], buying: list[float]
) -> None:
    log = anyio.run(haggle, offers(*selling), offers(*buying))
    assert breaches(log, NAME) == []
    if log.outcome.done:
        said = {each.text for each in log.posted("offers")}
        assert log.outcome.result.splitlines()[0].removeprefix("the price: ") in said
