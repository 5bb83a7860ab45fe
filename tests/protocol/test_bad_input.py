"""What is no message gets one clear sentence that names the field; never a traceback or silence."""

from __future__ import annotations

import json
import re

import pytest
from msgspec import Raw

from agentcanvas.errors import AgentCanvasError, ErrorType, ProtocolError
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import DIALECTS, MAC, decode, translate
from agentcanvas.protocol.kinds import Outcome, TaskAssign, TaskResult
from agentcanvas.protocol.packet import packet_of
from agentcanvas.protocol.rules import examine
from agentcanvas.protocol.scan import MAX_BYTES
from agentcanvas.protocol.shape import Rule
from agentcanvas.protocol.turns import report_in
from agentcanvas.protocol.values import as_text, thaw
from tests.protocol.bad_inputs import ALL, Refused, nested, replacing, sized
from tests.protocol.samples import (
    acp_command,
    example,
    example_messages,
    mac_request,
    packed,
    spec022_assignment,
    with_payload,
)

pytestmark = pytest.mark.req("M2", "M3", "L1")

LEAKS = re.compile(r"Traceback|sys\.|set_int|codec can't|0x[0-9a-f]{6}|object at|msgspec|None\b")
"""What a sentence for people must not hold."""

CASES = [pytest.param(case, id=name) for name, case in ALL.items()]


@pytest.mark.parametrize("case", CASES)
def test_the_door_refuses_it_with_one_sentence_that_names_the_field(case: Refused) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(case.data)
    error = caught.value
    assert case.says in str(error)
    assert error.pointer == case.pointer
    assert type(error) is case.error
    assert error.error_type is ErrorType.PROTOCOL
    assert not LEAKS.search(str(error))
    assert "\n" not in str(error)
    assert error.breaches


@pytest.mark.parametrize("case", CASES)
def test_the_rules_report_it_with_the_same_sentence(case: Refused) -> None:
    for strict in (False, True):
        report = examine(case.data, strict=strict)
        assert not report.valid
        assert report.envelope is None
        found = [(breach.rule, breach.pointer) for breach in report.breaches]
        assert (case.rule, case.pointer) in found
        assert any(case.says in breach.sentence for breach in report.breaches)
        assert not any(LEAKS.search(breach.sentence) for breach in report.breaches)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("to", list(DialectName))
def test_it_is_not_translated(case: Refused, to: DialectName) -> None:
    with pytest.raises(ProtocolError):
        translate(case.data, to)


# A reader that is told the dialect takes foreign fields for unknown ones, and counts the levels of
# free-form JSON by themselves; the door is stricter in both.
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name)
        for name, case in ALL.items()
        if "Nested" not in case.says and "mixed" not in name
    ],
)
def test_a_reader_of_one_dialect_refuses_it_too(case: Refused) -> None:
    for dialect in DIALECTS.values():
        with pytest.raises(ProtocolError):
            dialect.decode(case.data)


@pytest.mark.parametrize("case", CASES)
def test_the_router_refuses_it_or_reads_only_its_header(case: Refused) -> None:
    try:
        header = MAC.route(case.data)
    except AgentCanvasError:
        return
    assert header.type in {"TASK_REQUEST", *(json.loads(case.data)["type"],)}


# --- the limits themselves pass ---


def test_a_message_of_exactly_the_largest_size_passes() -> None:
    data = sized(MAX_BYTES)
    assert len(data) == MAX_BYTES
    assert decode(data).breaches == ()
    assert examine(data, strict=True).valid


DEEPEST = {
    "input": replacing(mac_request(), b'{"a":' + nested(61) + b"}", "payload", "input"),
    "output": replacing(example("mac_task_complete"), nested(62), "payload", "output"),
    "details": replacing(example("mac_task_failed"), nested(62), "payload", "error_details"),
    "parameters": replacing(acp_command(), nested(62), "parameters", "a"),
    "data": replacing(example("acp_response"), nested(62), "results", "data"),
    "unknown": replacing(spec022_assignment(), nested(63), "more"),
    "metadata": replacing(mac_request(), nested(62), "metadata", "more"),
    "broadcast": replacing(example("mac_broadcast"), nested(62), "payload", "countdown"),
}


@pytest.mark.parametrize("data", DEEPEST.values(), ids=DEEPEST)
@pytest.mark.parametrize("to", list(DialectName))
def test_64_levels_pass_and_survive_a_translation(data: bytes, to: DialectName) -> None:
    assert examine(data).valid
    there = translate(data, to)
    home = examine(data).dialect
    assert home is not None
    assert examine(there).valid
    assert json.loads(translate(there, home)) == json.loads(data)


@pytest.mark.parametrize("levels", [65, 66, 80, 127, 128, 129, 1000, 100_000])
def test_more_than_64_levels_are_refused_however_they_are_mixed(levels: int) -> None:
    objects = b'{"a":' * levels + b"1" + b"}" * levels
    arrays = b"[" * levels + b"]" * levels
    for deep in (objects, arrays, nested(levels)):
        data = b'{"type":' + deep + b"}"
        with pytest.raises(ProtocolError, match="Nested deeper than 64 levels"):
            decode(data)
        assert [breach.rule for breach in examine(data).breaches] == [Rule.JSON]


def test_brackets_in_text_are_no_levels() -> None:
    data = packed(with_payload(mac_request(), input='[{"\\"' * 500))
    assert examine(data, strict=True).valid


def test_many_brackets_side_by_side_are_no_levels() -> None:
    data = packed(with_payload(mac_request(), input={"a": [[], {}] * 5000}))
    assert examine(data, strict=True).valid


# --- what is odd but allowed ---


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 5000, b"0." + b"1" * 5000])
@pytest.mark.parametrize("to", list(DialectName))
def test_free_json_keeps_numbers_nobody_can_hold_as_they_were_written(
    number: bytes, to: DialectName
) -> None:
    data = replacing(mac_request(), b'{"n": ' + number + b"}", "payload", "input")
    assert examine(data).valid
    there = translate(data, to)
    assert examine(there).breaches == ()
    assert b'{"n": ' + number + b"}" in translate(there, DialectName.MAC)


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 5000, b"9" * 400 + b".5"])
def test_whoever_reads_free_json_here_can_read_numbers_that_nobody_can_hold(number: bytes) -> None:
    raw = Raw(b'{"n": ' + number + b', "\\u0041": 1}')
    assert "A" in thaw(raw)  # type: ignore[operator]  # it is an object
    assert as_text(raw) == bytes(raw).decode()
    assert as_text(Raw(b'"\\u0041"')) == "A"
    assert number.decode()[:9] in packet_of(TaskAssign(input=raw)).task
    assert report_in(TaskResult("t", Outcome.SUCCESS, output=raw)).text == bytes(raw).decode()


def test_a_repeated_key_is_noted_wherever_it_is() -> None:
    data = replacing(mac_request(), b'{"a": {"b": 1, "b": 2}}', "payload", "input")
    data = data[:-1] + b', "priority": 6, "metadata": {"x": [{"k": 1, "k": 2}]}}'
    report = examine(data)
    assert report.valid
    assert {(breach.rule, breach.pointer) for breach in report.breaches} == {
        (Rule.REPEATED_KEY, "/priority"),
        (Rule.REPEATED_KEY, "/payload/input/a/b"),
    }
    assert not examine(data, strict=True).valid


@pytest.mark.parametrize("name", ["mac_task_request_min", "s22_acknowledgment", "acp_command"])
def test_a_message_cut_short_anywhere_is_refused(name: str) -> None:
    data = example_messages()[name].rstrip()
    for end in range(len(data)):
        with pytest.raises(ProtocolError) as caught:
            decode(data[:end])
        assert str(caught.value)
        report = examine(data[:end])
        assert not report.valid
        assert [breach.rule for breach in report.breaches] == [Rule.JSON]


def test_the_error_names_the_message_it_is_about() -> None:
    broken = mac_request()
    del broken["payload"]["task_id"]
    with pytest.raises(ProtocolError) as caught:
        decode(packed(broken))
    assert caught.value.message_id == broken["message_id"]


def test_the_error_holds_every_breach_not_only_the_first() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(packed(mac_request(priority=99, timestamp="now", extra=1)))
    assert [breach.rsplit("[", 1)[1] for breach in caught.value.breaches] == [
        "range]",
        "unknown-field]",
        "time-form]",
    ]


def test_a_very_long_name_does_not_make_a_very_long_sentence() -> None:
    report = examine(packed(mac_request(**{"n" * 10_000: 1})))
    assert report.valid
    (breach,) = report.breaches
    assert len(breach.sentence) < 200
    assert breach.pointer == "/" + "n" * 10_000


# --- input made to be slow ---


@pytest.mark.parametrize("place", ["top", "metadata"])
def test_thousands_of_unknown_fields_are_kept_in_linear_time(place: str) -> None:
    # Before unknown fields were taken out in one pass, this took minutes.
    many = {f"{number:x}": 0 for number in range(20_000)}
    message = mac_request(**many) if place == "top" else mac_request(metadata=many)
    data = json.dumps(message, separators=(",", ":")).encode()
    assert len(data) <= MAX_BYTES
    reading = decode(data)
    assert len(reading.envelope.fragments) >= len(many)
    assert json.loads(MAC.encode(reading.envelope)) == message


def test_a_forged_list_of_inventions_is_refused_at_once() -> None:
    filled = [f"/{number}" for number in range(100_000)]
    reading = decode(packed(acp_command(x_agentcanvas={"kind": "heartbeat", "filled": filled})))
    assert [breach.pointer for breach in reading.breaches] == [
        "/x_agentcanvas/kind",
        "/x_agentcanvas/filled",
    ]
