"""uvicorn's WebSocket, with a short way for whole messages: read and written many at once.

Handshake, pings, fragments, breaches and closing stay with uvicorn and the websockets library. An
application that finds ``MANY`` among the extensions of its scope may accept with ``MANY: True``: it
then gets, and may send, ``frames`` of bytes in place of one ``text``; what it sends is text.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import State

from agentcanvas.web.framing import MANY, Cutter, framed

_AT_ONCE = 256 * 1024
"""What is more than this is written at once, so that back-pressure is felt in time."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection."""

    _cutter: Cutter | None = None
    _came_early: bytes | None = None
    """What came after the request and before the answer; nothing is read until that is given."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Gather what is written."""
        corked = Corked(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, corked))

    def handle_connect(self, event: Request) -> None:
        """Say what can be done here."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][MANY] = {}

    def data_received(self, data: bytes) -> None:
        """Take in the request for the connection, then frames."""
        if self._cutter is not None:
            self._cutter.feed(data)
            self._sort(self._cutter)
        elif self.handshake_initiated and self.conn.state is State.CONNECTING:
            self._came_early = (self._came_early or b"") + data
            self.transport.pause_reading()
        else:
            super().data_received(data)

    def _sort(self, cutter: Cutter) -> None:
        while self.conn.state is State.OPEN:
            messages = cutter.messages()
            if messages:
                self._hand_over(messages)
            others = cutter.others()
            if not others:
                return
            super().data_received(others)
        super().data_received(cutter.rest())

    def _hand_over(self, messages: list[bytes]) -> None:
        """Pass messages on; read no further while there are some that nobody has taken."""
        if self.close_sent:
            return
        if not self.queue.empty() and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()
        received: Any = {"type": "websocket.receive", "frames": messages}
        self.queue.put_nowait(received)

    async def send(self, message: Any) -> None:
        """Write many frames in one go; leave the rest to uvicorn."""
        frames = message.get("frames")
        if frames is not None:
            await self.writable.wait()
            if self.disconnected or self.conn.state is not State.OPEN:
                raise ClientDisconnected
            self.transport.write(b"".join([framed(frame) for frame in frames]))
            return
        await super().send(message)
        if message["type"] == "websocket.accept" and self.conn.state is State.OPEN:
            if message.get(MANY):
                self._cutter = Cutter(self.config.ws_max_size)
            if self._came_early is not None:
                early, self._came_early = self._came_early, None
                self.transport.resume_reading()
                self.data_received(early)


class Corked:
    """A transport that writes once a turn of the event loop.

    Each write is a call of the kernel, which costs more than anything else that is done for a small
    message.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write with whatever else is written in this turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            if not self._transport.is_closing():
                self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Write the rest, then close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
