"""A record of what was turned away at the door, kept short.

Whoever floods the hub with messages that it refuses must not flood the store with the record of it.
"""

from __future__ import annotations

from contextlib import suppress

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, StoreError
from agentcanvas.hub.events import EventKind, Rejected, encode, stream_of
from agentcanvas.hub.redaction import Redactor
from agentcanvas.store import Store

_AT_MOST_EVERY_S = 1.0
_SENDERS = 1024


class Refusals:
    """Notes refusals, for each sender and code at most one a second; the next one says how many."""

    def __init__(self, store: Store, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor
        self._clock = clock
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    async def note(
        self, sender: str, session: str, message_id: str, refusal: AgentCanvasError
    ) -> None:
        """Put a refusal on record."""
        key, now = (sender, refusal.code), self._clock.monotonic()
        at, suppressed = self._last.get(key, (float("-inf"), 0))
        if now - at < _AT_MOST_EVERY_S:
            self._last[key] = (at, suppressed + 1)
            return
        if len(self._last) >= _SENDERS:
            self._last.clear()
        self._last[key] = (now, 0)
        event = Rejected(message_id, sender, refusal.code, str(refusal), suppressed)
        with suppress(StoreError):  # the sender is told anyhow
            line = self._redactor.quietly(encode(event))
            await self._store.append(stream_of(session), EventKind.REJECTED, line)
