"""What an agent says before it is done, on its way to whoever asked (``sync: streaming``).

Parts are bounded: so many a turn, so long, and not one right after the other. The whole answer
comes at the end in any case.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from agentcanvas.agents.runtime import Emit
from agentcanvas.clock import Clock
from agentcanvas.protocol.records import TextEvent, TranscriptEvent
from agentcanvas.protocol.turns import MOST_PARTS

_APART_S = 1.0
_LONGEST = 2_000

Send = Callable[[str], Awaitable[object]]


@asynccontextmanager
async def in_parts(send: Send, clock: Clock) -> AsyncIterator[Emit]:
    """Take the events of a turn, and send what is said while it lasts."""
    parts = _Parts()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(parts.serve, send, clock)
        yield parts
        tasks.cancel_scope.cancel()


class _Parts:
    """What was said and not sent yet."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._heard = anyio.Event()

    def __call__(self, event: TranscriptEvent) -> None:
        if isinstance(event, TextEvent) and event.text.strip():
            self._said.append(event.text)
            self._heard.set()

    async def serve(self, send: Send, clock: Clock) -> None:
        for _ in range(MOST_PARTS):
            await self._heard.wait()
            self._heard = anyio.Event()
            said, self._said = "\n".join(self._said), []
            await send(said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…")
            await clock.sleep(_APART_S)
