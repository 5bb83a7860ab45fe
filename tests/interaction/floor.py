"""One hub, and every way to it: in process, over a WebSocket, over HTTP; in each dialect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, product
from typing import NamedTuple

from msgspec import UNSET, UnsetType, structs

from agentcanvas.app.hub import OpenHub
from agentcanvas.hub.broker import Parcel, Receipt, Settlement
from agentcanvas.hub.client import Transport
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.office import TokenOrder
from agentcanvas.hub.reconnecting import Dial
from agentcanvas.hub.transports import http, memory, websocket
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import DIALECTS
from agentcanvas.protocol.envelope import Envelope
from tests.app.hub_process import ws

TRANSPORTS = ("memory", "websocket", "http")


class Way(NamedTuple):
    """How an agent speaks."""

    transport: str
    dialect: DialectName

    def __str__(self) -> str:
        return f"{self.transport}-{self.dialect}"


WAYS = [Way(transport, dialect) for transport, dialect in product(TRANSPORTS, DialectName)]
_numbers = count(1)


class Translating:
    """An agent in the hub's own process that reads and writes one dialect all the same."""

    def __init__(self, way: Transport, dialect: DialectName) -> None:
        self._way = way
        self._dialect = DIALECTS[dialect]

    def _through(self, envelope: Envelope) -> Envelope:
        return self._dialect.decode(self._dialect.encode(envelope)).envelope

    async def send(
        self,
        envelope: Envelope,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Sequence[int] = (),
    ) -> Receipt:
        """Write the message, and hand over what it reads as."""
        return await self._way.send(self._through(envelope), on_behalf_of, taking)

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Write what came, and read it."""
        parcels = await self._way.receive(most)
        return [structs.replace(each, envelope=self._through(each.envelope)) for each in parcels]

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Pass it on."""
        return await self._way.settle(numbers, how)

    async def close(self) -> None:
        """Pass it on."""
        await self._way.close()


class Floor:
    """A hub at work, and agents of names that nobody had before."""

    def __init__(self, url: str, hub: OpenHub) -> None:
        self.url = url
        self.hub = hub

    async def session(self, *names: str) -> tuple[str, list[str]]:
        """Open a session of its own for a test, with fresh agents."""
        number = next(_numbers)
        agents = [f"{name}-{number}" for name in names]
        await self.hub.hub.sessions.open(f"session-{number}", members=agents)
        return f"session-{number}", agents

    async def dial(self, agent: str, way: Way, *, window: int = 64) -> Dial:
        """A way for an agent to connect."""
        if way.transport == "memory":
            dial = memory.dialing(self.hub.hub, Principal(agent), window=window)

            async def translating() -> Transport:
                return Translating(await dial(), way.dialect)

            return translating
        token = await self.token(agent)
        if way.transport == "websocket":
            return websocket.dialing(ws(self.url), agent, token, window=window, dialect=way.dialect)
        return http.dialing(self.url, agent, token, window=window, dialect=way.dialect)

    async def token(self, agent: str) -> str:
        """A token for an agent."""
        return (await self.hub.keeper.new_token(TokenOrder(name=agent))).text
