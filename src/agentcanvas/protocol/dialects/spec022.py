"""SPEC-022: ``message_type`` and ``from_agent``, numbered within a session (W2)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.protocol.codec import Codec, Hints, Lifted, Rendering
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects.spec022_wire import (
    BY_TYPE,
    PAYLOADS,
    Abort,
    Acknowledgment,
    AgentIdentifier,
    AssignmentPriority,
    CompletionStatus,
    DeveloperInput,
    DeveloperOutput,
    FeedbackMessage,
    ReviewRequestMessage,
    ReviewResultMessage,
    Spec022Message,
    StatusQueryMessage,
    StatusResponseMessage,
    TaskAssignment,
    TaskAssignmentPayload,
    TaskCompletion,
    TaskProgressMessage,
)
from agentcanvas.protocol.envelope import AgentRef, AgentType, Envelope, Fragment
from agentcanvas.protocol.extension import Extension, Held
from agentcanvas.protocol.kinds import (
    CancelScope,
    Changes,
    Feedback,
    FeedbackType,
    Kind,
    Outcome,
    ReviewRequest,
    ReviewResult,
    Sealed,
    SelfReview,
    TaskConstraints,
    TaskContext,
)
from agentcanvas.protocol.mapping import NOTHING, Form, Row, Shown, from_text, same, text_of
from agentcanvas.protocol.priorities import PriorityWord, to_word, word_value
from agentcanvas.protocol.shape import Breach, Rule

_UNKNOWN = "unknown"
_NO_CONTEXT = TaskContext(specs=(), reference_files=())
_NO_CONSTRAINTS = TaskConstraints(scope=(), testing_required=False, must_not_break=())
_NO_CHANGES = Changes(files_created=(), files_modified=(), files_deleted=())
_NO_SELF_REVIEW = SelfReview(tests_run=False, tests_passed=False, type_check_passed=False)

_TO_STATUS = {
    Outcome.SUCCESS: CompletionStatus.COMPLETED,
    Outcome.PARTIAL: CompletionStatus.PARTIAL,
    Outcome.FAILED: CompletionStatus.FAILED,
    Outcome.TIMEOUT: CompletionStatus.FAILED,
}
_FROM_STATUS = {
    CompletionStatus.COMPLETED: Outcome.SUCCESS,
    CompletionStatus.PARTIAL: Outcome.PARTIAL,
    CompletionStatus.FAILED: Outcome.FAILED,
}


def _seconds_in_words(remaining: float | str) -> str:
    return remaining if isinstance(remaining, str) else f"{remaining} seconds"


def _form(says: str, *rows: Row) -> Form:
    return Form(says=says, rows=rows)


def _fields(*names: str) -> tuple[Row, ...]:
    return tuple(Row(name, name) for name in names)


def _feedback(
    type_: FeedbackType, subject: Row, content: Row, task: Row | None = None
) -> list[Row]:
    rows = [
        Row("", "feedback_type", type_),
        subject,
        content,
        Row("", "action_required", fill=False),
    ]
    return [*rows, task] if task else rows


def _result_rows(status: CompletionStatus) -> list[Row]:
    return [
        Row("task_id", "task_id", _UNKNOWN),
        Row("status", "status", status, _TO_STATUS.__getitem__, _FROM_STATUS.__getitem__),
        Row("changes", "changes", _NO_CHANGES),
        Row("summary", "summary", ""),
        Row("self_review", "self_review", _NO_SELF_REVIEW),
        *_fields("implementation_notes", "blockers", "suggestions"),
    ]


FORMS: dict[Kind, Form] = {
    Kind.TASK_ASSIGN: _form(
        "task_assignment",
        Row("task_id", "task.task_id", _UNKNOWN),
        Row("input", "task.task_description", _UNKNOWN, text_of, from_text),
        Row("context", "task.context", _NO_CONTEXT),
        Row("constraints", "task.constraints", _NO_CONSTRAINTS),
        Row("acceptance_criteria", "task.acceptance_criteria", ()),
        *_fields("deadline", "max_iterations"),
    ),
    Kind.TASK_ACCEPT: _form("acknowledgment"),
    Kind.TASK_REJECT: _form(
        "feedback",
        *_feedback(
            FeedbackType.CORRECTION,
            Row("reason", "subject"),
            Row("message", "content", ""),
            Row("task_id", "related_task_id"),
        ),
    ),
    Kind.TASK_PROGRESS: _form(
        "task_progress",
        Row("task_id", "task_id", _UNKNOWN),
        Row("progress", "progress_percent", 0),
        Row("current_step", "current_step", _UNKNOWN),
        Row("files_modified_so_far", "files_modified_so_far", ()),
        Row("remaining", "estimated_remaining", NOTHING, _seconds_in_words, same),
        *_fields("blockers"),
    ),
    Kind.TASK_COMPLETE: _form("task_completion", *_result_rows(CompletionStatus.COMPLETED)),
    Kind.TASK_FAIL: _form("task_completion", *_result_rows(CompletionStatus.FAILED)),
    Kind.TASK_CANCEL: _form(
        "abort",
        Row("scope", "scope", CancelScope.TASK),
        Row("target_id", "target_id", _UNKNOWN),
        Row("reason", "reason", _UNKNOWN),
        Row("cleanup_required", "cleanup_required", fill=False),
    ),
    Kind.REVIEW_REQUEST: _form("review_request", *_fields(*ReviewRequest.__struct_fields__)),
    Kind.REVIEW_RESULT: _form("review_result", *_fields(*ReviewResult.__struct_fields__)),
    Kind.FEEDBACK: _form("feedback", *_fields(*Feedback.__struct_fields__)),
    Kind.STATUS_QUERY: _form("status_query", *_fields("task_id", "agent_id")),
    Kind.STATUS_RESPONSE: _form(
        "status_response",
        Row("status", "status", _UNKNOWN),
        *_fields("task_id", "agent_id"),
        Row("progress", "progress_percent"),
    ),
    Kind.HEARTBEAT: _form("status_response", *_fields("status")),
    Kind.BROADCAST: _form(
        "feedback",
        *_feedback(FeedbackType.GUIDANCE, Row("event", "subject"), Row("message", "content", "")),
    ),
    Kind.ACK: _form("acknowledgment"),
    Kind.ERROR: _form(
        "feedback",
        *_feedback(
            FeedbackType.CORRECTION,
            Row("error_code", "subject"),
            Row("error_message", "content"),
        ),
    ),
}
_SEALED = Form(
    says="feedback",
    rows=tuple(
        _feedback(
            FeedbackType.GUIDANCE, Row("", "subject", "encrypted"), Row("ciphertext", "content")
        )
    ),
)
_NATURAL: dict[str, Kind] = {
    "task_assignment": Kind.TASK_ASSIGN,
    "task_progress": Kind.TASK_PROGRESS,
    "task_completion": Kind.TASK_COMPLETE,
    "review_request": Kind.REVIEW_REQUEST,
    "review_result": Kind.REVIEW_RESULT,
    "feedback": Kind.FEEDBACK,
    "status_query": Kind.STATUS_QUERY,
    "status_response": Kind.STATUS_RESPONSE,
    "abort": Kind.TASK_CANCEL,
    "acknowledgment": Kind.ACK,
}


class Spec022(Codec[Spec022Message[Any]]):
    """The SPEC-022 dialect."""

    name: ClassVar[DialectName] = DialectName.SPEC022
    wire_types: ClassVar[Any] = (
        TaskAssignment
        | TaskProgressMessage
        | TaskCompletion
        | ReviewRequestMessage
        | ReviewResultMessage
        | FeedbackMessage
        | StatusQueryMessage
        | StatusResponseMessage
        | Abort
        | Acknowledgment
    )
    id_field: ClassVar[str] = "message_id"

    # Envelope to wire ---------------------------------------------------------------------------

    def render(self, envelope: Envelope) -> Rendering[Spec022Message[Any]]:
        form = _SEALED if isinstance(envelope.body, Sealed) else FORMS[envelope.kind]
        fill = envelope.origin != self.name or form is _SEALED
        shown = form.show(envelope.body, fill=fill, time=envelope.time)
        payload, priority = self._payload(form, shown, envelope, fill=fill)
        sequence = envelope.sequence
        if sequence is UNSET:
            sequence = 0
            shown.filled.append("/sequence_number")
        wire = BY_TYPE[form.says](
            message_id=envelope.id,
            timestamp=envelope.time,
            sequence_number=sequence,
            from_agent=_identifier(envelope.sender, "/from_agent", shown),
            to_agent=_identifier(envelope.recipient, "/to_agent", shown),
            payload=payload,
            correlation_id=envelope.correlation_id,
            reply_to=envelope.reply_to,
        )
        held = Held(
            session=envelope.session,
            priority=priority,
            timeout_ms=envelope.timeout_ms,
            retry=envelope.retry,
            security=envelope.security,
            trace_level=envelope.trace_level,
            parent_task_id=envelope.parent_task_id,
            signature=envelope.signature,
            encrypted=envelope.encrypted,
            encryption_algorithm=envelope.encryption_algorithm,
        )
        return Rendering(wire, held, shown)

    def _payload(
        self, form: Form, shown: Shown, envelope: Envelope, *, fill: bool
    ) -> tuple[Any, int | UnsetType]:
        """The payload, and the priority as far as it is not shown there."""
        priority = envelope.priority
        if form.says != "task_assignment":
            return PAYLOADS[form.says](**shown.values), priority
        task = {
            name.removeprefix("task."): value
            for name, value in shown.values.items()
            if name.startswith("task.")
        }
        rest = {name: value for name, value in shown.values.items() if not name.startswith("task.")}
        if priority is UNSET:
            if fill:
                shown.filled.append("/payload/priority")
            word = AssignmentPriority.MEDIUM
        else:
            said = to_word(priority)
            word = AssignmentPriority(PriorityWord.HIGH if said is PriorityWord.CRITICAL else said)
            if word_value(PriorityWord(word)) == priority:
                priority = UNSET
        return TaskAssignmentPayload(task=DeveloperInput(**task), priority=word, **rest), priority

    # Wire to envelope ---------------------------------------------------------------------------

    def lift(self, wire: Spec022Message[Any], hints: Hints) -> Lifted:
        type_ = str(wire.__struct_config__.tag)
        header: dict[str, Any] = {
            "id": wire.message_id,
            "time": wire.timestamp,
            "sender": _agent(wire.from_agent, "/from_agent", hints.filled),
            "correlation_id": wire.correlation_id,
            "reply_to": wire.reply_to,
        }
        if "/sequence_number" not in hints.filled:
            header["sequence"] = wire.sequence_number
        if "/to_agent/agent_id" not in hints.filled:
            header["recipient"] = _agent(wire.to_agent, "/to_agent", hints.filled)
        kind = self._kind(type_, wire, hints)
        payload = wire.payload
        read = {name: getattr(payload, name) for name in payload.__struct_fields__}
        if isinstance(payload, TaskAssignmentPayload):
            task = payload.task
            read |= {f"task.{name}": getattr(task, name) for name in task.__struct_fields__}
            if "/payload/priority" not in hints.filled:
                header["priority"] = word_value(PriorityWord(payload.priority))
        form = _SEALED if hints.sealed else FORMS[kind]
        if form.says != type_:
            raise ValueError(f"{kind} is not said by {type_}")
        heard = form.hear(read, hints.filled, carried=hints.carried)
        return Lifted(header, kind, heard.fields, fragments=tuple[Fragment, ...](heard.fragments))

    def _kind(self, type_: str, wire: Spec022Message[Any], hints: Hints) -> Kind:
        if hints.kind is not UNSET:
            return hints.kind
        payload = wire.payload
        if isinstance(payload, DeveloperOutput) and payload.status is CompletionStatus.FAILED:
            return Kind.TASK_FAIL
        return _NATURAL[type_]

    # The extension and other particulars --------------------------------------------------------

    def detach(
        self, wire: Spec022Message[Any]
    ) -> tuple[Spec022Message[Any], Extension | UnsetType]:
        extension = wire.x_agentcanvas
        if extension is UNSET:
            return wire, UNSET
        return msgspec.structs.replace(wire, x_agentcanvas=UNSET), extension

    def attach(self, wire: Spec022Message[Any], extension: Extension) -> Spec022Message[Any]:
        return msgspec.structs.replace(wire, x_agentcanvas=extension)

    def wire_type_of(self, value: dict[str, Any]) -> type[Spec022Message[Any]] | Breach:
        type_ = value.get("message_type")
        if type_ is None:
            return Breach(Rule.REQUIRED, "/message_type", "Missing required field: message_type")
        if not isinstance(type_, str) or type_ not in BY_TYPE:
            return Breach(
                Rule.MEMBER,
                "/message_type",
                f"Unknown message type: {str(type_)[:60]}; use one of: {', '.join(BY_TYPE)}",
            )
        return BY_TYPE[type_]


def _identifier(agent: AgentRef | UnsetType, pointer: str, shown: Shown) -> AgentIdentifier:
    if agent is UNSET:
        shown.filled += [f"{pointer}/agent_id", f"{pointer}/agent_type"]
        return AgentIdentifier(_UNKNOWN, AgentType.DEVELOPER)
    type_ = agent.type
    if type_ is UNSET:
        shown.filled.append(f"{pointer}/agent_type")
        type_ = AgentType.DEVELOPER
    return AgentIdentifier(agent.id, type_, agent.instance)


def _agent(identifier: AgentIdentifier, pointer: str, filled: frozenset[str]) -> AgentRef:
    type_ = UNSET if f"{pointer}/agent_type" in filled else identifier.agent_type
    return AgentRef(identifier.agent_id, type_, identifier.instance_id)
