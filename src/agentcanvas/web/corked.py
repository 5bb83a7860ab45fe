"""Sockets that write once a turn of the event loop, however many frames were sent in it.

Each write is a call of the kernel, which costs more than anything else that is done for a small
message. uvicorn writes each frame by itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_AT_ONCE = 256 * 1024
"""What is more than this is written at once, so that back-pressure is felt in time."""


class CorkedProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, on such a transport."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Put the cork between."""
        corked = Corked(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, corked))


class Corked:
    """A transport that gathers what is written."""

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
