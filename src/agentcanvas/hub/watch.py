"""Keeping watch: signs of life are noted, and those concerned are told when they end (D31, L1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentLost, StoreError
from agentcanvas.hub import duties
from agentcanvas.hub.alarm import Alarm
from agentcanvas.hub.broker import Broker, Post
from agentcanvas.hub.duties import Duty
from agentcanvas.hub.events import (
    PRESENCE,
    AgentLostEvent,
    AgentPresentEvent,
    EventKind,
    Owed,
    encode,
    stream_of,
)
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.notices import notice
from agentcanvas.hub.presence import AgentState, Presence
from agentcanvas.protocol.kinds import Heartbeat
from agentcanvas.protocol.limits import HeartbeatLimits
from agentcanvas.store import Store


class Watch:
    """Watches the agents of a hub."""

    def __init__(
        self,
        presence: Presence,
        broker: Broker,
        store: Store,
        clock: Clock,
        limits: HeartbeatLimits,
    ) -> None:
        self._presence = presence
        self._broker = broker
        self._store = store
        self._clock = clock
        self._limits = limits
        self._alarm = Alarm(clock)
        self._awaited: dict[str, asyncio.Event] = {}

    async def hear(self, principal: Principal, said: object = None) -> None:
        """Note a sign of life; an agent that was lost is announced."""
        if principal.kind is not PrincipalKind.AGENT:
            return
        beat = said if isinstance(said, Heartbeat) else None
        was_lost = self._presence.hear(principal.id, self._clock.monotonic(), beat)
        self._alarm.ring_by(self._presence.next_moment())
        awaited = self._awaited.pop(principal.id, None)
        if awaited is not None:
            awaited.set()
        if was_lost:
            with suppress(StoreError):  # a full disk must not keep an agent out
                event = encode(AgentPresentEvent(principal.id))
                await self._store.append(PRESENCE, EventKind.AGENT_PRESENT, event)

    async def wait_for(self, agent: str) -> None:
        """Wait until an agent is there."""
        while (card := self._presence.card(agent)) is None or card.state is not AgentState.PRESENT:
            await self._awaited.setdefault(agent, asyncio.Event()).wait()

    async def goodbye(self, principal: Principal) -> None:
        """Note that an agent left; to whom it owed something is told."""
        if principal.kind is not PrincipalKind.AGENT:
            return
        self._presence.leave(principal.id)
        owed = await self._store.read(partial(duties.open_duties, agent=principal.id))
        if owed:
            await self._report_lost(principal.id, "it left", owed)

    async def run(self) -> None:
        """Watch until cancelled."""
        self._alarm.ring_by(self._presence.next_moment())
        while True:
            now = await self._alarm.wait()
            for agent in self._presence.silent(now):
                with suppress(StoreError):  # a full disk must not blind us
                    owed = await self._store.read(partial(duties.open_duties, agent=agent))
                    silence = f"nothing was heard of it for {self._limits.unavailable_s} s"
                    await self._report_lost(agent, silence, owed)
            self._alarm.ring_by(self._presence.next_moment())

    async def _report_lost(self, agent: str, reason: str, owed: Sequence[Duty]) -> None:
        def event(some: Iterable[Duty]) -> bytes:
            named = tuple(Owed(duty.kind, duty.name, duty.message, duty.owner) for duty in some)
            return encode(AgentLostEvent(agent, reason, named))

        await self._store.append(PRESENCE, EventKind.AGENT_LOST, event(owed))
        for session, group in groupby(owed, key=lambda duty: duty.session):
            some = list(group)
            await self._store.append(stream_of(session), EventKind.AGENT_LOST, event(some))
            await self._broker.post([self._loss(agent, reason, duty) for duty in some])

    def _loss(self, agent: str, reason: str, duty: Duty) -> Post:
        error = AgentLost(
            f"The agent {agent} is lost ({reason}); it has not ended the {duty.kind} {duty.name}. "
            "Wait for it, or give the work to somebody else."
        )
        return notice(
            error,
            to=duty.owner,
            session=duty.session,
            about=duty.message,
            at_ms=self._clock.now_ms(),
        )
