"""Frames cut the short way say what the library would have read, however the bytes arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from agentcanvas.web.framing import Cutter, framed

pytestmark = pytest.mark.req("H1")

LARGEST = 300
DATA = {Opcode.TEXT, Opcode.BINARY, Opcode.CONT}


def masked(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def text(length: int) -> bytes:
    return masked(Opcode.TEXT, b"x" * length)


frame = some.one_of(
    some.builds(
        masked,
        some.sampled_from([Opcode.TEXT, Opcode.BINARY]),
        some.binary(max_size=20) | some.text(max_size=20).map(str.encode),
    ),
    some.integers(100, LARGEST + 5).map(text),
    some.builds(
        masked,
        some.sampled_from(sorted(DATA)),
        some.binary(max_size=5),
        fin=some.booleans(),
    ),
    some.builds(masked, some.sampled_from([Opcode.PING, Opcode.PONG]), some.binary(max_size=5)),
    some.just(masked(Opcode.CLOSE, b"\x03\xe8")),
    some.binary(max_size=8),
)


def read_by_library(stream: bytes) -> tuple[list[bytes], bool]:
    """Return what data frames hold, and whether the stream broke the protocol."""
    server = ServerProtocol(state=State.OPEN, max_size=LARGEST)
    server.receive_data(stream)
    return _data_of(server), server.parser_exc is not None


def _data_of(server: ServerProtocol) -> list[bytes]:
    events = [each for each in server.events_received() if isinstance(each, Frame)]
    return [bytes(each.data) for each in events if each.opcode in DATA]


def read_the_short_way(parts: list[bytes]) -> tuple[list[bytes], bool]:
    """Do the same as ``SocketProtocol`` does."""
    server, cutter = ServerProtocol(state=State.OPEN, max_size=LARGEST), Cutter(LARGEST)
    found: list[bytes] = []
    for part in parts:
        cutter.feed(part)
        while server.state is State.OPEN:
            found += cutter.messages()
            if not (others := cutter.others()):
                break
            server.receive_data(others)
            found += _data_of(server)
        if server.state is not State.OPEN and (rest := cutter.rest()):
            server.receive_data(rest)
            found += _data_of(server)
    return found, server.parser_exc is not None


@given(some.lists(frame, max_size=8), some.lists(some.integers(0, 400), max_size=6))
def test_it_reads_what_the_library_reads(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frames)
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [stream[one:two] for one, two in pairwise(at)]
    assert read_the_short_way(parts) == read_by_library(stream)


@given(some.lists(frame, max_size=4))
def test_it_reads_byte_by_byte(frames: list[bytes]) -> None:
    stream = b"".join(frames)
    parts = [stream[at : at + 1] for at in range(len(stream))]
    assert read_the_short_way(parts) == read_by_library(stream)


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
