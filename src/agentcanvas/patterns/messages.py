"""A request and what came of it, as messages that a dialect can spell."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from agentcanvas.pattern import Answer
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import step_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.values import Raw


def request_of(first: str, other: str, request: str, conversation: str, time: str) -> Envelope:
    """The request as one message to one agent."""
    return Envelope(
        id=step_id(conversation, other, 1),
        kind=Kind.TASK_ASSIGN,
        time=time,
        sender=AgentRef(first),
        recipient=AgentRef(other),
        correlation_id=conversation,
        body=TaskAssign(task_id=f"for-{other}", input=Raw(msgspec.json.encode(request))),
    )


def reply_of(asked: Envelope, answer: Answer[None], time: str) -> Envelope:
    """The answer as a message; a failure says of which class it is."""
    kind, body = Kind.TASK_COMPLETE, TaskResult(task_id=asked.task_id or UNSET)
    if answer.done:
        body = msgspec.structs.replace(body, output=Raw(msgspec.json.encode(answer.text)))
    else:
        kind, code = Kind.TASK_FAIL, str(answer.failure or answer.fate).upper()
        body = msgspec.structs.replace(body, error_code=code, error_message=answer.reason)
    assert asked.recipient is not UNSET
    return Envelope(
        id=step_id(asked.id, "reply", 1),
        kind=kind,
        time=time,
        sender=asked.recipient,
        recipient=asked.sender,
        correlation_id=asked.correlation_id,
        reply_to=asked.id,
        body=body,
    )
