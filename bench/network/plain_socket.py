"""A WebSocket client that does next to nothing, so that what is measured is the server.

The mask is zero, which the protocol allows and which costs nothing to apply. Whatever is sent in
one call goes in one write, for every contender alike.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

_TEXT, _PONG = 0x81, 0x8A
_PING, _CLOSE = 0x9, 0x8


class PlainSocket(asyncio.Protocol):
    """One connection."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._rest = bytearray()
        self._shaken = False
        self.opened = asyncio.get_running_loop().create_future()
        self._early: list[bytes] = []
        self._heard: Callable[[list[bytes]], None] = self._early.extend
        self._transport: asyncio.Transport | None = None

    @property
    def heard(self) -> Callable[[list[bytes]], None]:
        """Who gets what comes; before there is anybody it is kept for the first."""
        return self._heard

    @heard.setter
    def heard(self, heard: Callable[[list[bytes]], None]) -> None:
        self._heard = heard
        if self._early:
            early = self._early[:]
            self._early.clear()
            heard(early)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self._shaken:
            end = self._rest.find(b"\r\n\r\n")
            if end < 0:
                return
            if b" 101 " not in self._rest[:20]:
                self.opened.set_exception(ConnectionError(bytes(self._rest).decode()))
                return
            self._shaken = True
            del self._rest[: end + 4]
            self.opened.set_result(None)
        frames = self._frames()
        if frames:
            self._heard(frames)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("closed before it was open"))

    def send(self, messages: Iterable[bytes]) -> None:
        """Write messages, each a frame of its own."""
        assert self._transport is not None
        self._transport.write(b"".join([_framed(message) for message in messages]))

    def _pong(self, content: bytes) -> None:
        assert self._transport is not None
        self._transport.write(bytes((_PONG, 0x80 | len(content), 0, 0, 0, 0)) + content)

    def close(self) -> None:
        """Hang up."""
        assert self._transport is not None
        self._transport.abort()

    def _frames(self) -> list[bytes]:
        found, rest, at = [], self._rest, 0
        while len(rest) - at >= 2:
            size, head = rest[at + 1] & 0x7F, 2
            if size == 126:
                size, head = int.from_bytes(rest[at + 2 : at + 4], "big"), 4
            elif size == 127:
                size, head = int.from_bytes(rest[at + 2 : at + 10], "big"), 10
            if len(rest) - at < head + size:
                break
            opcode, content = rest[at] & 0x0F, bytes(rest[at + head : at + head + size])
            if opcode == _PING:  # who does not answer is hung up on, in the middle of a contest
                self._pong(content)
            elif opcode != _CLOSE:
                found.append(content)
            at += head + size
        del rest[:at]
        return found


def _framed(message: bytes) -> bytes:
    size = len(message)
    if size < 126:
        return bytes((_TEXT, 0x80 | size, 0, 0, 0, 0)) + message
    if size < 65536:
        return bytes((_TEXT, 0xFE)) + size.to_bytes(2, "big") + b"\0\0\0\0" + message
    return bytes((_TEXT, 0xFF)) + size.to_bytes(8, "big") + b"\0\0\0\0" + message


async def connected(url: str, path: str, token: str = "") -> PlainSocket:
    """Open a connection."""
    where = urlsplit(url)
    key = base64.b64encode(bytes(16)).decode()
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {where.hostname}:{where.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()
    loop = asyncio.get_running_loop()
    host, port = where.hostname or "", where.port or 80
    _, socket = await loop.create_connection(lambda: PlainSocket(request), host, port)
    await socket.opened
    return socket
