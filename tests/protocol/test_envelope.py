"""An envelope cannot change after it was made, and neither can anything in it (PR6)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET, Raw

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol.answers import error_answer
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import decode, encode
from agentcanvas.protocol.envelope import AgentRef, Envelope, from_json
from agentcanvas.protocol.kinds import Ack, Kind, TaskAccept
from agentcanvas.protocol.log import threads
from tests.protocol import strategies
from tests.protocol.test_rules import EXAMPLES, chain

PLAIN = (str, int, float, bool, Raw, Enum, type(UNSET))


def assert_frozen(value: Any) -> None:
    """Only plain and frozen values are reachable, and no field can be set."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            inner = getattr(value, field)
            with pytest.raises(AttributeError):
                setattr(value, field, inner)
            assert_frozen(inner)
    elif isinstance(value, tuple):
        for item in value:
            assert_frozen(item)
    else:
        assert isinstance(value, PLAIN), type(value)


@pytest.mark.req("PR6")
@given(strategies.envelopes())
def test_nothing_reachable_from_an_envelope_can_change(envelope: Envelope) -> None:
    assert_frozen(envelope)


@pytest.mark.req("PR6")
def test_a_body_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"body of task.accept must be TaskAccept, not Ack"):
        Envelope(
            id="1",
            kind=Kind.TASK_ACCEPT,
            time="2026-01-28T10:00:00Z",
            sender=AgentRef("a"),
            body=Ack(),
        )


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b'{"id": 1}', b'{"id":"\xff"}', b"nonsense", b"[" * 2000]
)
def test_what_is_no_envelope_gives_one_typed_error(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="Not an envelope"):
        from_json(line)


@pytest.mark.req("M4")
def test_the_chain_is_a_tree_rooted_at_its_first_message() -> None:
    (root,) = threads(decode(line.encode()).envelope for line in chain())
    assert root.envelope.id == "msg-001"
    assert [reply.envelope.id for reply in root.replies] == ["msg-002", "msg-003", "msg-004"]


@pytest.mark.req("M3", "H11")
def test_an_error_is_answered_in_the_form_of_the_example() -> None:
    error = ProtocolError("Missing required field: task_id", message_id="req-001")
    answer = error_answer(
        error,
        id="err-001",
        time="2026-01-28T10:00:00Z",
        sender="worker-agent-1",
        recipient="coordinator-agent",
    )
    said = msgspec.json.decode(encode(answer, DialectName.MAC))
    example = msgspec.json.decode((EXAMPLES / "mac_error.json").read_bytes())
    assert said["payload"] == example["payload"]
    for field in ("message_id", "type", "from", "to", "timestamp"):
        assert said[field] == example[field]


def test_the_task_of_a_message_is_at_hand() -> None:
    envelope = Envelope(
        id="1",
        kind=Kind.TASK_ACCEPT,
        time="2026-01-28T10:00:00Z",
        sender=AgentRef("a"),
        body=TaskAccept(task_id="t"),
    )
    assert envelope.task_id == "t"
    assert not envelope.is_broadcast
