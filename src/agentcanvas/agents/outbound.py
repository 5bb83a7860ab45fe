"""A runtime whose turns have their way out: the egress proxy is opened and closed with each (D11).

Each request through it is an event of the transcript; a flood of them is counted after a while.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from agentcanvas.agents.runtime import UNSTAMPED, Emit, Runtime, Turn, TurnResult
from agentcanvas.agents.way_out import OpenWay, WayOut
from agentcanvas.protocol.records import NetworkEvent, RawEvent
from agentcanvas.sandbox.egress.log import Request, Tell
from agentcanvas.sandbox.egress.proxy import Egress, open_egress

Opening = Callable[[WayOut, Tell], AbstractAsyncContextManager[Egress]]


def open_door(way: WayOut, tell: Tell) -> AbstractAsyncContextManager[Egress]:
    """Open the egress proxy with the keys of this process and those of the way."""
    return open_egress(way.rules, tell, keys={**os.environ, **way.keys})


class Outbound:
    """Wraps the runtime of one agent."""

    def __init__(self, runtime: Runtime, way: WayOut, *, opening: Opening = open_door) -> None:
        self._runtime = runtime
        self._way = way
        self._opening = opening

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run a turn with the network that its agent has."""
        way = self._way
        if not way.network.is_behind_a_door:
            return await self._runtime.run(_going(turn, OpenWay(way)), emit)
        told = _Told(emit)
        try:
            async with self._opening(way, told) as door:
                return await self._runtime.run(_going(turn, OpenWay(way, door)), emit)
        finally:
            told.close()


def _going(turn: Turn, out: OpenWay) -> Turn:
    return msgspec.structs.replace(turn, out=out)


class _Told:
    """Puts requests on record: the first ones each, of the others only how many there were."""

    _ONE_BY_ONE = 500

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._told = 0
        self._refused = 0

    def __call__(self, request: Request) -> None:
        self._told += 1
        if self._told <= self._ONE_BY_ONE:
            self._emit(_event(request))
        elif not request.allowed:
            self._refused += 1

    def close(self) -> None:
        more = self._told - self._ONE_BY_ONE
        if more > 0:
            line = f"network: {more:,} more requests, {self._refused:,} of them refused"
            self._emit(RawEvent(line=line, **UNSTAMPED))


def _event(request: Request) -> NetworkEvent:
    return NetworkEvent(
        method=request.method,
        host=request.host,
        port=request.port,
        allowed=request.allowed,
        status=request.status or msgspec.UNSET,
        sent=request.sent,
        received=request.received,
        ms=request.ms,
        reason=request.reason,
        **UNSTAMPED,
    )
