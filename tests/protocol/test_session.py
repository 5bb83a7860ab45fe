"""What was said before decides whether a message makes sense (M2, M5, C6, C11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import DIALECTS, decode, encode
from agentcanvas.protocol.envelope import AgentRef, Envelope, from_json, to_json
from agentcanvas.protocol.kinds import Kind, Sealed, TaskAccept
from agentcanvas.protocol.rules import examine
from agentcanvas.protocol.session import SessionState
from agentcanvas.protocol.shape import Rule
from tests.protocol.samples import (
    acp_command,
    acp_response,
    changed,
    example,
    example_messages,
    mac_request,
    packed,
    with_payload,
)

pytestmark = pytest.mark.req("M2")


def heard(message: Any) -> Envelope:
    return decode(message if isinstance(message, bytes) else packed(message)).envelope


def admitted(*messages: Any, agents: list[str] | None = None) -> SessionState:
    session = SessionState(agents)
    for message in messages:
        session.admit(session.understand(heard(message)))
    return session


def rules(session: SessionState, message: Any) -> list[Rule]:
    return [breach.rule for breach in session.check(session.understand(heard(message)))]


ASSIGNMENT = example("s22_task_assignment")
COMPLETION = example("s22_task_completion")


# --- tasks ---


def test_a_task_is_assigned_once() -> None:
    session = admitted(ASSIGNMENT)
    (breach,) = session.check(heard(changed(ASSIGNMENT, message_id="another")))
    assert breach.rule is Rule.TASK_NEW
    assert breach.fatal
    assert breach.sentence == (
        "The task task-001 was assigned before; a new attempt needs a new task_id"
    )


def test_a_task_that_ended_is_not_assigned_again() -> None:
    session = admitted(ASSIGNMENT, COMPLETION)
    assert rules(session, changed(ASSIGNMENT, message_id="another")) == [Rule.TASK_NEW]


@pytest.mark.req("C3")
def test_a_revision_is_a_task_of_its_own() -> None:
    revision = changed(ASSIGNMENT, message_id="another")
    revision["payload"] = {
        **revision["payload"],
        "task": {**revision["payload"]["task"], "task_id": "task-001.r1"},
    }
    assert rules(admitted(ASSIGNMENT, COMPLETION), revision) == []


@pytest.mark.parametrize("status", ["completed", "partial", "failed"])
def test_only_an_assigned_task_can_end(status: str) -> None:
    ended = with_payload(COMPLETION, status=status)
    (breach,) = SessionState().check(heard(ended))
    assert breach.rule is Rule.TASK_ACTIVE
    assert breach.sentence == (
        "No active assignment of the task task-001; only an assigned task can end"
    )
    assert rules(admitted(ASSIGNMENT), ended) == []


def test_a_task_ends_once() -> None:
    session = admitted(ASSIGNMENT, COMPLETION)
    assert rules(session, changed(COMPLETION, message_id="again")) == [Rule.TASK_ACTIVE]


def test_a_rejected_task_cannot_be_completed() -> None:
    reject = example("mac_task_reject")
    assert rules(admitted(ASSIGNMENT, reject), COMPLETION) == [Rule.TASK_ACTIVE]


def test_a_failure_in_one_dialect_ends_a_task_assigned_in_another() -> None:
    session = admitted(ASSIGNMENT)
    assert rules(session, example("mac_task_failed")) == []
    session.admit(heard(example("mac_task_failed")))
    assert rules(session, COMPLETION) == [Rule.TASK_ACTIVE]


def test_in_acp_the_command_stands_for_the_task() -> None:
    command, response = acp_command(id="cmd-1"), acp_response(commandId="cmd-1")
    assert rules(SessionState(), response) == [Rule.TASK_ACTIVE]
    session = admitted(command)
    assert rules(session, response) == []
    session.admit(heard(response))
    assert rules(session, changed(response, id="again")) == [Rule.TASK_ACTIVE]


def test_an_acp_answer_ends_the_task_its_command_was_assigned_as() -> None:
    request = mac_request()
    session = admitted(request)
    response = acp_response(commandId=request["message_id"])
    assert rules(session, response) == []
    session.admit(heard(response))
    complete = with_payload(example("mac_task_complete"), task_id="task-001")
    assert rules(session, complete) == [Rule.TASK_ACTIVE]


# --- reviews ---


def test_only_a_requested_review_has_a_result() -> None:
    result = example("s22_review_result")
    (breach,) = SessionState().check(heard(result))
    assert breach.rule is Rule.REVIEW_ACTIVE
    assert breach.sentence == (
        "No active request for the review review-001; only a requested review has a result"
    )
    assert rules(admitted(example("s22_review_request")), result) == []


def test_a_review_has_one_result() -> None:
    result = example("s22_review_result")
    session = admitted(example("s22_review_request"), result)
    assert rules(session, changed(result, message_id="again")) == [Rule.REVIEW_ACTIVE]


# --- what is encrypted cannot be judged ---


@pytest.mark.req("C8")
@pytest.mark.parametrize("kind", [Kind.REVIEW_RESULT, Kind.TASK_COMPLETE, Kind.TASK_FAIL])
def test_an_encrypted_end_is_not_held_against_what_nobody_can_read(kind: Kind) -> None:
    sealed = Envelope(
        id="s-1",
        kind=kind,
        time="2026-01-28T10:00:00Z",
        sender=AgentRef("worker"),
        reply_to="a question, not the task",
        body=Sealed("aGVsbG8="),
        encrypted=True,
    )
    assert SessionState().check(sealed) == []


# --- agents ---


def test_sender_and_receiver_have_to_be_known() -> None:
    session = SessionState(["coordinator"])
    request = heard(mac_request())
    (breach,) = session.check(request)
    assert (breach.rule, breach.sentence) == (Rule.KNOWN_AGENT, "Agent not found: worker-1")
    session.join("worker-1")
    assert session.check(request) == []
    stranger = heard(changed(mac_request(), **{"from": "nobody", "to": "no one"}))
    assert [breach.sentence for breach in session.check(stranger)] == [
        "Agent not found: nobody",
        "Agent not found: no one",
    ]


def test_a_broadcast_and_an_acp_response_need_no_known_receiver() -> None:
    session = admitted(acp_command(id="cmd-1"), agents=["coordinator-agent", "code-agent"])
    assert rules(session, example("mac_broadcast")) == []
    assert rules(session, acp_response(commandId="cmd-1")) == []


# --- ids ---


@pytest.mark.req("M5", "C11", "PR6")
def test_a_repeated_message_is_known_and_breaks_no_rule() -> None:
    session = admitted(ASSIGNMENT)
    assert session.is_repeat(heard(ASSIGNMENT))
    assert session.check(heard(ASSIGNMENT)) == []
    assert not SessionState().is_repeat(heard(ASSIGNMENT))


@pytest.mark.req("M5", "C11")
def test_an_id_used_for_other_content_is_refused() -> None:
    session = admitted(ASSIGNMENT)
    other = changed(ASSIGNMENT, sequence_number=99)
    assert not session.is_repeat(heard(other))
    breach = session.check(heard(other))[0]
    assert breach.rule is Rule.ID_NEW
    assert breach.fatal
    assert breach.sentence.startswith("architect-main used the id msg-001-abc123 before")


@pytest.mark.req("C11")
def test_two_senders_may_use_the_same_id() -> None:
    session = admitted(mac_request())
    other = changed(with_payload(mac_request(), task_id="task-2"), **{"from": "someone"})
    assert rules(session, other) == []


@pytest.mark.req("M5")
@pytest.mark.parametrize("name", ["mac_task_request_traced", "acp_command", "mac_broadcast"])
def test_a_resend_is_known_however_it_is_spaced_and_after_a_restart(name: str) -> None:
    data = example_messages()[name]
    session = SessionState()
    session.admit(from_json(to_json(heard(data))))
    assert session.is_repeat(heard(data))
    assert session.is_repeat(heard(packed(example(name))))


def test_a_resend_with_true_for_one_is_another_message() -> None:
    request = with_payload(mac_request(), input={"approve": True})
    session = admitted(request)
    other = heard(with_payload(request, input={"approve": 1}))
    assert not session.is_repeat(other)


# --- acknowledgments ---


@pytest.mark.req("C6")
@pytest.mark.parametrize("to", list(DialectName))
def test_an_acknowledgment_of_a_task_accepts_it(to: DialectName) -> None:
    session = admitted(ASSIGNMENT)
    ack = heard(example("s22_acknowledgment"))
    assert ack.kind is Kind.ACK
    accepted = session.understand(ack)
    assert accepted.kind is Kind.TASK_ACCEPT
    assert accepted.body == TaskAccept(task_id="task-001")
    arrived = DIALECTS[to].decode(encode(accepted, to))
    assert arrived.envelope == accepted
    assert arrived.breaches == ()


@pytest.mark.req("C6")
def test_other_acknowledgments_stay_what_they_are() -> None:
    session = admitted(ASSIGNMENT, example("s22_feedback"))
    for reply_to in (example("s22_feedback")["message_id"], "unheard-of"):
        ack = heard(changed(example("s22_acknowledgment"), reply_to=reply_to))
        assert session.understand(ack) == ack
    alone = msgspec.structs.replace(heard(example("s22_acknowledgment")), reply_to=UNSET)
    assert session.understand(alone) == alone


@pytest.mark.req("C6", "M5")
def test_an_acknowledgment_that_comes_again_is_a_repeat() -> None:
    session = admitted(ASSIGNMENT, example("s22_acknowledgment"))
    assert session.is_repeat(session.understand(heard(example("s22_acknowledgment"))))


# --- through examine ---


def test_the_documents_own_conversation_makes_sense() -> None:
    session = SessionState(["architect-main", "developer-01"])
    kinds = []
    for number in range(1, 5):
        report = examine(example_messages()[f"s22_chain:{number}"], session=session)
        assert report.valid
        assert report.envelope is not None
        kinds.append(report.envelope.kind)
        session.admit(report.envelope)
    assert kinds == [
        Kind.TASK_ASSIGN,
        Kind.TASK_ACCEPT,
        Kind.TASK_PROGRESS,
        Kind.TASK_COMPLETE,
    ]


def test_examine_adds_what_the_session_knows_to_what_the_letter_says() -> None:
    session = SessionState(["nobody"])
    report = examine(packed(with_payload(COMPLETION, status="failed")), session=session)
    assert not report.valid
    assert [breach.rule for breach in report.breaches] == [
        Rule.KNOWN_AGENT,
        Rule.KNOWN_AGENT,
        Rule.TASK_ACTIVE,
    ]
    assert report.envelope is not None
