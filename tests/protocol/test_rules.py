"""Strict mode holds the letter, lenient mode notes each breach; all of them, with where and how."""

from __future__ import annotations

from typing import Any

import pytest

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import decode
from agentcanvas.protocol.rules import examine
from agentcanvas.protocol.shape import Rule
from tests.protocol.samples import (
    EXAMPLES,
    Json,
    acp_command,
    acp_response,
    example,
    example_messages,
    mac_request,
    packed,
    spec022_assignment,
    with_payload,
)

pytestmark = pytest.mark.req("M2", "M3")

ID = (Rule.ID_FORM, "/message_id")
MUST_NOT_BREAK = (Rule.WANTED, "/payload/task/constraints/must_not_break")

STRICT: dict[str, list[tuple[Rule, str]]] = {
    "acp_command": [],
    "acp_command_full": [],
    "acp_fire_and_forget": [],
    "acp_pipeline:1": [],
    "acp_pipeline:2": [],
    "acp_pipeline:3": [],
    "acp_response": [],
    "acp_response_failed": [],
    "acp_scatter:1": [],
    "acp_scatter:2": [],
    "acp_scatter:3": [],
    "mac_broadcast": [ID],
    "mac_error": [ID],
    "mac_heartbeat": [ID],
    "mac_status_query": [ID],
    "mac_status_response": [ID],
    "mac_task_accept": [ID],
    "mac_task_complete": [ID],
    "mac_task_failed": [ID],
    "mac_task_reject": [ID],
    "mac_task_request": [ID],
    "mac_task_request_encrypted": [ID, (Rule.CIPHERTEXT, "/payload")],
    "mac_task_request_min": [],
    "mac_task_request_signed": [ID],
    "mac_task_request_traced": [ID],
    "s22_abort": [],
    "s22_acknowledgment": [],
    "s22_chain:1": [MUST_NOT_BREAK, ID],
    "s22_chain:2": [ID],
    "s22_chain:3": [ID],
    "s22_chain:4": [ID],
    "s22_feedback": [],
    "s22_review_request": [],
    "s22_review_result": [
        (Rule.WANTED, "/payload/findings/0/rationale"),
        (Rule.WANTED, "/payload/verification/custom"),
        ID,
    ],
    "s22_status_query": [],
    "s22_status_response": [],
    "s22_task_assignment": [MUST_NOT_BREAK, ID],
    "s22_task_completion": [],
    "s22_task_progress": [],
}


def breaches(message: Json | bytes, *, strict: bool = False) -> list[tuple[Rule, str]]:
    data = message if isinstance(message, bytes) else packed(message)
    return [(breach.rule, breach.pointer) for breach in examine(data, strict=strict).breaches]


def test_every_example_is_in_the_table() -> None:
    assert set(STRICT) == set(example_messages())


@pytest.mark.parametrize("name", STRICT)
def test_strict_mode_reports_exactly_the_breaches_an_example_has(name: str) -> None:
    data = example_messages()[name]
    report = examine(data, strict=True)
    assert breaches(data, strict=True) == STRICT[name]
    assert report.valid is (not STRICT[name])
    assert report.envelope is not None


@pytest.mark.parametrize("name", STRICT)
def test_lenient_mode_takes_every_example_and_notes_the_same(name: str) -> None:
    data = example_messages()[name]
    assert examine(data).valid
    assert breaches(data) == STRICT[name]


@pytest.mark.parametrize("strict", [False, True])
def test_the_skeleton_of_a_message_is_refused_for_its_type(strict: bool) -> None:
    data = (EXAMPLES / "invalid_mac_base.json").read_bytes()
    report = examine(data, strict=strict)
    assert not report.valid
    assert breaches(data) == [(Rule.MEMBER, "/type"), ID]
    assert report.breaches[0].sentence.startswith("Unknown message type: message_type; use one of")
    with pytest.raises(ProtocolError, match="Unknown message type: message_type") as caught:
        decode(data)
    assert caught.value.pointer == "/type"
    assert caught.value.message_id == "uuid"


@pytest.mark.parametrize("strict", [False, True])
def test_a_trace_without_a_message_is_refused_for_what_is_missing(strict: bool) -> None:
    data = (EXAMPLES / "invalid_mac_trace.json").read_bytes()
    report = examine(data, strict=strict)
    assert not report.valid
    missing = ["from", "to", "timestamp", "payload"]
    assert breaches(data) == [*((Rule.REQUIRED, f"/{name}") for name in missing), ID]
    assert [breach.sentence for breach in report.breaches[:4]] == [
        f"Missing required field: {name}" for name in missing
    ]
    with pytest.raises(ProtocolError, match=r"^Missing required field: from$") as caught:
        decode(data)
    assert caught.value.message_id == "req-001"
    assert len(caught.value.breaches) == 4


# --- forms of text ---

UUID_1 = "7ffb1b10-6c1d-11ee-8c99-0242ac120002"
UUID_4 = "6513270e-269e-4d37-b2a7-4de452e6b438"


@pytest.mark.parametrize(
    ("message", "id_", "holds"),
    [
        (mac_request(), UUID_4, True),
        (mac_request(), UUID_4.upper(), True),
        (mac_request(), UUID_1, True),
        (mac_request(), "msg-001-abc123", False),
        (mac_request(), "", False),
        (spec022_assignment(), UUID_4, True),
        (spec022_assignment(), UUID_1, False),
        (spec022_assignment(), "msg-001-abc123", False),
    ],
)
def test_mac_ids_are_uuids_and_spec_022_ids_version_4(
    message: Json,
    id_: str,
    holds: bool,
) -> None:
    assert breaches({**message, "message_id": id_}) == ([] if holds else [ID])
    assert examine(packed({**message, "message_id": id_})).valid


def test_acp_ids_are_any_text_but_none() -> None:
    assert breaches(acp_command(id="anything goes")) == []
    assert breaches(acp_command(id="")) == [(Rule.ID_FORM, "/id")]
    assert breaches(acp_response(id="")) == [(Rule.ID_FORM, "/id")]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (example("mac_task_accept"), "accepted_at"),
        (example("mac_task_complete"), "completed_at"),
        (spec022_assignment(), "deadline"),
    ],
)
def test_a_time_in_a_payload_is_noted_not_refused(message: Json, field: str) -> None:
    for wrong in ("soon", "2026-01-28", "2026-02-30T00:00:00Z", ""):
        found = breaches(with_payload(message, **{field: wrong}))
        assert (Rule.PAYLOAD_TIME, f"/payload/{field}") in found
        assert examine(packed(with_payload(message, **{field: wrong}))).valid
    right = breaches(with_payload(message, **{field: "2026-01-28T10:00:00+01:00"}))
    assert all(rule is not Rule.PAYLOAD_TIME for rule, _ in right)


@pytest.mark.parametrize("payload", ["not base64!", "aGVsbG8", "é", "aGVs bG8=", "===="])
def test_a_ciphertext_that_is_no_base64_is_noted(payload: str) -> None:
    assert breaches(mac_request(payload=payload, encrypted=True)) == [(Rule.CIPHERTEXT, "/payload")]
    assert breaches(mac_request(payload="aGVsbG8=", encrypted=True)) == []


# --- what a message should not say at once ---


def result(**fields: Any) -> Json:
    message: Json = example("s22_review_result")
    message["message_id"] = UUID_4
    message["payload"]["findings"] = []
    message["payload"]["verification"]["custom"] = {}
    return with_payload(message, **fields)


CHANGE = {"change_id": "c", "priority": "must_fix", "related_findings": [], "description": "d"}


@pytest.mark.req("W2")
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"verdict": "approved", "required_changes": [CHANGE]}, "required_changes"),
        ({"verdict": "approved", "required_changes": []}, None),
        ({"verdict": "changes_requested"}, None),
        ({"verdict": "rejected"}, None),
        ({"verdict": "changes_requested", "commendations": ["nice"]}, "commendations"),
        ({"verdict": "rejected", "commendations": ["nice"]}, "commendations"),
        ({"verdict": "rejected", "commendations": []}, None),
    ],
)
def test_required_changes_and_commendations_go_with_their_verdicts(
    fields: Json, wrong: str | None
) -> None:
    expected = [] if wrong is None else [(Rule.VERDICT_PARTS, f"/payload/{wrong}")]
    assert breaches(result(**fields)) == expected
    assert examine(packed(result(**fields))).valid


DIRECTIONS = {
    "s22_task_assignment": ("architect", "developer"),
    "s22_task_progress": ("developer", "architect"),
    "s22_task_completion": ("developer", "architect"),
    "s22_review_request": ("architect", "reviewer"),
    "s22_review_result": ("reviewer", "architect"),
}
ROLES = ("architect", "developer", "reviewer")


@pytest.mark.req("W2")
@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("sender", ROLES)
@pytest.mark.parametrize("recipient", ROLES)
def test_another_direction_is_noted_not_refused(name: str, sender: str, recipient: str) -> None:
    message = example(name)
    message["from_agent"]["agent_type"] = sender
    message["to_agent"]["agent_type"] = recipient
    noted = (Rule.DIRECTION, "/from_agent/agent_type") in breaches(message)
    assert noted is ((sender, recipient) != DIRECTIONS[name])
    assert examine(packed(message)).valid


@pytest.mark.parametrize("name", ["s22_feedback", "s22_abort", "s22_status_query"])
def test_other_messages_go_in_any_direction(name: str) -> None:
    message = example(name)
    message["from_agent"]["agent_type"] = message["to_agent"]["agent_type"] = "reviewer"
    assert breaches(message) == []


# --- everything at once ---


def test_all_breaches_are_collected_with_pointer_rule_and_sentence() -> None:
    message = example("s22_review_result")
    message["payload"]["verdict"] = "perhaps"
    message["payload"]["findings"][0]["severity"] = "huge"
    message["payload"]["findings"][0]["location"]["line_start"] = -1
    message["payload"]["verification"]["tests"] = {"passed": "yes", "outptu": "3 passed"}
    message["sequence_number"] = "10"
    message["timestamp"] = "today"
    del message["to_agent"]
    message["tags/1"] = []
    found = breaches(message)
    assert found == [
        (Rule.TYPE, "/sequence_number"),
        (Rule.REQUIRED, "/to_agent"),
        (Rule.MEMBER, "/payload/verdict"),
        (Rule.MEMBER, "/payload/findings/0/severity"),
        (Rule.RANGE, "/payload/findings/0/location/line_start"),
        (Rule.WANTED, "/payload/findings/0/rationale"),
        (Rule.TYPE, "/payload/verification/tests/passed"),
        (Rule.UNKNOWN_FIELD, "/payload/verification/tests/outptu"),
        (Rule.WANTED, "/payload/verification/custom"),
        (Rule.UNKNOWN_FIELD, "/tags~11"),
        (Rule.TIME_FORM, "/timestamp"),
        ID,
    ]
    report = examine(packed(message))
    assert all(breach.sentence for breach in report.breaches)
    assert "did you mean output?" in report.breaches[7].sentence
    assert str(report.breaches[2]).startswith("/payload/verdict: Unknown value 'perhaps'")
    assert str(report.breaches[2]).endswith("[member]")


def test_a_custom_check_is_looked_at_like_any_other_field() -> None:
    message = result()
    message["payload"]["verification"]["custom"] = {"size": {"passed": 1}, "a/b": {}}
    assert breaches(message) == [
        (Rule.TYPE, "/payload/verification/custom/size/passed"),
        (Rule.REQUIRED, "/payload/verification/custom/a~1b/passed"),
    ]


def test_metadata_is_the_place_for_extensions_so_any_field_is_welcome() -> None:
    assert breaches(mac_request(metadata={"team": {"x": 1}}), strict=True) == []
    assert breaches(mac_request(metadata={"trace_level": "high"})) == [
        (Rule.TYPE, "/metadata/trace_level")
    ]


def test_a_broadcast_says_whatever_its_event_needs() -> None:
    message = {**example("mac_broadcast"), "message_id": UUID_4}
    assert breaches(with_payload(message, any={"thing": [1]}), strict=True) == []
    del message["payload"]["message"]
    assert breaches(message) == [(Rule.WANTED, "/payload/message")]


def test_a_report_tells_the_dialect_even_when_the_message_is_refused() -> None:
    report = examine(packed(mac_request(priority=99)))
    assert report.dialect is DialectName.MAC
    assert report.envelope is None
    assert not report.valid
    assert examine(b"[]").dialect is None
