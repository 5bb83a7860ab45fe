"""``connect``: a voice in the hub for whoever wants to ask, over any transport, that reconnects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.hub.client import Connection
from agentcanvas.hub.conversations import Client
from agentcanvas.hub.reconnecting import BackOff, Dial, Reconnecting
from agentcanvas.hub.recovery import Asking
from agentcanvas.protocol.limits import Limits

_DEFAULT_BACK_OFF = BackOff()
_DEFAULT_LIMITS = Limits()


@asynccontextmanager
async def connect(
    dial: Dial,
    agent: str,
    *,
    clock: Clock | None = None,
    session: str | UnsetType = UNSET,
    wrap: Callable[[Connection], Asking] | None = None,
    back_off: BackOff = _DEFAULT_BACK_OFF,
    limits: Limits = _DEFAULT_LIMITS,
) -> AsyncIterator[Client]:
    """Speak as ``agent`` until the block ends; ``wrap`` adds habits of ``recovery``."""
    clock = clock or SystemClock()
    way = Reconnecting(dial, clock, back_off=back_off)
    await way.open()
    async with Connection.over(way, clock) as connection:
        asking = wrap(connection) if wrap is not None else None
        yield Client(connection, agent, clock, session=session, asking=asking, limits=limits)
