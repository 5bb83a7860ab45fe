"""Reading streams in tests, and breaking them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import httpx
import msgspec

from agentcanvas.app.server import ServerInfo
from agentcanvas.web.sse import Frame, frames_of


@asynccontextmanager
async def stream(
    client: httpx.AsyncClient,
    path: str = "/api/v1/events",
    *,
    headers: dict[str, str] | None = None,
    **query: str,
) -> AsyncIterator[AsyncIterator[Frame]]:
    """The frames of a stream, for as long as the block lasts."""
    async with client.stream("GET", path, params=query, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        async with aclosing(answer.aiter_bytes()) as chunks:  # type: ignore[type-var]  # a generator
            yield frames_of(chunks)


async def take(frames: AsyncIterator[Frame], count: int) -> list[Frame]:
    """The next ``count`` frames."""
    return [await anext(frames) for _ in range(count)]


class Wire:
    """A cable between a client and a server that can be cut."""

    def __init__(self, server: ServerInfo) -> None:
        self._there = server
        self._stack = AsyncExitStack()
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0

    @asynccontextmanager
    async def plugged_in(self) -> AsyncIterator[ServerInfo]:
        """How to reach the server through the cable."""
        here = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self._port = here.sockets[0].getsockname()[1]
        try:
            yield msgspec.structs.replace(self._there, url=f"http://127.0.0.1:{self._port}")
        finally:
            here.close()
            self.cut()

    def cut(self) -> None:
        """Break every connection, in the middle of whatever it is doing."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        port = int(self._there.url.rpartition(":")[2])
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        self._writers |= {writer, far_writer}
        # The server answers to its own port only.
        names = (b":%d" % self._port, b":%d" % port)
        await asyncio.gather(
            self._pump(reader, far_writer, names), self._pump(far_reader, writer, (b"", b""))
        )

    async def _pump(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, names: tuple[bytes, bytes]
    ) -> None:
        try:
            while data := await source.read(65536):
                to.write(data.replace(*names, 1) if names[0] else data)
                await to.drain()
        except (ConnectionError, OSError):
            pass
        finally:
            to.transport.abort()
