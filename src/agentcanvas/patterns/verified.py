"""Any pattern with what makes its result believed (I1): a wrapper that plays it and looks after it.

``sandbox_constraints`` holds before anything begins. When the pattern is done, ``critic_loop`` has
a critic say what is wrong and the pattern played again with that, ``cross_check_vote`` has others
vote blindly on the result, ``tool_based`` measures a metric, and ``audit_log`` asks for a record
that nobody has changed. What does not hold ends it, undone, with that reason and the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Pattern, Play, Role, Size, Stage

SANDBOX = "sandbox_constraints"
CRITIC = "critic_loop"
VOTE = "cross_check_vote"
TOOL = "tool_based"
AUDIT = "audit_log"


class Critique(msgspec.Struct, frozen=True):
    """Whether the result is right as it stands; if not, what exactly is wrong with it."""

    accept: bool
    flaw: str = ""


class Ballot(msgspec.Struct, frozen=True):
    """Whether you find the result right, and why."""

    agree: bool
    reason: str = ""


class Looks(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at, and who looks; ``again`` is how often a critic may send it back."""

    kinds: tuple[str, ...]
    critic: str = ""
    checkers: tuple[str, ...] = ()
    metric: str = "tests_passed"
    again: int = 1


class Verified:
    """A pattern, and what is done so that its result can be believed."""

    def __init__(self, pattern: Pattern, looks: Looks) -> None:
        self._pattern = pattern
        self._looks = looks
        self.id = pattern.id
        self.roles: tuple[Role, ...] = pattern.roles
        self.options: type[msgspec.Struct] = pattern.options
        self.looks_at_gates = bool(getattr(pattern, "looks_at_gates", False))

    def most(self, size: Size, options: Any) -> Most:
        """The pattern's own worst case, again for each critique, and a turn for each who looks."""
        own, looks = self._pattern.most(size, options), self._looks
        times = 1 + looks.again if CRITIC in looks.kinds else 1
        turns = times * own.turns
        turns += size.typed * times if CRITIC in looks.kinds else 0
        turns += size.typed * len(looks.checkers) if VOTE in looks.kinds else 0
        by_role = {role: times * asked for role, asked in own.by_role.items()}
        return Most(turns, times * own.told, by_role)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        """Play it, and look."""
        kinds = self._looks.kinds
        if SANDBOX in kinds and not (await stage.check(SANDBOX)).holds:
            return Outcome(f"{SANDBOX}: agents would run without a sandbox", done=False)
        outcome = await self._pattern.run(stage, cast, request, options)
        stage.keep(outcome.result)
        if outcome.done and CRITIC in kinds:
            outcome = await self._criticised(stage, cast, request, options, outcome)
        if outcome.done and VOTE in kinds:
            outcome = await _cross_checked(stage, self._looks.checkers, request, outcome)
        for kind, metric in ((TOOL, self._looks.metric), (AUDIT, AUDIT)):
            if outcome.done and kind in kinds:
                measure = await stage.check(metric)
                if not measure.holds:
                    why = f": {measure.detail}" if measure.detail else ""
                    outcome = _undone(outcome, f"{kind}: {metric} is {measure.value:g}{why}")
        return outcome

    async def _criticised(
        self, stage: Stage, cast: Cast, request: str, options: Any, outcome: Outcome
    ) -> Outcome:
        for left in range(self._looks.again, -1, -1):
            words = stage.words("verified.criticise", request=request, result=outcome.result)
            answer = await stage.ask_for(Critique, self._looks.critic, words)
            if answer.value is None:
                return _undone(outcome, f"{CRITIC}: no critique: {answer.reason}")
            if answer.value.accept:
                return outcome
            if not left:
                return _undone(outcome, f"{CRITIC}: {answer.value.flaw}")
            again = stage.words("verified.again", request=request, flaw=answer.value.flaw)
            params = msgspec.structs.asdict(options)
            play = Play(self.id, cast, again, params, ends=stage.ends, name="again")
            outcome = await stage.play(play)
            stage.keep(outcome.result)
            if not outcome.done:
                return outcome
        return outcome


async def _cross_checked(
    stage: Stage, checkers: Sequence[str], request: str, outcome: Outcome
) -> Outcome:
    """More than half of those who vote have to agree, or as many as the flow's consensus asks."""
    words = stage.words("verified.vote", request=request, result=outcome.result)
    ballots = await stage.ask_all_for(Ballot, [Ask(each, words) for each in checkers])
    votes = [each.value for each in ballots if each.value is not None]
    agree = sum(vote.agree for vote in votes)
    threshold = stage.ends.consensus
    enough = agree * 2 > len(votes) if threshold is None else agree >= threshold * len(votes)
    if votes and enough:
        return outcome
    doubts = "; ".join(vote.reason for vote in votes if not vote.agree and vote.reason)
    return _undone(outcome, f"{VOTE}: {agree} of {len(votes)} agree. {doubts}".rstrip(". "))


def _undone(outcome: Outcome, reason: str) -> Outcome:
    return Outcome(reason, done=False, result=outcome.result)
