"""Every way to send something that is no message, with what has to be said about it.

The door (``decode``), the rules (``examine``) and the command line are held to the same table.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from agentcanvas.errors import MessageTooLarge, ProtocolError, UnknownDialect
from agentcanvas.protocol.scan import MAX_BYTES
from agentcanvas.protocol.shape import Rule
from tests.protocol.samples import (
    Json,
    acp_command,
    acp_response,
    example,
    mac_request,
    packed,
    spec022_assignment,
    with_payload,
)


class Refused(Struct, frozen=True):
    """Bytes that are refused: where, why, and in which words."""

    data: bytes
    says: str
    pointer: str = ""
    rule: Rule = Rule.JSON
    error: type[ProtocolError] = ProtocolError


def without(message: Json, *path: str) -> Json:
    """A copy of a message that lacks one field."""
    *parents, name = path
    message = json.loads(json.dumps(message))
    place: Any = message
    for parent in parents:
        place = place[parent]
    del place[name]
    return message


def replacing(message: Json, value: bytes, *path: str) -> bytes:
    """A message with raw JSON text, right or wrong, as the value of one field."""
    *parents, name = path
    message = json.loads(json.dumps(message))
    place: Any = message
    for parent in parents:
        place = place.setdefault(parent, {})
    place[name] = "@here@"
    return packed(message).replace(b'"@here@"', value)


def nested(depth: int) -> bytes:
    """JSON with as many levels, objects and arrays in turn."""
    opening = [b'{"a":' if level % 2 else b"[" for level in range(depth - 1)]
    closing = [b"}" if level % 2 else b"]" for level in reversed(range(depth - 1))]
    return b"".join([*opening, b"[]", *closing])


def sized(size: int) -> bytes:
    """A valid message of exactly so many bytes."""
    bare = packed(mac_request())
    return packed(with_payload(mac_request(), input="." * (size - len(bare) + len("..."))))


_MAC = packed(mac_request())
_TOO_DEEP = "Nested deeper than 64 levels; flatten it"
_UTF8 = "Invalid UTF-8 at byte"
_SURROGATE = "Lone surrogate escape near byte"
_NOT_JSON = "Not valid JSON: "
_NO_OBJECT = "Not a message: expected a JSON object"
_NUMBER = "is not a JSON number; use a number or a string"
_INPUT = ("payload", "input")
_TYPE = "Wrong type for "
_MISSING = "Missing required field: "
_UNKNOWN_VALUE = "Unknown value "
_RANGE = "is out of range; use a number from "


def _json(says: str, data: bytes) -> Refused:
    return Refused(data, says)


def _dialect(says: str, data: bytes) -> Refused:
    return Refused(data, says, rule=Rule.DIALECT, error=UnknownDialect)


def _shape(rule: Rule, pointer: str, says: str, message: Json | bytes) -> Refused:
    data = message if isinstance(message, bytes) else packed(message)
    return Refused(data, says, pointer, rule)


TEXT: dict[str, Refused] = {
    "nothing at all": _json("There is no message", b""),
    "white space": _json("There is no message", b" \n\t "),
    "a word": _json(_NOT_JSON, b"hello"),
    "cut short": _json(_NOT_JSON, _MAC[:-1]),
    "something after the end": _json(_NOT_JSON, _MAC + b"x"),
    "a comma too many": _json(_NOT_JSON, _MAC[:-1] + b",}"),
    "a single quote": _json(_NOT_JSON, _MAC.replace(b'"', b"'")),
    "a control character in a string": _json(
        _NOT_JSON, replacing(mac_request(), b'"\x01"', *_INPUT)
    ),
    "an unknown escape": _json(_NOT_JSON, replacing(mac_request(), rb'"\q"', *_INPUT)),
    "a leading zero": _json(_NOT_JSON, replacing(mac_request(), b"05", "priority")),
    "a byte order mark": _json("Starts with a byte order mark", b"\xef\xbb\xbf" + _MAC),
    "UTF-16": _json(_UTF8, _MAC.decode().encode("utf-16")),
    "UTF-16 without a mark": _json(_NOT_JSON, _MAC.decode().encode("utf-16-le")),
    "UTF-32 without a mark": _json(_NOT_JSON, _MAC.decode().encode("utf-32-le")),
    "NaN": _json(f"NaN {_NUMBER}", replacing(mac_request(), b"NaN", "priority")),
    "NaN in free JSON": _json(f"NaN {_NUMBER}", replacing(mac_request(), b'{"a":NaN}', *_INPUT)),
    "Infinity": _json(f"Infinity {_NUMBER}", replacing(mac_request(), b"Infinity", *_INPUT)),
    "-Infinity": _json(
        f"-Infinity {_NUMBER}", replacing(acp_command(), b"-Infinity", "parameters", "a")
    ),
    "one byte too many": Refused(
        sized(MAX_BYTES + 1),
        "The message has 1,048,577 bytes; at most 1,048,576 are allowed",
        error=MessageTooLarge,
    ),
    "a megabyte of brackets": _json(_TOO_DEEP, b"[" * MAX_BYTES),
    "a megabyte of nothing": Refused(
        b" " * (MAX_BYTES + 1), "at most 1,048,576 are allowed", error=MessageTooLarge
    ),
    # Each message around the deep value has one or two levels of its own.
    "depth in a payload": _json(_TOO_DEEP, replacing(mac_request(), nested(63), *_INPUT)),
    "depth in parameters": _json(
        _TOO_DEEP, replacing(acp_command(), nested(63), "parameters", "a")
    ),
    "depth in results": _json(_TOO_DEEP, replacing(acp_response(), nested(63), "results", "data")),
    "depth in an output": _json(
        _TOO_DEEP, replacing(example("mac_task_complete"), nested(63), "payload", "output")
    ),
    "depth in error details": _json(
        _TOO_DEEP, replacing(example("mac_task_failed"), nested(63), "payload", "error_details")
    ),
    "depth in a broadcast": _json(
        _TOO_DEEP, replacing(example("mac_broadcast"), nested(63), "payload", "countdown")
    ),
    "depth in an unknown field": _json(_TOO_DEEP, replacing(mac_request(), nested(64), "more")),
    "depth in metadata": _json(_TOO_DEEP, replacing(mac_request(), nested(63), "metadata", "a")),
    "depth where a text belongs": _json(_TOO_DEEP, replacing(mac_request(), nested(64), "from")),
    "depth in an extension's body": _json(
        _TOO_DEEP,
        replacing(acp_command(), nested(66), "x_agentcanvas", "body", "input"),
    ),
    "depth in an extension's fragment": _json(
        _TOO_DEEP,
        replacing(
            acp_command(),
            b'[{"pointer":"/a","json":' + nested(65) + b"}]",
            "x_agentcanvas",
            "fragments",
        ),
    ),
    "broken UTF-8 in a string": _json(_UTF8, replacing(mac_request(), b'"\xff"', "from")),
    "broken UTF-8 in free JSON": _json(_UTF8, replacing(mac_request(), b'{"a":"\xc3("}', *_INPUT)),
    "broken UTF-8 in a key": _json(_UTF8, replacing(mac_request(), b'{"\xff":1}', *_INPUT)),
    "broken UTF-8 in a name": _json(_UTF8, _MAC[:-1] + b',"\xed\xa0\x80":1}'),
    "a character cut in two": _json(_UTF8, replacing(acp_command(), b'"\xe2\x82"', "from")),
    "half a surrogate pair": _json(_SURROGATE, replacing(mac_request(), rb'"\ud83d"', "from")),
    "the other half": _json(_SURROGATE, replacing(mac_request(), rb'"\ude00"', *_INPUT)),
    "half a pair in a key": _json(
        _SURROGATE, replacing(acp_command(), rb'{"\ud800":1}', "parameters")
    ),
    "half a pair before text": _json(_SURROGATE, replacing(mac_request(), rb'"\ud83d\n"', *_INPUT)),
    "two first halves": _json(_SURROGATE, replacing(mac_request(), rb'"\ud83d\ud83d"', *_INPUT)),
}

DIALECT: dict[str, Refused] = {
    "an array": _dialect(_NO_OBJECT, b"[]"),
    "a string": _dialect(_NO_OBJECT, b'"TASK_REQUEST"'),
    "a number": _dialect(_NO_OBJECT, b"5"),
    "null": _dialect(_NO_OBJECT, b"null"),
    "true": _dialect(_NO_OBJECT, b"true"),
    "a message in an array": _dialect(_NO_OBJECT, b"[" + _MAC + b"]"),
    "an empty object": _dialect("Unknown dialect: no field tells it", b"{}"),
    "an object of another kind": _dialect("Unknown dialect", b'{"jsonrpc":"2.0","method":"x"}'),
    "MAC and SPEC-022 mixed": _dialect(
        "Mixed dialect fields: type (MAC); from_agent (SPEC-022)",
        packed(mac_request(from_agent={"agent_id": "a", "agent_type": "developer"})),
    ),
    "MAC and ACP mixed": _dialect(
        "Mixed dialect fields: type (MAC); action, parameters (ACP)",
        packed({**acp_command(), "type": "TASK_REQUEST"}),
    ),
    "SPEC-022 and ACP mixed": _dialect(
        "message_type (SPEC-022); commandId, results (ACP)",
        packed({**acp_response(), "message_type": "feedback"}),
    ),
}

SHAPE: dict[str, Refused] = {
    # what is missing
    "a MAC message without its sender": _shape(
        Rule.REQUIRED, "/from", f"{_MISSING}from", without(mac_request(), "from")
    ),
    "a task without its id": _shape(
        Rule.REQUIRED,
        "/payload/task_id",
        f"{_MISSING}task_id",
        without(mac_request(), "payload", "task_id"),
    ),
    "an assignment without its context": _shape(
        Rule.REQUIRED,
        "/payload/task/context",
        f"{_MISSING}context",
        without(spec022_assignment(), "payload", "task", "context"),
    ),
    "an agent without a type": _shape(
        Rule.REQUIRED,
        "/from_agent/agent_type",
        f"{_MISSING}agent_type",
        without(spec022_assignment(), "from_agent", "agent_type"),
    ),
    "a command without a version": _shape(
        Rule.REQUIRED, "/version", f"{_MISSING}version", without(acp_command(), "version")
    ),
    "a response without results": _shape(
        Rule.REQUIRED, "/results", f"{_MISSING}results", without(acp_response(), "results")
    ),
    "a broadcast without an event": _shape(
        Rule.REQUIRED,
        "/payload/event",
        f"{_MISSING}event",
        without(example("mac_broadcast"), "payload", "event"),
    ),
    # what is of the wrong type
    "a number for a text": _shape(
        Rule.TYPE, "/from", f"{_TYPE}from: expected a string", mac_request(to="b", **{"from": 5})
    ),
    "a text for a number": _shape(
        Rule.TYPE,
        "/priority",
        f"{_TYPE}priority: expected a whole number",
        mac_request(priority="5"),
    ),
    "a fraction for a whole number": _shape(
        Rule.TYPE, "/priority", "got the number 5.5", mac_request(priority=5.5)
    ),
    "true for a number": _shape(Rule.TYPE, "/priority", "got true", mac_request(priority=True)),
    "a number for true or false": _shape(
        Rule.TYPE, "/encrypted", "expected true or false", mac_request(encrypted=0)
    ),
    "null for an optional field": _shape(
        Rule.TYPE, "/priority", "got null (leave the field out instead)", mac_request(priority=None)
    ),
    "null for metadata": _shape(
        Rule.TYPE, "/metadata", "leave the field out", mac_request(metadata=None)
    ),
    "null for a context": _shape(
        Rule.TYPE, "/context", "leave the field out", acp_command(context=None)
    ),
    "null for a reply": _shape(
        Rule.TYPE, "/reply_to", "leave the field out", spec022_assignment(reply_to=None)
    ),
    "null for an extension": _shape(
        Rule.TYPE, "/x_agentcanvas", "leave the field out", acp_command(x_agentcanvas=None)
    ),
    "an array for a payload": _shape(
        Rule.TYPE, "/payload", f"{_TYPE}payload: expected", mac_request(payload=[])
    ),
    "null for a payload": _shape(
        Rule.TYPE, "/payload", f"{_TYPE}payload: expected", mac_request(payload=None)
    ),
    "an array as input": _shape(
        Rule.TYPE,
        "/payload/input",
        "expected a string or an object, got an array",
        with_payload(mac_request(), input=["a"]),
    ),
    "a number as parameters": _shape(
        Rule.TYPE, "/parameters", "expected an object, got the number 5", acp_command(parameters=5)
    ),
    "an array as requirements": _shape(
        Rule.TYPE,
        "/payload/requirements",
        "expected an object",
        with_payload(mac_request(), requirements=[]),
    ),
    "a text in a list of objects": _shape(
        Rule.TYPE,
        "/results/artifacts/0",
        "expected an object, got a string",
        acp_response(results={"artifacts": ["a"]}),
    ),
    "an extension that is a list": _shape(
        Rule.TYPE, "/x_agentcanvas", "expected an object", acp_command(x_agentcanvas=[])
    ),
    "an extension whose body is a number": _shape(
        Rule.TYPE,
        "/metadata/x_agentcanvas/body",
        "expected an object, got the number 5",
        mac_request(metadata={"x_agentcanvas": {"body": 5}}),
    ),
    # words and numbers that are not among the allowed ones
    "an unknown MAC type": _shape(
        Rule.MEMBER,
        "/type",
        "Unknown message type: TASK_REQEST; use one of: TASK_REQUEST",
        mac_request(type="TASK_REQEST"),
    ),
    "a MAC type that is a number": _shape(
        Rule.MEMBER, "/type", "Unknown message type: 5", mac_request(type=5)
    ),
    "a MAC type that is null": _shape(
        Rule.REQUIRED, "/type", f"{_MISSING}type", mac_request(type=None)
    ),
    "an unknown SPEC-022 type": _shape(
        Rule.MEMBER,
        "/message_type",
        "Unknown message type: task",
        spec022_assignment(message_type="task"),
    ),
    "a SPEC-022 message without a type": _shape(
        Rule.REQUIRED,
        "/message_type",
        f"{_MISSING}message_type",
        without(spec022_assignment(), "message_type"),
    ),
    "an unknown action": _shape(
        Rule.MEMBER,
        "/action",
        f"{_UNKNOWN_VALUE}'DELETE'; use one of: ANALYZE",
        acp_command(action="DELETE"),
    ),
    "another version": _shape(
        Rule.MEMBER, "/version", "Unknown version", acp_command(version="1.0")
    ),
    "a version that is null": _shape(
        Rule.TYPE, "/version", f"{_TYPE}version: expected a string", acp_command(version=None)
    ),
    "a version that is a number": _shape(
        Rule.TYPE, "/version", f"{_TYPE}version: expected a string", acp_command(version=2.0)
    ),
    "an unknown priority": _shape(
        Rule.MEMBER,
        "/priority",
        f"{_UNKNOWN_VALUE}'urgent'; use one of: low",
        acp_command(priority="urgent"),
    ),
    "critical, which SPEC-022 lacks": _shape(
        Rule.MEMBER,
        "/payload/priority",
        f"{_UNKNOWN_VALUE}'critical'; use one of: high, medium, low",
        with_payload(spec022_assignment(), priority="critical"),
    ),
    "an unknown role": _shape(
        Rule.MEMBER,
        "/to_agent/agent_type",
        f"{_UNKNOWN_VALUE}'worker'; use one of: architect",
        spec022_assignment(to_agent={"agent_id": "a", "agent_type": "worker"}),
    ),
    "an unknown status": _shape(
        Rule.MEMBER,
        "/payload/status",
        f"{_UNKNOWN_VALUE}'success'; use one of: SUCCESS",
        with_payload(example("mac_task_complete"), status="success"),
    ),
    "an unknown reason": _shape(
        Rule.MEMBER,
        "/payload/reason",
        "use one of: CAPABILITY_MISMATCH",
        with_payload(example("mac_task_reject"), reason="TIRED"),
    ),
    "an unknown kind in an extension": _shape(
        Rule.MEMBER,
        "/x_agentcanvas/kind",
        f"{_UNKNOWN_VALUE}'task.steal'",
        acp_command(x_agentcanvas={"kind": "task.steal"}),
    ),
    "priority 0": _shape(Rule.RANGE, "/priority", f"0 {_RANGE}1 to 10", mac_request(priority=0)),
    "priority 11": _shape(Rule.RANGE, "/priority", f"11 {_RANGE}1 to 10", mac_request(priority=11)),
    "progress 101": _shape(
        Rule.RANGE,
        "/payload/progress",
        f"101 {_RANGE}0 to 100",
        with_payload(example("mac_status_response"), progress=101),
    ),
    "load 1.5": _shape(
        Rule.RANGE,
        "/payload/load",
        f"1.5 {_RANGE}0 to 1",
        with_payload(example("mac_heartbeat"), load=1.5),
    ),
    "a negative load": _shape(
        Rule.RANGE,
        "/payload/load",
        f"-0.1 {_RANGE}0 to 1",
        with_payload(example("mac_heartbeat"), load=-0.1),
    ),
    "a negative timeout": _shape(
        Rule.RANGE, "/payload/timeout", f"-1 {_RANGE}0 to", with_payload(mac_request(), timeout=-1)
    ),
    "a negative sequence number": _shape(
        Rule.RANGE, "/sequence_number", f"-1 {_RANGE}0 to", spec022_assignment(sequence_number=-1)
    ),
    "no attempt at all": _shape(
        Rule.RANGE,
        "/context/retryPolicy/maxAttempts",
        f"0 {_RANGE}1 to",
        acp_command(context={"retryPolicy": {"maxAttempts": 0, "backoffMs": 0}}),
    ),
    "an empty id in MAC": _shape(
        Rule.REQUIRED,
        "/message_id",
        "Missing required field: message_id is empty",
        mac_request(message_id=""),
    ),
    "an empty id in SPEC-022": _shape(
        Rule.REQUIRED,
        "/message_id",
        "Missing required field: message_id is empty",
        spec022_assignment(message_id=""),
    ),
    "an empty id in ACP": _shape(
        Rule.REQUIRED, "/id", "Missing required field: id is empty", acp_command(id="")
    ),
    "a number beyond a double": _shape(
        Rule.RANGE,
        "/payload/timeout",
        f"A number that large {_RANGE}0 to",
        replacing(mac_request(), b"1e400", "payload", "timeout"),
    ),
    "a number beyond a double for a whole one": _shape(
        Rule.RANGE,
        "/priority",
        f"A number that large {_RANGE}1 to 10",
        replacing(mac_request(), b"1e400", "priority"),
    ),
    "a number of 5,000 digits": _shape(
        Rule.RANGE,
        "/priority",
        f"A number that large {_RANGE}1 to 10",
        replacing(mac_request(), b"9" * 5000, "priority"),
    ),
    "a negative number of 5,000 digits": _shape(
        Rule.RANGE,
        "/context/timeout",
        f"A number that large {_RANGE}0 to",
        replacing(acp_command(), b"-" + b"9" * 5000, "context", "timeout"),
    ),
    "a number of 300 digits": _shape(
        Rule.RANGE,
        "/context/timeout",
        f"{'9' * 40} {_RANGE}0 to",
        replacing(acp_command(), b"9" * 300, "context", "timeout"),
    ),
    "more than milliseconds can count": _shape(
        Rule.RANGE,
        "/payload/timeout",
        f"{_RANGE}0 to 9007199254740",
        with_payload(mac_request(), timeout=1e308),
    ),
    # times
    "yesterday": _shape(
        Rule.TIME_FORM,
        "/timestamp",
        "Invalid timestamp: 'yesterday'; write RFC 3339",
        mac_request(timestamp="yesterday"),
    ),
    "a time without a zone": _shape(
        Rule.TIME_FORM,
        "/timestamp",
        "Invalid timestamp",
        spec022_assignment(timestamp="2026-01-28T10:00:00"),
    ),
    "the 30th of February": _shape(
        Rule.TIME_FORM,
        "/timestamp",
        "Invalid timestamp",
        acp_command(timestamp="2026-02-30T10:00:00Z"),
    ),
    "a time as a number": _shape(
        Rule.TYPE, "/timestamp", "expected a string", mac_request(timestamp=1769594400)
    ),
    # encryption
    "a string that is not said to be encrypted": _shape(
        Rule.SEALED, "/payload", "a string needs encrypted: true", mac_request(payload="aGVsbG8=")
    ),
    "an object that is said to be encrypted": _shape(
        Rule.SEALED,
        "/payload",
        "expected a base64 string because encrypted is true",
        mac_request(encrypted=True),
    ),
    "an encrypted broadcast that is an object": _shape(
        Rule.SEALED,
        "/payload",
        "expected a base64 string",
        {**example("mac_broadcast"), "encrypted": True},
    ),
    # a repeated key that decides what the message is
    "two types": _shape(
        Rule.REPEATED_KEY,
        "/type",
        "Repeated key: type; readers differ on which one counts",
        _MAC.replace(b'"type"', b'"type": "HEARTBEAT", "type"'),
    ),
}

ALL = {**TEXT, **DIALECT, **SHAPE}
