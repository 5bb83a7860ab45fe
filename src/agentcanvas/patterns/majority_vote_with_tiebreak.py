"""majority_vote_with_tiebreak (P07): blind ballots, a threshold, and a judge where it is missed.

Everybody votes without seeing the others; without given choices everybody proposes first, as blind,
and the proposals are voted on without names. A choice that has the threshold of the votes that
count wins. Otherwise the judge chooses among the leaders, or all that got a vote if there is but
one; without a judge the most votes decide, and of equals what stands first among the choices.
Abstentions do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentcanvas.pattern import Answer, Ask, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Share, Vote, vote_among
from agentcanvas.patterns.tally import Tally, count

EVALUATOR = "evaluator"
JUDGE = "judge"


class Options(msgspec.Struct, frozen=True):
    """``choices`` are what is voted on, in the order that breaks a tie; none: proposals are.

    ``threshold`` is the share of the votes with which a choice wins.
    """

    choices: tuple[str, ...] = ()
    threshold: Share = 0.6


class MajorityVoteWithTiebreak:
    """Vote, count, break the tie."""

    id = "majority_vote_with_tiebreak"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(EVALUATOR, "votes without seeing the others", least=2, most=None),
        Role(JUDGE, "chooses when no choice has enough votes", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """A proposal and a ballot each, and one decision."""
        each = size.typed if options.choices else size.ask + size.typed
        turns = {EVALUATOR: size.count(EVALUATOR) * each, JUDGE: size.count(JUDGE) * size.typed}
        return Most.of(turns)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """One vote; what it comes to is the result."""
        voters = cast[EVALUATOR]
        choices = dict.fromkeys(options.choices, "") or await _proposals(stage, voters, request)
        if not choices:
            return Outcome("no proposals", done=False)
        listed = "\n".join(
            f"- {name}: {text}" if text else f"- {name}" for name, text in choices.items()
        )
        words = stage.words("majority_vote_with_tiebreak.vote", request=request, choices=listed)
        ballots = await stage.ask_all_for(
            vote_among(tuple(choices)), [Ask(v, words) for v in voters]
        )
        tally = count(
            (each.value.choice if each.value else None for each in ballots), tuple(choices)
        )
        await stage.post("tally", str(tally))
        stage.keep(str(tally))
        threshold = options.threshold if stage.ends.consensus is None else stage.ends.consensus
        if not tally.cast:
            return Outcome("no votes", done=False, result=str(tally))
        if tally.share >= threshold and len(tally.leaders) == 1:
            winner = tally.leaders[0]
            reason = f"consensus_threshold: {winner} {tally.share:.2f} >= {threshold:g}"
        else:
            winner, how = await _tie_break(stage, cast, request, tally, ballots)
            reason = f"tie_break: {winner} by {how}"
        await stage.post("tally", reason)
        return Outcome(reason, done=True, result=choices[winner] or winner)


async def _proposals(stage: Stage, voters: Sequence[str], request: str) -> dict[str, str]:
    """What everybody proposes, under letters that name nobody."""
    words = stage.words("majority_vote_with_tiebreak.propose", request=request)
    answers = await stage.ask_all([Ask(voter, words) for voter in voters])
    texts = dict.fromkeys(each.text for each in answers if each.done and each.text)
    return {f"proposal-{number}": text for number, text in enumerate(texts, 1)}


async def _tie_break(
    stage: Stage, cast: Cast, request: str, tally: Tally, ballots: Sequence[Answer[Vote]]
) -> tuple[str, str]:
    """Who wins when the votes do not say it, and by which rule."""
    open_to = tally.leaders
    if len(open_to) == 1:
        open_to = tuple(choice for choice, votes in tally.counts.items() if votes)
    if cast.get(JUDGE) and len(open_to) > 1:
        reasons = [f"- {each.value.choice}: {each.value.reason}" for each in ballots if each.value]
        words = stage.words(
            "majority_vote_with_tiebreak.judge",
            request=request,
            tally=str(tally),
            reasons="\n".join(reasons),
        )
        decided = await stage.decide(cast[JUDGE][0], words, open_to)
        if decided.value is not None:
            return decided.value, "the judge"
    rule = "the order of the choices" if len(tally.leaders) > 1 else "most votes"
    return tally.leaders[0], rule
