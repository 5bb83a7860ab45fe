"""How members come by the tools for their team: a program over MCP, a model at once.

The way from inside a sandbox to the server on this machine is the egress proxy's, which puts the
member's token in the place of the turn's (D11). A member without any network has no such tools.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from agentcanvas.agents.asking import asker
from agentcanvas.agents.cli.adapter import Server
from agentcanvas.agents.member_tools import PATIENCE_S, MemberTools
from agentcanvas.agents.runtime import Emit, Runtime, Turn, TurnResult
from agentcanvas.agents.way_out import WayOut
from agentcanvas.clock import Clock
from agentcanvas.hub.client import Connection
from agentcanvas.runs.crew import CrewCall
from agentcanvas.sandbox.confine import Network, Places
from agentcanvas.sandbox.egress.rules import Endpoint

if TYPE_CHECKING:
    from agentcanvas.app.member_server import MemberServer, Seat

_TOKEN = "AGENTCANVAS_MEMBER_TOKEN"  # noqa: S105  # a name, not a token
_LOOPBACK = ("127.0.0.0/8",)


@asynccontextmanager
async def open_seats(call: CrewCall) -> AsyncIterator[MemberServer | None]:
    """The server for those members of a crew that are programs which speak MCP; None without any.

    It is imported when it is needed: it brings a good deal along.
    """
    kinds = {agent.runtime.kind if agent.runtime else "cli" for agent in call.flow.agents}
    if call.replay or "cli" not in kinds:
        yield None
        return
    module = importlib.import_module("agentcanvas.app.member_server")
    async with module.open_member_server() as server:
        yield server


def tools_for(
    agent: str, call: CrewCall, connection: Connection, clock: Clock, *, over_mcp: bool = False
) -> MemberTools:
    """The tools of one member; over MCP nobody waits for an answer for long."""
    ask = asker(connection, agent, clock)
    patience_s = PATIENCE_S if over_mcp else None
    return MemberTools(agent, call.aside, ask, clock, patience_s=patience_s)


class Place:
    """A member's place at the server: what its runtime and its network have to know of it."""

    def __init__(self, server: MemberServer) -> None:
        self._server = server
        self._seat = server.seat()

    def reached_by(self, way: WayOut) -> WayOut:
        """The way out of an agent, with the server on it where it leads through the proxy."""
        if not way.network.is_behind_a_door:
            return way
        hub = Endpoint(name="hub", url=self._server.url, key_from=_TOKEN, within=_LOOPBACK)
        rules = msgspec.structs.replace(way.rules, hub=hub)
        return replace(way, rules=rules, keys={**way.keys, _TOKEN: self._seat.token})

    def servers(self, turn: Turn, places: Places) -> Sequence[Server]:
        """What stands in the member's private configuration."""
        if turn.out.door is not None:
            url, token = turn.out.door.hub_url(places), turn.out.door.token
        elif turn.out.way.network is Network.OPEN:
            url, token = self._server.url, self._seat.token
        else:
            return ()
        headers = {"Authorization": f"Bearer {token}"}
        return (Server(name="agentcanvas", url=f"{url}/mcp", headers=headers),)

    def seated(self, runtime: Runtime, tools: MemberTools) -> Runtime:
        """The runtime, its member's tools at hand while a turn lasts."""
        return HandingOver(_Seated(runtime, self._seat, tools), tools)


class HandingOver:
    """A runtime whose member may give its task to another one in the middle of a turn."""

    def __init__(self, runtime: Runtime, tools: MemberTools) -> None:
        self._runtime = runtime
        self._tools = tools

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run a turn; handed over, it is not done by this member."""
        return self._tools.settled(turn, await self._runtime.run(turn, emit))


class _Seated:
    def __init__(self, runtime: Runtime, seat: Seat, tools: MemberTools) -> None:
        self._runtime = runtime
        self._seat = seat
        self._tools = tools

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        async with self._tools.during(turn) as tools:
            with self._seat.taken(tools):
                return await self._runtime.run(turn, emit)
