"""Whoever never finishes a request is hung up on; whoever waits for our answer is not (H1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from agentcanvas.web import http_protocol
from agentcanvas.web.http_protocol import PATIENCE_S, HttpProtocol
from agentcanvas.web.sockets import socket_protocol
from tests.app.hub_process import hub_beside

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1")]

HEAD = b"POST /x HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n"
GET = b"GET /x HTTP/1.1\r\nHost: here\r\n\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Timers:
    """An event loop of which the timers ring when the test says so."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handles: list[asyncio.TimerHandle] = []
        self._now = 0.0

    def call_later(self, delay: float, call: Callable[[], None], *_: Any) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(self._now + delay, call, (), self._loop)
        self._handles.append(handle)
        return handle

    def pass_s(self, seconds: float) -> None:
        """Let so much time go by."""
        self._now += seconds
        due = [handle for handle in self._handles if handle.when() <= self._now]
        self._handles = [handle for handle in self._handles if handle not in due]
        for handle in due:
            if not handle.cancelled():
                handle._run()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class Line(asyncio.Transport):
    """The server's end of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: asyncio.BaseProtocol | None = None
        self.said = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.said += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self.protocol is not None
        return self.protocol

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Place:
    """One connection to an application that reads all of a body, then answers when it may."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.line = Line()
        self.may_answer = asyncio.Event()
        self.bodies: list[bytes] = []
        config = uvicorn.Config(
            self.app,
            http=HttpProtocol,
            ws=socket_protocol(),
            interface="asgi3",
            loop="none",
            log_config=None,
        )
        config.load()
        self.state = ServerState()
        self.protocol = HttpProtocol(config, self.state, {}, _loop=self.timers)
        self.line.set_protocol(self.protocol)
        self.protocol.connection_made(self.line)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await self.may_answer.wait()
            return
        body, more = b"", scope["path"] == "/x"
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        self.bodies.append(body)
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    async def comes(self, data: bytes) -> None:
        cast(asyncio.Protocol, self.line.get_protocol()).data_received(data)
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    yield place
    tasks = tuple(place.state.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("begun", [b"", b"GET /", GET[:-2]])
async def test_a_head_that_is_never_whole_is_not_waited_for(place: Place, begun: bytes) -> None:
    pause_s = (PATIENCE_S - 1) / (len(begun) + 1)
    for byte in begun:  # however busily it comes
        await place.comes(bytes((byte,)))
        place.timers.pass_s(pause_s)
    assert not place.line.closed
    place.timers.pass_s(1.1 + pause_s)
    assert place.line.closed


async def test_a_body_may_come_slowly_and_not_stop(place: Place) -> None:
    await place.comes(HEAD)
    for part in (b"a", b"b", b"c"):
        await place.comes(part)
        place.timers.pass_s(PATIENCE_S - 1)
    assert not place.line.closed
    place.protocol.flow.read_paused = True
    place.timers.pass_s(1)
    assert not place.line.closed, "it is we who do not read on"
    place.protocol.flow.read_paused = False
    place.timers.pass_s(PATIENCE_S)
    assert place.line.closed


@pytest.mark.parametrize("request_", [GET, HEAD + b"abcd", UPGRADE])
async def test_whoever_waits_for_us_may_wait_as_long_as_we_like(
    place: Place, request_: bytes
) -> None:
    await place.comes(request_)
    place.timers.pass_s(100 * PATIENCE_S)
    assert not place.line.closed


async def test_what_is_left_of_a_body_that_was_answered_is_not_taken_for_ever(
    place: Place,
) -> None:
    place.may_answer.set()
    await place.comes(HEAD.replace(b"/x", b"/refused").replace(b"4", b"400"))
    assert b"done" in place.line.said
    for _ in range(3):
        await place.comes(b"more")
    place.timers.pass_s(PATIENCE_S)
    assert place.line.closed


async def test_the_next_request_of_a_connection_has_its_own_time(place: Place) -> None:
    place.may_answer.set()
    await place.comes(GET)
    await place.comes(GET[:10])
    place.timers.pass_s(PATIENCE_S - 1)
    await place.comes(GET[10:])
    assert place.line.said.count(b"done") == 2
    assert not place.line.closed


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_a_hub_hangs_up_on_half_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 0.01)
    async with (
        hub_beside(tmp_path) as (info, _),
        connected(info.url) as (nothing, _),
        connected(info.url) as (half, line),
    ):
        line.write(b"GET /api/v1/messages HTTP/1.1\r\nHost: ")
        assert await nothing.read() == b""
        assert await half.read() == b""


async def test_a_strangers_body_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 5)  # if it is waited for, the line ends
    async with hub_beside(tmp_path) as (info, _):
        for path in ("", "/take", "/ack"):
            async with connected(info.url) as (answer, line):
                host = urlsplit(info.url).netloc
                line.write(
                    f"POST /api/v1/messages{path} HTTP/1.1\r\nHost: {host}\r\n"
                    "Authorization: Bearer wrong\r\nContent-Length: 1000000\r\n\r\n".encode()
                )
                assert await answer.readline() == b"HTTP/1.1 401 Unauthorized\r\n"


async def test_another_uvicorn_gets_its_own_http_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_protocol.http_protocol() is HttpProtocol
    monkeypatch.setattr(http_protocol, "_PARTS", ("a_part_that_is_gone",))
    assert http_protocol.http_protocol() == "auto"
