"""Mail handed out to those who come for it and go again.

Whoever takes mail over HTTP has a connection to the hub like everybody else, which lasts from one
call to the next: priorities, windows and redelivery are the same. It is dropped when nobody has
asked for a while, and then counts as broken.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from agentcanvas.errors import Replaced
from agentcanvas.hub.alarm import Timer, ring_at
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Link
from agentcanvas.web.doors import Doors

KEPT_S = 60.0
"""How long a connection lasts without a call."""


class Taker:
    """One agent's, or one instance's, connection between its calls."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.calls = 0
        self.dropping: Timer | None = None


class Takers:
    """All of them."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._hub = doors.hub
        self._takers: dict[tuple[str, str], Taker] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def taking(
        self, principal: Principal, *, instance: str, window: int, capabilities: Iterable[str]
    ) -> AsyncIterator[Link]:
        """Give the connection of somebody for one call."""
        key = (principal.id, instance)
        taker = self._takers.get(key)
        if taker is not None and taker.link.is_closed:  # its token was revoked; there is a new one
            self._forget(key, taker)
            taker = None
        if taker is None:
            link = await self._hub.connect(
                principal, instance=instance, window=window, capabilities=capabilities
            )
            # Of two first calls at once the later has replaced the earlier, as the hub sees it.
            taker = self._takers[key] = Taker(link)
            self._count()
        if taker.dropping is not None:
            taker.dropping.cancel()
            taker.dropping = None
        taker.calls += 1
        try:
            yield taker.link
        except Replaced:
            self._forget(key, taker)
            raise
        finally:
            taker.calls -= 1
            if not taker.calls and self._takers.get(key) is taker:
                deadline = self._hub.clock.monotonic() + KEPT_S
                taker.dropping = ring_at(self._hub.clock, deadline, lambda: self._drop(key, taker))

    def link_of(self, principal: Principal, instance: str) -> Link | None:
        """Tell whether somebody has a connection here."""
        taker = self._takers.get((principal.id, instance))
        return taker.link if taker is not None else None

    async def leave(self, principal: Principal, instance: str) -> None:
        """End somebody's connection, with a goodbye."""
        key = (principal.id, instance)
        taker = self._takers.get(key)
        if taker is not None:
            self._forget(key, taker)
            await taker.link.close()

    def _forget(self, key: tuple[str, str], taker: Taker) -> None:
        if self._takers.get(key) is taker:
            del self._takers[key]
            self._count()
        if taker.dropping is not None:
            taker.dropping.cancel()

    def _count(self) -> None:
        self._doors.connections["http"] = len(self._takers)

    def _drop(self, key: tuple[str, str], taker: Taker) -> None:
        self._forget(key, taker)
        closing = asyncio.ensure_future(taker.link.close(goodbye=False))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
