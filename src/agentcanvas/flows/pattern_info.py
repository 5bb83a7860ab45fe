"""What a flow has to know of a pattern: its roles, its ends and its worst case (I4, I4a).

A plain value that the pattern's own package fills in and hands over; flows never look at how a
pattern behaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from agentcanvas.flows.axes import Sync, Termination, Topology, Verification

ROUND_MS: Final = 300_000
"""The time of one round, where a pattern's time follows from its rounds (I4a)."""


class RoleInfo(Struct, frozen=True):
    """One part to be played, by at least ``least`` and at most ``most`` (None: any number)."""

    name: str
    least: int = 1
    most: int | None = 1
    system: bool = False
    """A built-in node plays it when no agent is named (I3)."""
    writes: bool = False
    """Its work ends in a proposal (D6), so nobody in it reviews."""
    unless: tuple[str, str] | None = None
    """The param, and its value, with which nobody plays it; else no built-in node can."""

    @property
    def needed(self) -> int:
        return 0 if self.system else self.least

    @property
    def count(self) -> str:
        """How many play it, in words."""
        if self.most is None:
            return f"at least {self.needed}"
        return str(self.most) if self.needed == self.most else f"{self.needed} to {self.most}"


class Case(Struct, frozen=True):
    """What a worst case depends on."""

    players: Mapping[str, int]
    """How many play each role."""
    rounds: int | None
    timeout_minutes: float | None
    tasks: int
    """Steps of the ready plan; 0 when the pattern plans by itself."""
    iterations: int
    """Rounds of review that one proposal may take."""
    params: Mapping[str, Any]
    agent_reviews: bool = True
    """Whether an agent takes a turn to review; a person and an automatic approval take none."""
    tasks_as_asks: bool = False
    """Whether a task is one question, as it is to an interaction that carries it out."""
    turns_an_ask: int = 1
    """How often one plain question may be asked, until its answer has its form."""
    verification: tuple[Verification, ...] = ()
    checkers: int = 0
    """How many vote on the result."""


class Cost(Struct, frozen=True):
    """The most that can be needed; None is: without a bound."""

    turns: int | None
    messages: int | None
    by_role: Mapping[str, int] = {}
    """How the turns are divided among the roles; what is left over is for those not named."""


class PatternInfo(Struct, frozen=True):
    """One pattern, seen from a flow."""

    id: str
    topologies: tuple[Topology, ...]
    """What it can run on; the first is its default."""
    roles: tuple[RoleInfo, ...] = ()
    """In the order in which edges bind them; empty when nothing is declared."""
    edges: tuple[tuple[str, str], ...] = ()
    """Source and target role of the first edge, the second, …; the last holds for all further."""
    termination: tuple[Termination, ...] = ()
    """Its default end."""
    needs_timeout: bool = False
    """Whether it never runs without a timeout_ms (I5)."""
    params: dict[str, Any] = field(default_factory=dict)
    """Defaults of its params."""
    sync: Sync = Sync.REQ_RES
    """How its turns follow each other where a flow does not say."""
    goes_on: bool = False
    """Whether it goes on while answers are still on their way, so that ``sync: async`` counts."""
    metrics: tuple[str, ...] | None = None
    """What it says itself of a gate's metrics; None: any, nobody knows."""
    ends_as: frozenset[str] = frozenset({"max_rounds"})
    """Options of its that say when it ends, and so stand for one of its ends."""
    in_rounds: bool = True
    """Whether a gate can be looked at when a round of it is over."""
    takes_tasks: bool = False
    """Whether it carries out a ready plan (D20)."""
    options: type[Struct] | None = None
    """What its params are made into, where the pattern itself was asked."""
    worst_case: Callable[[Case], Cost] | None = None
    refused: str = ""
    """Why it may not be played, where nothing else is known of it."""

    def role(self, name: str) -> RoleInfo | None:
        return next((role for role in self.roles if role.name == name), None)


Patterns = Mapping[str, PatternInfo]
