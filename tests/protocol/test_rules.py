"""Strict and lenient: exactly the breaches an example has, and what a session adds (M2, M3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentcanvas.protocol.dialects import decode
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.rules import examine
from agentcanvas.protocol.session import SessionState

EXAMPLES = Path(__file__).parent / "examples"
ID = ("id-form", "/message_id")
NOT_BROKEN = ("/payload/task/constraints/must_not_break",)
EXPECTED: dict[str, list[list[tuple[str, str]]]] = {
    "mac_task_request_encrypted.json": [[ID, ("ciphertext", "/payload")]],
    "mac_task_request_min.json": [[]],
    "s22_task_assignment.json": [[("wanted", *NOT_BROKEN), ID]],
    "s22_review_result.json": [
        [
            ("wanted", "/payload/findings/0/rationale"),
            ("wanted", "/payload/verification/custom"),
            ID,
        ]
    ],
    "s22_chain.jsonl": [[("wanted", *NOT_BROKEN), ID], [ID], [ID], [ID]],
    "invalid_mac_base.json": [[("member", "/type"), ID]],
    "invalid_mac_trace.json": [
        [
            ("required", "/from"),
            ("required", "/to"),
            ("required", "/timestamp"),
            ("required", "/payload"),
            ID,
        ]
    ],
}


def message_files() -> list[Path]:
    wanted = ("mac_", "s22_", "acp_", "invalid_")
    return [
        path
        for path in sorted(EXAMPLES.glob("*.json*"))
        if path.name.startswith(wanted) and path.name != "acp_audit.jsonl"
    ]


def messages(path: Path) -> list[str]:
    text = path.read_text()
    return text.splitlines() if path.suffix == ".jsonl" else [text]


@pytest.mark.req("M3")
@pytest.mark.parametrize("path", message_files(), ids=lambda path: path.name)
def test_strict_mode_reports_exactly_the_breaches_of_an_example(path: Path) -> None:
    lines = messages(path)
    # The other MAC examples have an id that is no UUID, and the rest nothing at all.
    usual = [ID] if path.name.startswith("mac_") else []
    for line, expected in zip(lines, EXPECTED.get(path.name, [usual] * len(lines)), strict=True):
        report = examine(line.encode(), strict=True)
        assert [(breach.rule, breach.pointer) for breach in report.breaches] == expected
        assert report.valid is (not expected)


@pytest.mark.req("M3")
@pytest.mark.parametrize("path", message_files(), ids=lambda path: path.name)
def test_lenient_mode_takes_every_example_but_the_invalid_ones(path: Path) -> None:
    for line in messages(path):
        report = examine(line.encode())
        assert report.valid is not path.name.startswith("invalid_")
        assert (report.envelope is not None) is report.valid


@pytest.mark.req("M3")
def test_every_breach_has_a_pointer_a_rule_and_a_sentence() -> None:
    report = examine(b'{"type": "TASK_REQUEST", "from": 7, "payload": {"input": [], "hm": 1}}')
    for breach in report.breaches:
        assert breach.pointer.startswith("/")
        assert breach.sentence[0].isupper()
    found = {(breach.rule, breach.pointer) for breach in report.breaches}
    assert ("type", "/from") in found
    assert ("type", "/payload/input") in found
    assert ("unknown-field", "/payload/hm") in found
    assert ("required", "/payload/task_id") in found


def chain() -> list[str]:
    return messages(EXAMPLES / "s22_chain.jsonl")


@pytest.mark.req("C6")
def test_an_acknowledgment_of_an_assignment_accepts_the_task() -> None:
    session = SessionState()
    assignment, acknowledgment = (decode(line.encode()).envelope for line in chain()[:2])
    assert session.understand(acknowledgment).kind is Kind.ACK
    session.admit(assignment)
    accepted = session.understand(acknowledgment)
    assert (accepted.kind, accepted.task_id) == (Kind.TASK_ACCEPT, "task-001")


@pytest.mark.req("M2")
def test_a_whole_conversation_fits_and_a_completion_without_its_task_does_not() -> None:
    session = SessionState(["architect-main", "developer-01"])
    for line in chain():
        report = examine(line.encode(), session=session)
        assert report.envelope is not None
        assert not [breach for breach in report.breaches if breach.fatal]
        session.admit(report.envelope)
    late = examine(chain()[3].replace("msg-004", "msg-005").encode(), session=session)
    assert [breach.rule for breach in late.breaches if breach.fatal] == ["task-active"]


@pytest.mark.req("M2", "H11")
def test_strangers_are_named() -> None:
    report = examine(chain()[0].encode(), session=SessionState(["architect-main"]))
    assert [b.sentence for b in report.breaches if b.fatal] == ["Agent not found: developer-01"]


@pytest.mark.req("M2")
def test_a_task_id_is_used_once_and_a_review_result_needs_its_request() -> None:
    session = SessionState()
    session.admit(decode(chain()[0].encode()).envelope)
    again = examine(chain()[0].replace("msg-001", "msg-009").encode(), session=session)
    assert "task-new" in {breach.rule for breach in again.breaches}
    result = (EXAMPLES / "s22_review_result.json").read_bytes()
    assert "review-active" in {b.rule for b in examine(result, session=session).breaches}
    request = (EXAMPLES / "s22_review_request.json").read_bytes()
    session.admit(decode(request).envelope)
    assert "review-active" not in {b.rule for b in examine(result, session=session).breaches}


@pytest.mark.req("M5", "C11")
def test_a_repeat_is_no_breach_but_the_same_id_with_other_content_is() -> None:
    session = SessionState()
    first = decode(chain()[0].encode()).envelope
    session.admit(first)
    assert session.is_repeat(first)
    assert session.check(first) == []
    other = json.loads(chain()[0])
    other["payload"]["task"]["task_description"] = "something else"
    changed = examine(json.dumps(other).encode(), session=session)
    assert "id-new" in {breach.rule for breach in changed.breaches}


@pytest.mark.req("W2")
def test_another_direction_is_noted_not_refused() -> None:
    message = json.loads(chain()[0])
    message["from_agent"]["agent_type"] = "reviewer"
    report = examine(json.dumps(message).encode())
    assert report.valid
    assert "direction" in {breach.rule for breach in report.breaches}
