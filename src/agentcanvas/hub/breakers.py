"""Circuit breakers, one a recipient, for the whole hub: pure state machines; times are arguments.

Closed until so many failures in a row; then open, and refuses at once; after a while half-open: one
trial call at a time closes or reopens it (H4, H11). Who asks for a permit says how the call ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from msgspec import Struct

from agentcanvas.errors import CircuitOpen
from agentcanvas.protocol.limits import BreakerLimits


class Circuit(Enum):
    """Whether calls go through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


_MOVES = {
    Circuit.CLOSED: {Circuit.OPEN},
    Circuit.OPEN: {Circuit.HALF_OPEN},
    Circuit.HALF_OPEN: {Circuit.CLOSED, Circuit.OPEN},
}


class Permit(Struct, frozen=True):
    """Leave to make one call; ``age`` says in which stretch of the circuit it was given."""

    recipient: str
    age: int
    is_trial: bool = False


@dataclass(slots=True)
class _Breaker:
    circuit: Circuit = Circuit.CLOSED
    failures: int = 0
    opened_at: float = 0.0
    on_trial: bool = False
    age: int = 0

    def move(self, to: Circuit) -> None:
        assert to in _MOVES[self.circuit], f"{self.circuit} has no move to {to}"
        self.circuit = to
        self.age += 1
        self.failures = 0
        self.on_trial = False


class Breakers:
    """All breakers of a hub; a recipient that never failed costs nothing."""

    def __init__(self, limits: BreakerLimits) -> None:
        self._limits = limits
        self._breakers: dict[str, _Breaker] = {}

    def circuit(self, recipient: str) -> Circuit:
        """Tell how a recipient's circuit stands."""
        found = self._breakers.get(recipient)
        return found.circuit if found else Circuit.CLOSED

    def admit(self, recipient: str, now: float) -> Permit:
        """Give leave for a call, or refuse at once."""
        breaker = self._breakers.get(recipient)
        if breaker is None:
            return Permit(recipient, 0)
        pause_s = self._limits.half_open_after_ms / 1000
        if breaker.circuit is Circuit.OPEN and now >= breaker.opened_at + pause_s:
            breaker.move(Circuit.HALF_OPEN)
        if breaker.circuit is Circuit.HALF_OPEN and not breaker.on_trial:
            breaker.on_trial = True
            return Permit(recipient, breaker.age, is_trial=True)
        if breaker.circuit is not Circuit.CLOSED:
            raise CircuitOpen(
                f"{recipient} failed {self._limits.failures} times in a row and is left alone for "
                f"{pause_s:g} s; ask later, or ask somebody else."
            )
        return Permit(recipient, breaker.age)

    def succeeded(self, permit: Permit) -> Circuit:
        """Note that a call went well; a late word from an earlier stretch changes nothing."""
        breaker = self._breakers.get(permit.recipient)
        if breaker is None or breaker.age != permit.age:
            return self.circuit(permit.recipient)
        breaker.failures = 0
        if breaker.circuit is Circuit.HALF_OPEN:
            breaker.move(Circuit.CLOSED)
        return breaker.circuit

    def failed(self, permit: Permit, now: float) -> Circuit:
        """Note that a call went wrong."""
        breaker = self._breakers.setdefault(permit.recipient, _Breaker())
        if breaker.age != permit.age:
            return breaker.circuit
        breaker.failures += 1
        if permit.is_trial or breaker.failures >= self._limits.failures:
            breaker.move(Circuit.OPEN)
            breaker.opened_at = now
        return breaker.circuit

    def abandoned(self, permit: Permit) -> None:
        """Note that nobody waits for a call any more; a trial is free again."""
        breaker = self._breakers.get(permit.recipient)
        if breaker is not None and breaker.age == permit.age and permit.is_trial:
            breaker.on_trial = False
