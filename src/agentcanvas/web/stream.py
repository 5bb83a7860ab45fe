"""Server-sent events: frames, and a response that sends them until somebody has enough.

Heartbeats, the end of the server and a reader that has gone are dealt with here, so that whoever
makes the frames does nothing but make them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, StoreClosed
from agentcanvas.web import problems

RETRY_MS = 1000
PING_S = 15.0

_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_FIRST = b"retry: %d\n\n" % RETRY_MS
_PING = b": ping\n\n"


def frame(data: bytes, *, event: str = "", id: str = "") -> bytes:  # noqa: A002 - SSE's own name
    """One event; ``data`` is a single line."""
    head = f"id: {id}\n" if id else ""
    head += f"event: {event}\n" if event else ""
    return b"%sdata: %s\n\n" % (head.encode(), data)


class EventStream(Response):
    """Sends frames as they come, a ping every 15 s, and stops at once when ``ending`` is set."""

    media_type = "text/event-stream"

    def __init__(
        self, frames: AsyncGenerator[bytes, None], *, clock: Clock, ending: asyncio.Event
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._frames = frames
        self._clock = clock
        self._ending = ending
        self._gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the frames end, the reader leaves, or the server does."""
        del scope
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, receive, group.cancel_scope)
            group.start_soon(self._until_ending, group.cancel_scope)
            group.start_soon(self._ping, send)
            await self._send_frames(send)
            group.cancel_scope.cancel()
        if not self._gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_frames(self, send: Send) -> None:
        await _send(send, _FIRST)
        async with aclosing(_told(self._frames, self._clock)) as frames:
            async for data in frames:
                await _send(send, data)

    async def _ping(self, send: Send) -> None:
        while True:
            await self._clock.sleep(PING_S)
            await _send(send, _PING)

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        scope.cancel()

    async def _until_ending(self, scope: anyio.CancelScope) -> None:
        await self._ending.wait()
        scope.cancel()


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _told(frames: AsyncGenerator[bytes, None], clock: Clock) -> AsyncGenerator[bytes, None]:
    """Say an error as the last frame: the status of the answer is long on its way."""
    try:
        async with aclosing(frames):
            async for data in frames:
                yield data
    except StoreClosed:
        pass  # the server is about to end, and the reader will come back
    except AgentCanvasError as error:
        # Not "error": that is what a browser calls a broken connection.
        yield frame(problems.to_body(error, time=clock.now()), event="problem")
