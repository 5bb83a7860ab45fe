"""Random bytes and messages gone wrong raise our errors and no others; two readers agree."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from agentcanvas.errors import AgentCanvasError, ProtocolError
from agentcanvas.protocol.dialect import DialectName, Reading, detect
from agentcanvas.protocol.dialects import DIALECTS, MAC, decode, encode
from agentcanvas.protocol.envelope import from_json, to_json
from agentcanvas.protocol.rules import examine
from agentcanvas.protocol.seal import is_plainly_unsigned
from agentcanvas.protocol.seal.places import has, place_of
from tests.protocol import mutations
from tests.protocol.samples import packed

pytestmark = pytest.mark.req("M1", "M2", "M3")


def understood(data: bytes) -> Reading | None:
    try:
        return decode(data)
    except ProtocolError as error:
        refused = error
    assert str(refused)
    assert refused.breaches
    return None


def hold(data: bytes) -> None:
    """Everything that is promised about any bytes at all."""
    reading = understood(data)
    report = examine(data)
    assert (reading is not None) == report.valid
    assert report.valid or report.breaches
    assert report.breaches == examine(data, strict=True).breaches
    with contextlib.suppress(AgentCanvasError):
        MAC.route(data)
    hold_the_short_ways(data, reading)
    if reading is None:
        return
    envelope = reading.envelope
    assert report.envelope == envelope
    assert set(reading.breaches) <= set(report.breaches)
    assert to_json(from_json(to_json(envelope))) == to_json(envelope)
    for name in DialectName:
        arrived = DIALECTS[name].decode(encode(envelope, name))
        assert arrived.envelope.sender.id == envelope.sender.id
        assert arrived.envelope.id == envelope.id


def hold_the_short_ways(data: bytes, reading: Reading | None) -> None:
    """What the doors leave out for plain messages changes nothing for any."""
    for name, dialect in DIALECTS.items():
        plain = dialect.decode_plain(data)
        if plain is not None:
            assert reading is not None
            assert detect(data) is name
            assert (plain.envelope, plain.breaches) == (reading.envelope, reading.breaches)
            assert plain.spelled in (b"", dialect.encode(plain.envelope))
    if reading is not None and is_plainly_unsigned(data):
        assert reading.envelope.signature is UNSET
        message = json.loads(data)
        assert not has(message, place_of(message).signature)


@given(st.binary(max_size=200))
@example(b"\xff")
@example(b"{")
@example(b'{"type":1e999}')
def test_random_bytes_are_refused_with_a_sentence(data: bytes) -> None:
    hold(data)
    assert not examine(data).valid


@given(mutations.garbled())
def test_a_message_with_bytes_gone_wrong_is_understood_or_refused(data: bytes) -> None:
    hold(data)


@given(mutations.mutated(mutations.any_message))
def test_a_message_with_fields_gone_wrong_is_understood_or_refused(message: Any) -> None:
    hold(packed(message))


@given(st.binary(max_size=200) | mutations.garbled())
def test_what_is_no_envelope_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="Not an envelope: "):
        from_json(data)
