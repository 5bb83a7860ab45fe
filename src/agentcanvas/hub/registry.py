"""Who there is to ask: every agent that was here, what it can do, how busy it is, what waits.

Signs of life are ``presence``'s, mail is the broker's; this puts the two together for people and
for those who look for somebody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import msgspec
from msgspec import Struct

from agentcanvas.hub import mailbox
from agentcanvas.hub.events import PRESENCE, AgentLostEvent, EventKind
from agentcanvas.hub.presence import AgentCard, AgentState, Presence
from agentcanvas.protocol.kinds import AgentStatus
from agentcanvas.store import Store

_UNFIT = (AgentStatus.MAINTENANCE, AgentStatus.ERROR)


class Listing(Struct, frozen=True):
    """An agent, and how many messages wait for it."""

    card: AgentCard
    waiting: int


class Registry:
    """The agents of a hub."""

    def __init__(self, presence: Presence, store: Store) -> None:
        self._presence = presence
        self._store = store

    async def listings(self) -> list[Listing]:
        """List all agents, present or not, by name."""
        return await self._with_mail(self._presence.cards())

    async def find(
        self,
        *capabilities: str,
        max_load: float = 1.0,
        besides: Collection[str] = (),
    ) -> list[Listing]:
        """Find present agents that can do all of this and are fit to: the freest first.

        ``besides`` are not wanted, such as one that has rejected the task.
        """
        cards = [
            card
            for card in self._presence.search(*capabilities)
            if card.agent not in besides
            and card.status not in _UNFIT
            and (card.load or 0.0) <= max_load
        ]
        found = await self._with_mail(cards)
        return sorted(
            found, key=lambda each: (each.card.load or 0.0, each.waiting, each.card.agent)
        )

    def is_cacheable(self, agent: str, task_type: str) -> bool:
        """Tell whether an agent declares the answers to a task good for a while."""
        card = self._presence.card(agent)
        return card is not None and f"cacheable:{task_type}" in card.capabilities

    async def losses(self, *, after: int = 0) -> AsyncIterator[tuple[int, AgentLostEvent]]:
        """Iterate over the losses of agents, each with its number, and over those to come."""
        while True:
            for event in await self._store.events(after=after, stream=PRESENCE):
                after = event.seq
                if event.kind == EventKind.AGENT_LOST:
                    yield event.seq, msgspec.json.decode(event.body, type=AgentLostEvent)
            await self._store.wait_beyond(max(after, self._store.head))

    async def _with_mail(self, cards: Collection[AgentCard]) -> list[Listing]:
        names = [card.agent for card in cards]
        waiting = await self._store.read(lambda look: mailbox.waiting(look, names))
        return [Listing(card, waiting.get(card.agent, 0)) for card in cards]


__all__ = ["AgentState", "Listing", "Registry"]
