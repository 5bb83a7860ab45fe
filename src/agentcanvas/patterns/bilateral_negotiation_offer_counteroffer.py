"""bilateral_negotiation_offer_counteroffer (P10): offers in turn until one is good enough.

After the alternating-offers protocol: each side makes an offer, and concedes or stands, never going
back behind its own last one. A side accepts when the other's offer is at least as good for it as
the one it is about to make. At the deadline there is no deal, and the conflict deal holds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive

PROPOSER = "proposer"
RESPONDER = "responder"
OFFERS = "offers"


class Offer(msgspec.Struct, frozen=True):
    """The number you offer, the terms that go with it, and whether you take the other's offer."""

    value: float
    terms: str = ""
    accept: bool = False


class Options(msgspec.Struct, frozen=True):
    """``proposer_wants`` more or less of the ``issue``; the responder wants the opposite.

    Each makes an offer in each of ``max_rounds``; without a deal by then it is ``conflict_deal``.
    """

    max_rounds: Positive = 5
    proposer_wants: Literal["more", "less"] = "more"
    issue: str = "the price"
    conflict_deal: str = "no deal"


class _Side:
    """One of the two, and the last offer it made; ``sign`` is +1 where more is better for it."""

    def __init__(self, agent: str, sign: int) -> None:
        self.agent = agent
        self.sign = sign
        self.last: Offer | None = None

    def better(self, one: float, other: float) -> bool:
        """Whether ``one`` is at least as good for this side."""
        return self.sign * one >= self.sign * other

    def stands(self, offer: Offer) -> Offer:
        """The offer it makes; one that goes back behind its last is its last again."""
        if self.last is None or self.better(self.last.value, offer.value):
            return offer
        return msgspec.structs.replace(offer, value=self.last.value)


class BilateralNegotiation:
    """Offer and counter-offer."""

    id = "bilateral_negotiation_offer_counteroffer"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(PROPOSER, "makes the first offer"),
        Role(RESPONDER, "makes the counter-offers"),
    )

    def most(self, size: Size, options: Options) -> Most:
        """An offer each in every round."""
        each = (size.rounds or options.max_rounds) * size.typed
        return Most.of({PROPOSER: each, RESPONDER: each})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Go to and fro until there is a deal, or the rounds are over."""
        sign = 1 if options.proposer_wants == "more" else -1
        proposer = _Side(cast[PROPOSER][0], sign)
        responder = _Side(cast[RESPONDER][0], -sign)
        stage.keep(options.conflict_deal)
        most = stage.ends.rounds or options.max_rounds
        left = most
        async for round_ in stage.rounds(most):
            for own, other in ((proposer, responder), (responder, proposer)):
                words = _words(stage, request, options, own=own, other=other, left=left)
                said = (await round_.ask_for(Offer, own.agent, words)).value
                if said is None:
                    continue  # it says nothing that counts, so its last offer stands
                offer = own.stands(said)
                theirs = other.last
                if theirs and (said.accept or own.better(theirs.value, offer.value)):
                    result = f"{options.issue}: {theirs.value:g}\n{theirs.terms}".strip()
                    return Outcome(f"accepted by {own.agent}", done=True, result=result)
                own.last = offer
                await round_.post(OFFERS, f"{offer.value:g}", by=own.agent)
            left -= 1
        return Outcome(f"max_rounds: {most}", done=False, result=options.conflict_deal)


def _words(
    stage: Stage, request: str, options: Options, *, own: _Side, other: _Side, left: int
) -> str:
    return stage.words(
        "bilateral_negotiation_offer_counteroffer.offer",
        request=request,
        issue=options.issue,
        wants="more" if own.sign > 0 else "less",
        own=f"{own.last.value:g}" if own.last else "",
        theirs=f"{other.last.value:g}. {other.last.terms}" if other.last else "",
        left=left,
        conflict_deal=options.conflict_deal,
    )
