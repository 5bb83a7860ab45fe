"""Nothing is lost between dialects: there and back, and through our own envelope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from agentcanvas.protocol.dialect import DialectName, detect
from agentcanvas.protocol.dialects import DIALECTS, decode, encode, translate
from agentcanvas.protocol.envelope import Envelope, from_json, to_json
from tests.protocol import strategies

pytestmark = pytest.mark.req("M1", "W1", "W2", "W3", "D33", "C7")

EXAMPLES = Path(__file__).parent / "examples"


def example_messages() -> list[Any]:
    """Every message among the examples, one a parameter."""
    found = []
    for path in sorted(EXAMPLES.glob("*.json*")):
        if path.name.startswith(("mac_", "s22_", "acp_")) and path.name != "acp_audit.jsonl":
            text = path.read_text()
            lines = text.splitlines() if path.suffix == ".jsonl" else [text]
            found += [pytest.param(line, id=f"{path.stem}-{n}") for n, line in enumerate(lines)]
    return found


@pytest.mark.parametrize("text", example_messages())
@pytest.mark.parametrize("to", list(DialectName))
def test_every_example_survives_the_way_through_each_dialect(text: str, to: DialectName) -> None:
    data = text.encode()
    there = translate(data, to)
    assert detect(there) is to
    assert json.loads(translate(there, detect(data))) == json.loads(text)


@pytest.mark.parametrize("dialect", list(DialectName))
def test_any_message_survives_reading_and_writing(dialect: DialectName) -> None:
    @given(strategies.messages(dialect))
    def check(message: Any) -> None:
        data = json.dumps(message).encode()
        reading = DIALECTS[dialect].decode(data)
        again = DIALECTS[dialect].encode(reading.envelope)
        assert json.loads(again) == message
        assert DIALECTS[dialect].decode(again).envelope == reading.envelope

    check()


@pytest.mark.parametrize("home", list(DialectName))
@pytest.mark.parametrize("abroad", list(DialectName))
def test_any_message_survives_a_translation_and_its_way_back(
    home: DialectName, abroad: DialectName
) -> None:
    @given(strategies.messages(home))
    def check(message: Any) -> None:
        there = translate(json.dumps(message).encode(), abroad)
        reading = DIALECTS[abroad].decode(there)
        assert not reading.breaches
        assert json.loads(encode(reading.envelope, home)) == message

    check()


@pytest.mark.parametrize("dialect", list(DialectName))
def test_any_envelope_survives_each_dialect(dialect: DialectName) -> None:
    @given(strategies.envelopes())
    def check(envelope: Envelope) -> None:
        reading = decode(encode(envelope, dialect))
        assert reading.envelope == envelope
        assert not reading.breaches

    check()


@given(strategies.envelopes())
def test_any_envelope_survives_the_store(envelope: Envelope) -> None:
    line = to_json(envelope)
    assert b"\n" not in line
    assert from_json(line) == envelope
