"""In the hub's own process: the transport is the hub's end of a connection; nothing is encoded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from agentcanvas.hub.client import Connection
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub, Link
from agentcanvas.hub.reconnecting import Dial


@asynccontextmanager
async def connect(
    hub: Hub,
    principal: Principal,
    *,
    instance: str = "",
    capabilities: Iterable[str] = (),
    window: int = 64,
) -> AsyncIterator[Connection]:
    """Speak and listen as ``principal`` until the block ends."""
    link = await hub.connect(principal, instance=instance, capabilities=capabilities, window=window)
    async with Connection.over(link, hub.clock) as connection:
        yield connection


def dialing(
    hub: Hub,
    principal: Principal,
    *,
    instance: str = "",
    capabilities: Iterable[str] = (),
    window: int = 64,
) -> Dial:
    """Return a way to connect as ``principal``, as often as it is needed."""
    able = tuple(capabilities)

    async def dial() -> Link:
        return await hub.connect(principal, instance=instance, capabilities=able, window=window)

    return dial
