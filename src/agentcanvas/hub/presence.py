"""Who is there: signs of life, load and capabilities, in memory; times are arguments.

Any word from an agent is a sign of life; 90 s without one, and it is lost (L1). Persons, doors and
the engine send no heartbeats and are not watched. What follows from a loss is ``hub``'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush

from msgspec import UNSET, Struct

from agentcanvas.protocol.kinds import AgentStatus, Heartbeat
from agentcanvas.protocol.limits import HeartbeatLimits


class AgentState(Enum):
    """Whether an agent can be expected to answer."""

    AWAY = "away"
    PRESENT = "present"
    LOST = "lost"


_MOVES = {
    AgentState.AWAY: {AgentState.PRESENT},
    AgentState.PRESENT: {AgentState.AWAY, AgentState.LOST},
    AgentState.LOST: {AgentState.PRESENT, AgentState.AWAY},
}


class AgentCard(Struct, frozen=True):
    """What is known of an agent; ``load`` is 0 to 1 and ``heard`` the time of its last word."""

    agent: str
    state: AgentState
    capabilities: tuple[str, ...] = ()
    status: AgentStatus | None = None
    load: float | None = None
    tasks_running: int | None = None
    tasks_queued: int | None = None
    heard: float = 0.0


@dataclass(slots=True)
class _Record:
    state: AgentState = AgentState.AWAY
    heard: float = 0.0
    capabilities: tuple[str, ...] = ()
    beat: Heartbeat | None = None
    watched: bool = False
    """Whether it has its place among ``_silences``; it never has two."""

    def move(self, to: AgentState) -> bool:
        if self.state is to:
            return False
        assert to in _MOVES[self.state], f"{self.state} has no move to {to}"
        self.state = to
        return True


class Presence:
    """Every agent that ever registered here; others are not watched."""

    def __init__(self, limits: HeartbeatLimits) -> None:
        self._patience = float(limits.unavailable_s)
        self._records: dict[str, _Record] = {}
        self._silences: list[tuple[float, str]] = []
        """When to look at whom; an agent that spoke meanwhile is looked at again later."""

    def register(self, agent: str, capabilities: Iterable[str] = ()) -> None:
        """Make an agent known, with what it can do."""
        record = self._records.setdefault(agent, _Record())
        record.capabilities = tuple(capabilities) or record.capabilities

    def hear(self, agent: str, now: float, beat: Heartbeat | None = None) -> bool:
        """Note a sign of life; tell whether the agent had been lost."""
        record = self._records.get(agent)
        if record is None:
            return False
        record.heard = now
        if beat is not None:
            record.beat = beat
            if beat.capabilities is not UNSET:
                record.capabilities = beat.capabilities
        was_lost = record.state is AgentState.LOST
        record.move(AgentState.PRESENT)
        if not record.watched:
            record.watched = True
            heappush(self._silences, (now + self._patience, agent))
        return was_lost

    def leave(self, agent: str) -> None:
        """Note that an agent said goodbye."""
        record = self._records.get(agent)
        if record is not None:
            record.move(AgentState.AWAY)

    def silent(self, now: float) -> list[str]:
        """Return the agents that are lost from now on."""
        lost = []
        while self._silences and self._silences[0][0] <= now:
            _, agent = heappop(self._silences)
            record = self._records[agent]
            expected = record.heard + self._patience
            record.watched = record.state is AgentState.PRESENT and expected > now
            if record.watched:
                heappush(self._silences, (expected, agent))
            elif record.state is AgentState.PRESENT:
                record.move(AgentState.LOST)
                lost.append(agent)
        return lost

    def next_moment(self) -> float | None:
        """Tell when to ask ``silent`` again."""
        return self._silences[0][0] if self._silences else None

    def card(self, agent: str) -> AgentCard | None:
        """Tell what is known of an agent."""
        record = self._records.get(agent)
        if record is None:
            return None
        beat = record.beat
        return AgentCard(
            agent,
            record.state,
            record.capabilities,
            beat.status if beat else None,
            beat.load if beat and beat.load is not UNSET else None,
            beat.tasks_running if beat and beat.tasks_running is not UNSET else None,
            beat.tasks_queued if beat and beat.tasks_queued is not UNSET else None,
            record.heard,
        )

    def cards(self) -> list[AgentCard]:
        """Tell what is known of every agent, by name."""
        return [card for agent in sorted(self._records) if (card := self.card(agent)) is not None]

    def search(self, *capabilities: str) -> list[AgentCard]:
        """Return the present agents that can do all of this, the least loaded first."""
        cards = [
            card
            for agent, record in self._records.items()
            if record.state is AgentState.PRESENT and set(capabilities) <= set(record.capabilities)
            if (card := self.card(agent)) is not None
        ]
        return sorted(cards, key=lambda card: (card.load or 0.0, card.agent))
