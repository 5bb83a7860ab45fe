"""contract_net_auction (P09): call for proposals, take bids, award the best, hear how it went.

After the FIPA contract net protocol (SC00029): a call with a deadline, then propose or refuse, then
accept one and reject the others, then done or failure. Bids bind: whoever is accepted does the work
or fails at it, and then the next best is awarded; so the others are rejected only when it is done.
A bid that comes after the deadline is rejected as late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Answer, Cast, Fate, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive

MANAGER = "manager"
BIDDER = "bidder"
LATE = "late"


class Bid(msgspec.Struct, frozen=True):
    """Whether you propose to do it, what it costs (less is better), and how you would do it."""

    propose: bool
    cost: Annotated[float, Meta(ge=0)] = 0
    plan: str = ""


class Options(msgspec.Struct, frozen=True):
    """``bid_within_ms`` is the deadline of the call; the lowest cost is the best bid."""

    bid_within_ms: Positive = 60_000


class ContractNetAuction:
    """Announce, bid, award, carry out."""

    id = "contract_net_auction"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(MANAGER, "chooses among the bids; else the lowest cost wins", least=0, system=True),
        Role(BIDDER, "bids, and does the work if it is awarded", most=None, writes=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every bidder bids, once, is awarded and fails, and hears about it."""
        del options
        bidders = size.count(BIDDER)
        chooses = size.typed if size.count(MANAGER) and bidders > 1 else 0
        return Most.of({MANAGER: chooses, BIDDER: bidders * (1 + size.task)}, told=bidders)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Award until somebody has done it."""
        call = stage.words("contract_net_auction.call", request=request)
        bids = await stage.bid(Bid, cast[BIDDER], call, within_ms=options.bid_within_ms)
        for bid in bids:
            if bid.fate is Fate.TIMED_OUT:
                await _reject(stage, bid.agent, LATE)
        ranked = await _ranked(stage, cast, request, bids)
        if not ranked:
            return Outcome("no bids", done=False)
        failures = []
        for number, bid in enumerate(ranked, 1):
            words = stage.words(
                "contract_net_auction.award",
                request=request,
                plan=bid.value.plan if bid.value else "",
            )
            done = await stage.ask(bid.agent, words, work=Work(f"award-{number}", optional=True))
            if done.done:
                for other in ranked[number:]:
                    await _reject(stage, other.agent, f"awarded to {bid.agent}")
                reason = f"done: {bid.agent} for {bid.value.cost:g}" if bid.value else "done"
                return Outcome(reason, done=True, result=done.text)
            failures.append(f"{bid.agent} {done.fate}: {done.reason}")
            stage.keep("\n".join(failures))
        return Outcome("failure: every award failed", done=False, result="\n".join(failures))


async def _ranked(
    stage: Stage, cast: Cast, request: str, bids: Sequence[Answer[Bid]]
) -> list[Answer[Bid]]:
    """The proposals in the order of their award: by cost, then as the bidders are listed."""
    proposals = [bid for bid in bids if bid.value is not None and bid.value.propose]
    ranked = sorted(proposals, key=_cost)
    told = [
        f"- {bid.agent}: {_cost(bid):g}. {bid.value.plan if bid.value else ''}" for bid in ranked
    ]
    await stage.post("bids", "\n".join(told) or "none")
    if not cast.get(MANAGER) or len(ranked) < 2:  # noqa: PLR2004 - a choice needs two
        return ranked
    words = stage.words("contract_net_auction.choose", request=request, bids="\n".join(told))
    chosen = await stage.decide(cast[MANAGER][0], words, [bid.agent for bid in ranked])
    return sorted(ranked, key=lambda bid: bid.agent != chosen.value)


def _cost(bid: Answer[Bid]) -> float:
    return bid.value.cost if bid.value is not None else float("inf")


async def _reject(stage: Stage, bidder: str, reason: str) -> None:
    await stage.tell(bidder, f"Your bid is rejected: {reason}")
