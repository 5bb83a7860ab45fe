"""Frames cut the short way say what the library would have read, however the bytes arrive."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, cast

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as some
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from agentcanvas.web import sockets
from agentcanvas.web.framing import MANY, Cutter, framed
from agentcanvas.web.socket_protocol import SocketProtocol

pytestmark = pytest.mark.req("H1")

LARGEST = 300
REQUEST = (
    b"GET /agent/ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Stub:
    """A loop, a task and a transport that do nothing but remember what was written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False
        self.soon: list[Any] = []

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for work in soon:
            work()

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def create_task(self, work: Coroutine[Any, Any, None]) -> Stub:
        work.close()
        return self

    def call_soon(self, work: Any) -> None:
        self.soon.append(work)

    def time(self) -> float:
        return 0.0

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


async def _app(scope: object, receive: object, send: object) -> None:
    pass


def heard(kind: type[WebSocketsSansIOProtocol], parts: list[bytes]) -> tuple[Any, ...]:
    """Feed a connection; return its messages, how it ended, and what it wrote."""
    config = uvicorn.Config(_app, ws=kind, ws_max_size=LARGEST, log_config=None)
    config.ws_per_message_deflate = False
    config.load()
    stub = Stub()
    one = kind(config, ServerState(), {}, cast(Any, stub))
    one.connection_made(cast(Any, stub))
    one.data_received(REQUEST)
    accept: Any = {"type": "websocket.accept", MANY: True}
    with pytest.raises(StopIteration):
        one.send(accept).send(None)
    stub.turn()
    stub.written = b""
    for part in parts:
        if not stub.closed:
            one.data_received(part)
            stub.turn()
    messages: list[bytes | None] = []
    code: int | None = None
    while not one.queue.empty():
        event: dict[str, Any] = dict(one.queue.get_nowait())
        if event["type"] == "websocket.disconnect":
            code = event.get("code")
        elif event["type"] == "websocket.receive":
            text = event.get("text")
            alone = text.encode() if text is not None else event.get("bytes")
            messages += event.get("frames") or [alone]
    return messages, code, one.conn.close_sent, stub.closed, stub.written


def masked(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def text(length: int) -> bytes:
    return masked(Opcode.TEXT, b"x" * length)


def with_a_bit_flipped(frame: bytes, bit: int) -> bytes:
    """One of its first two bytes said something else: reserved bits, codes, no mask."""
    head = int.from_bytes(frame[:2], "big") ^ (1 << bit)
    return head.to_bytes(2, "big") + frame[2:]


whole = some.builds(
    masked,
    some.sampled_from([Opcode.TEXT, Opcode.BINARY]),
    some.binary(max_size=20) | some.text(max_size=20).map(str.encode),
)
piece = some.builds(
    masked,
    some.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.CONT]),
    some.binary(max_size=5) | some.text(max_size=5).map(str.encode),
    fin=some.booleans(),
)
control = some.builds(
    masked, some.sampled_from([Opcode.PING, Opcode.PONG]), some.binary(max_size=130)
)
frame = some.one_of(
    whole,
    whole,
    some.integers(100, LARGEST + 5).map(text),
    piece,
    control,
    some.builds(with_a_bit_flipped, whole | control, some.integers(0, 15)),
    some.binary(max_size=4).map(lambda said: masked(Opcode.CLOSE, said)),
    some.just(masked(Opcode.CLOSE, b"\x03\xe8")),
    some.binary(max_size=8),
)


@given(some.lists(frame, max_size=8), some.lists(some.integers(0, 400), max_size=6))
def test_it_hears_and_answers_what_the_library_does(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frames)
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [stream[one:two] for one, two in pairwise(at)]
    # Given more at once, uvicorn forgets what came whole before a breach; we do not.
    assert heard(SocketProtocol, parts) == heard(WebSocketsSansIOProtocol, in_bytes(stream))


@given(some.lists(frame, max_size=4))
def test_it_does_so_byte_by_byte(frames: list[bytes]) -> None:
    parts = in_bytes(b"".join(frames))
    assert heard(SocketProtocol, parts) == heard(WebSocketsSansIOProtocol, parts)


def in_bytes(stream: bytes) -> list[bytes]:
    return [stream[at : at + 1] for at in range(len(stream))]


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        (b"\xc1\x80\x00\x00\x00\x00", 1002),
        (b"\x81\x01x", 1002),
        (b"\x83\x80\x00\x00\x00\x00", 1002),
        (masked(Opcode.CONT, b"x"), 1002),
        (masked(Opcode.TEXT, b"\xff"), 1007),
        (text(LARGEST + 1), 1009),
        (masked(Opcode.TEXT, b"x" * LARGEST, fin=False) + masked(Opcode.CONT, b"x"), 1009),
        (masked(Opcode.CLOSE, b"\x03\xe8"), 1000),
    ],
    ids=["reserved", "bare", "opcode", "pieces", "unicode", "large", "sum", "closed"],
)
def test_what_breaks_the_protocol_ends_with_the_code_for_it(stream: bytes, code: int) -> None:
    messages, _, close, closed, _ = heard(SocketProtocol, [text(1) + stream])
    assert messages == [b"x"]
    assert close is not None
    assert close.code == code
    assert closed


def test_nothing_is_held_once_all_is_handed_on() -> None:
    cutter = Cutter(LARGEST)
    cutter.feed(text(200) + text(200)[:7])
    assert cutter.messages() == [b"x" * 200]
    assert cutter.others() == b""
    assert len(cutter.rest()) == 7


def test_text_that_is_no_unicode_is_left_to_the_library() -> None:
    cutter = Cutter(LARGEST)
    wrong = masked(Opcode.TEXT, b"\xff\xfe")
    cutter.feed(text(1) + wrong + text(2))
    assert cutter.messages() == [b"x"]
    assert cutter.others() == wrong
    assert cutter.messages() == [b"xx"]


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65535, 65536, 100_000])
def test_what_is_framed_is_a_frame_of_text(length: int) -> None:
    assert framed(b"x" * length) == Frame(Opcode.TEXT, b"x" * length).serialize(mask=False)


@pytest.mark.anyio
async def test_another_uvicorn_gets_its_own_socket_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sockets.socket_protocol() is SocketProtocol
    monkeypatch.setattr(sockets, "_PARTS", ("conn", "a_part_that_is_gone"))
    assert sockets.socket_protocol() == sockets.PLAIN
