"""What a run may spend (D19), and what it has spent.

Turns and messages are counted again when a run is replayed; time, tokens and money that earlier
processes used are told by the events, and handed in. Either way a run goes on with what was left. A
limit ends the stage with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import msgspec
from msgspec import UNSET

from agentcanvas.clock import Clock
from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Share
from agentcanvas.protocol.records import Usage

CHARACTERS_PER_TOKEN = 4
TURN_TOKENS = 20_000
"""What a turn is taken to cost when nothing at all is known of it."""
TOKEN_PRICE = 10 / 1_000_000
"""US dollars a token, until a turn of this run has told its price."""


_TURNS_A_REVIEW = 2
"""A reviewer is asked, and asked once more."""


def most_turns_a_task(iterations: int, *, agent_reviews: bool = True) -> int:
    """The most turns that one task takes: work, a retry and its review, as often as it may be.

    A person who reviews takes no turn; what they send back comes on top, and is theirs to bound.
    """
    return iterations * (2 + _TURNS_A_REVIEW * agent_reviews)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Hard limits of a run; None is no limit of its own.

    Tokens and cost are hard between turns: what is under way when they are reached is finished.
    """

    turns: int | None = None
    messages: int | None = None
    minutes: float | None = None
    tokens: int | None = None
    cost: float | None = None


class Spent:
    """What something cost; ``estimated`` counts the turns whose usage is not known."""

    def __init__(self) -> None:
        self.turns = 0
        self.messages = 0
        self.tokens = 0
        self.cost = 0.0
        self.estimated = 0

    def add(
        self,
        *,
        turns: int = 0,
        messages: int = 0,
        tokens: int = 0,
        cost: float = 0.0,
        estimated: int = 0,
    ) -> None:
        """Count so much more."""
        self.turns += turns
        self.messages += messages
        self.tokens += tokens
        self.cost += cost
        self.estimated += estimated


class Purse:
    """What one interaction may spend, and has spent (D19)."""

    def __init__(self, name: str, share: Share) -> None:
        self._name = name
        self._share = share
        self.spent = Spent()

    @property
    def limits_money(self) -> bool:
        """Whether it matters here what a turn has cost."""
        return self._share.cost is not None

    def check(self, *, turns: int = 0, messages: int = 0) -> None:
        """End the interaction when a limit leaves no room for so much more; says which."""
        share, spent = self._share, self.spent
        if share.turns is not None and spent.turns + turns > share.turns:
            raise self._ended(f"{share.turns} turns")
        if share.messages is not None and spent.messages + messages > share.messages:
            raise self._ended(f"{share.messages} messages")
        if share.tokens is not None and spent.tokens >= share.tokens:
            raise self._ended(f"{share.tokens} tokens")
        if share.cost is not None and spent.cost >= share.cost:
            raise self._ended(f"{share.cost:g} dollars")

    def _ended(self, what: str) -> StageEnded:
        return StageEnded(f"budget of {self._name}: {what}")


_step: ContextVar[Spent | None] = ContextVar("spent_by_this_step", default=None)
_purses: ContextVar[tuple[Purse, ...]] = ContextVar("spent_from_these", default=())


class Meter:
    """Counts what is spent and ends the stage when a limit is reached.

    Time is measured on the monotonic clock, from when the meter is made, plus what earlier
    processes used; while it is paused, because the run is parked, time does not count.
    """

    def __init__(
        self,
        budget: Budget,
        clock: Clock,
        *,
        used_seconds: float = 0,
        used_tokens: int = 0,
        used_cost: float = 0,
    ) -> None:
        self._budget = budget
        self._clock = clock
        self._started = clock.monotonic() - used_seconds
        self._paused_at: float | None = None
        self._resumed: anyio.Event | None = None
        self._priced_tokens = 0
        self._priced_cost = 0.0
        self.spent = Spent()
        self.spent.add(tokens=used_tokens, cost=used_cost)

    # -- time ------------------------------------------------------------------------------------

    @property
    def turns(self) -> int:
        """How many turns were spent."""
        return self.spent.turns

    @property
    def seconds(self) -> float:
        """How long the run has worked, over all its processes."""
        now = self._clock.monotonic() if self._paused_at is None else self._paused_at
        return now - self._started

    @property
    def seconds_allowed(self) -> float | None:
        """How long the run may work in all; None without a limit."""
        return None if self._budget.minutes is None else self._budget.minutes * 60

    @property
    def seconds_left(self) -> float | None:
        """How long it may go on; None without a limit."""
        allowed = self.seconds_allowed
        return None if allowed is None else allowed - self.seconds

    def pause(self) -> None:
        """Stop the time: the run is parked."""
        if self._paused_at is None:
            self._paused_at = self._clock.monotonic()
            self._resumed = anyio.Event()

    def resume(self) -> None:
        """Let time go on."""
        if self._paused_at is not None and self._resumed is not None:
            self._started += self._clock.monotonic() - self._paused_at
            self._resumed.set()
            self._paused_at = self._resumed = None

    async def wait_until(self, seconds: float) -> None:
        """Return as soon as the run has worked for ``seconds`` in all."""
        while True:
            if self._resumed is not None:
                await self._resumed.wait()
            # Compared as a moment, not as a duration: rounding must not make this wait for nothing.
            moment = self._started + seconds
            if self._resumed is None and self._clock.monotonic() >= moment:
                return
            await self._clock.sleep_until(moment)

    # -- spending --------------------------------------------------------------------------------

    def spend_turn(self) -> None:
        """Count a turn and the two messages it takes, or end the stage."""
        self.check(turns=1, messages=2)
        self._charge(turns=1, messages=2)

    def spend_message(self) -> None:
        """Count a message that needs no answer, or end the stage."""
        self.check(messages=1)
        self._charge(messages=1)

    def spend_usage(self, usage: Usage | None = None, *, characters: int = 0) -> bool:
        """Count what a turn used; True when that had to be estimated, wholly or in part.

        ``characters`` is the length of what was asked and answered, the best guess at a turn that
        says nothing. A limit that is passed shows when the next turn begins.
        """
        known = usage or Usage()
        counted = _tokens(known)
        guess = characters // CHARACTERS_PER_TOKEN if characters else TURN_TOKENS
        tokens = guess if counted is None else counted
        guesses_cost = known.cost is UNSET and self._needs_a_price()
        told = 0.0 if known.cost is UNSET else known.cost
        cost = tokens * self._price() if guesses_cost else told
        if counted is not None and known.cost is not UNSET:
            self._priced_tokens += tokens
            self._priced_cost += cost
        estimated = counted is None or guesses_cost or known.estimated is True
        self._charge(tokens=tokens, cost=cost, estimated=int(estimated))
        return estimated

    def count(
        self,
        *,
        turns: int = 0,
        messages: int = 0,
        tokens: int = 0,
        cost: float = 0.0,
        purses: tuple[Purse, ...] = (),
    ) -> None:
        """Count what an earlier process spent; that there was room for it is known.

        Tokens and money are counted for ``purses`` alone: the run's own are told by the events.
        """
        self.spent.add(turns=turns, messages=messages)
        for purse in purses:
            purse.spent.add(turns=turns, messages=messages, tokens=tokens, cost=cost)

    @contextmanager
    def told_apart(self, spent: Spent, purses: tuple[Purse, ...] = ()) -> Iterator[None]:
        """Count what is spent inside, also by tasks that begin there, once more in ``spent``.

        It comes out of ``purses``, and is held to what each of them has left.
        """
        step, from_these = _step.set(spent), _purses.set(purses)
        try:
            yield
        finally:
            _step.reset(step)
            _purses.reset(from_these)

    def _charge(self, **amounts: Any) -> None:
        self.spent.add(**amounts)
        mine = _step.get()
        if mine is not None:
            mine.add(**amounts)
        for purse in _purses.get():
            purse.spent.add(**amounts)

    def check(self, *, turns: int = 0, messages: int = 0) -> None:
        """End the stage when a limit leaves no room for so much more; says which."""
        budget = self._budget
        for purse in _purses.get():
            purse.check(turns=turns, messages=messages)
        if budget.turns is not None and self.spent.turns + turns > budget.turns:
            raise StageEnded(f"budget: {budget.turns} turns")
        if budget.messages is not None and self.spent.messages + messages > budget.messages:
            raise StageEnded(f"budget: {budget.messages} messages")
        if budget.tokens is not None and self.spent.tokens >= budget.tokens:
            raise StageEnded(f"budget: {budget.tokens} tokens")
        if budget.cost is not None and self.spent.cost >= budget.cost:
            raise StageEnded(f"budget: {budget.cost:g} dollars")
        left = self.seconds_left
        if left is not None and left <= 0:
            raise self.out_of_time()

    def out_of_time(self) -> StageEnded:
        """The end that a run's minutes give it."""
        return StageEnded(f"budget: {self._budget.minutes:g} minutes")

    def _needs_a_price(self) -> bool:
        """Whether money is limited, or some of it was told: else a guess would look like a fact."""
        limited = self._budget.cost is not None or any(p.limits_money for p in _purses.get())
        return limited or self._priced_tokens > 0

    def _price(self) -> float:
        return self._priced_cost / self._priced_tokens if self._priced_tokens else TOKEN_PRICE


def _tokens(usage: Usage) -> int | None:
    """What a turn took in and put out anew; what came from a cache was counted when it went in."""
    known = [
        count
        for count in (usage.input_tokens, usage.output_tokens, usage.cache_write)
        if count is not UNSET
    ]
    return sum(known) if known else None
