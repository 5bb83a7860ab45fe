"""What a run may spend; what was spent counts again after a resume (D19)."""

from __future__ import annotations

import msgspec

from agentcanvas.clock import Clock
from agentcanvas.errors import StageEnded


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Hard limits of a run; None is no limit of its own."""

    turns: int | None = None
    messages: int | None = None
    minutes: float | None = None


class Meter:
    """Counts what is spent and ends the stage when a limit is reached.

    Replayed steps are counted like new ones, so a resumed run goes on with what was left. Time is
    measured on the monotonic clock from ``start``, plus what earlier processes used.
    """

    def __init__(self, budget: Budget, clock: Clock, *, used_seconds: float = 0) -> None:
        self._budget = budget
        self._clock = clock
        self._started = clock.monotonic() - used_seconds
        self.turns = 0
        self.messages = 0

    @property
    def seconds(self) -> float:
        """How long the run has worked, over all its processes."""
        return self._clock.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """How long it may go on; None without a limit."""
        if self._budget.minutes is None:
            return None
        return self._budget.minutes * 60 - self.seconds

    def spend_turn(self) -> None:
        """Count a turn and the two messages it takes, or end the stage."""
        self.turns += 1
        self.messages += 2
        self.check()

    def spend_message(self) -> None:
        """Count a message that needs no answer, or end the stage."""
        self.messages += 1
        self.check()

    def check(self) -> None:
        """End the stage when a limit is passed; says which."""
        budget = self._budget
        if budget.turns is not None and self.turns > budget.turns:
            raise StageEnded(f"budget: {budget.turns} turns")
        if budget.messages is not None and self.messages > budget.messages:
            raise StageEnded(f"budget: {budget.messages} messages")
        left = self.seconds_left
        if left is not None and left <= 0:
            raise StageEnded(f"budget: {budget.minutes:g} minutes")
