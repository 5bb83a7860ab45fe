"""SPEC-022: ``message_type`` and ``from_agent``, numbered within a session (W2)."""

from __future__ import annotations

from typing import Any, ClassVar, TypeGuard

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.protocol.codec import Codec, Hints
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
from agentcanvas.protocol.envelope import AgentRef, AgentType, Envelope
from agentcanvas.protocol.extension import Extension, Held
from agentcanvas.protocol.kinds import (
    BODY_TYPES,
    CancelScope,
    Changes,
    Kind,
    Outcome,
    Sealed,
    SelfReview,
    TaskConstraints,
    TaskContext,
)
from agentcanvas.protocol.mapping import NOTHING, Form, Row, Shown, from_text, same, text_of
from agentcanvas.protocol.priorities import PriorityWord, to_word, word_value
from agentcanvas.protocol.reviews import (
    Feedback,
    FeedbackType,
    ReviewRequest,
    ReviewResult,
)
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.values import Maybe, is_text

_UNKNOWN = "unknown"
_NO_CONTEXT = TaskContext(specs=(), reference_files=())
_NO_CONSTRAINTS = TaskConstraints(scope=(), testing_required=False, must_not_break=())
_NO_CHANGES = Changes(files_created=(), files_modified=(), files_deleted=())
_NO_SELF_REVIEW = SelfReview(tests_run=False, tests_passed=False, type_check_passed=False)

_TO_PRIORITY = {
    PriorityWord.LOW: AssignmentPriority.LOW,
    PriorityWord.MEDIUM: AssignmentPriority.MEDIUM,
    PriorityWord.HIGH: AssignmentPriority.HIGH,
    PriorityWord.CRITICAL: AssignmentPriority.HIGH,
}
_FROM_PRIORITY = {word: word_value(PriorityWord(word)) for word in AssignmentPriority}

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


def _in_words(remaining: float | str) -> str:
    return remaining if _is_words(remaining) else f"{remaining} seconds"


def _is_words(remaining: float | str) -> TypeGuard[str]:
    return isinstance(remaining, str)


def _form(kind: Kind, says: str, *rows: Row) -> tuple[Kind, Form]:
    return kind, Form(says, BODY_TYPES[kind], rows)


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


FORMS: dict[Kind, Form] = dict(
    [
        _form(
            Kind.TASK_ASSIGN,
            "task_assignment",
            Row("task_id", "task.task_id", _UNKNOWN),
            Row("input", "task.task_description", _UNKNOWN, text_of, from_text, exact=is_text),
            Row("context", "task.context", _NO_CONTEXT),
            Row("constraints", "task.constraints", _NO_CONSTRAINTS),
            Row("acceptance_criteria", "task.acceptance_criteria", ()),
            *_fields("deadline", "max_iterations"),
        ),
        _form(Kind.TASK_ACCEPT, "acknowledgment"),
        _form(
            Kind.TASK_REJECT,
            "feedback",
            *_feedback(
                FeedbackType.CORRECTION,
                Row("reason", "subject"),
                Row("message", "content", ""),
                Row("task_id", "related_task_id"),
            ),
        ),
        _form(
            Kind.TASK_PROGRESS,
            "task_progress",
            Row("task_id", "task_id", _UNKNOWN),
            Row("progress", "progress_percent", 0),
            Row("current_step", "current_step", _UNKNOWN),
            Row("files_modified_so_far", "files_modified_so_far", ()),
            Row("remaining", "estimated_remaining", NOTHING, _in_words, same, exact=_is_words),
            *_fields("blockers"),
        ),
        _form(Kind.TASK_COMPLETE, "task_completion", *_result_rows(CompletionStatus.COMPLETED)),
        _form(Kind.TASK_FAIL, "task_completion", *_result_rows(CompletionStatus.FAILED)),
        _form(
            Kind.TASK_CANCEL,
            "abort",
            Row("scope", "scope", CancelScope.TASK),
            Row("target_id", "target_id", _UNKNOWN),
            Row("reason", "reason", _UNKNOWN),
            Row("cleanup_required", "cleanup_required", fill=False),
        ),
        _form(Kind.REVIEW_REQUEST, "review_request", *_fields(*ReviewRequest.__struct_fields__)),
        _form(Kind.REVIEW_RESULT, "review_result", *_fields(*ReviewResult.__struct_fields__)),
        _form(Kind.FEEDBACK, "feedback", *_fields(*Feedback.__struct_fields__)),
        _form(Kind.STATUS_QUERY, "status_query", *_fields("task_id", "agent_id")),
        _form(
            Kind.STATUS_RESPONSE,
            "status_response",
            Row("status", "status", _UNKNOWN),
            *_fields("task_id", "agent_id"),
            Row("progress", "progress_percent"),
        ),
        _form(Kind.HEARTBEAT, "status_response", *_fields("status")),
        _form(
            Kind.BROADCAST,
            "feedback",
            *_feedback(
                FeedbackType.GUIDANCE, Row("event", "subject"), Row("message", "content", "")
            ),
        ),
        _form(Kind.ACK, "acknowledgment"),
        _form(
            Kind.ERROR,
            "feedback",
            *_feedback(
                FeedbackType.CORRECTION,
                Row("error_code", "subject"),
                Row("error_message", "content"),
            ),
        ),
    ]
)
_SEALED = Form(
    "feedback",
    Sealed,
    _feedback(FeedbackType.GUIDANCE, Row("", "subject", "encrypted"), Row("ciphertext", "content")),
)
_NATURAL: dict[type, Kind] = {
    TaskAssignment: Kind.TASK_ASSIGN,
    TaskProgressMessage: Kind.TASK_PROGRESS,
    TaskCompletion: Kind.TASK_COMPLETE,
    ReviewRequestMessage: Kind.REVIEW_REQUEST,
    ReviewResultMessage: Kind.REVIEW_RESULT,
    FeedbackMessage: Kind.FEEDBACK,
    StatusQueryMessage: Kind.STATUS_QUERY,
    StatusResponseMessage: Kind.STATUS_RESPONSE,
    Abort: Kind.TASK_CANCEL,
    Acknowledgment: Kind.ACK,
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

    def render(self, envelope: Envelope) -> Spec022Message[Any]:
        form = _SEALED if isinstance(envelope.body, Sealed) else FORMS[envelope.kind]
        fill = envelope.origin != self.name or form is _SEALED
        shown = form.show(envelope.body, fill, envelope.time)
        payload, priority = self._payload(form, shown, envelope, fill=fill)
        sequence = envelope.sequence
        if sequence is UNSET:
            sequence = 0
            shown.filled.append("/sequence_number")
        from_agent = _identifier(envelope.sender, "/from_agent", shown)
        to_agent = _identifier(envelope.recipient, "/to_agent", shown)
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
        return BY_TYPE[form.says](
            message_id=envelope.id,
            timestamp=envelope.time,
            sequence_number=sequence,
            from_agent=from_agent,
            to_agent=to_agent,
            payload=payload,
            correlation_id=envelope.correlation_id,
            reply_to=envelope.reply_to,
            x_agentcanvas=self.extension(
                envelope, held, shown, _natural(BY_TYPE[form.says], payload)
            ),
        )

    def _payload(
        self, form: Form, shown: Shown, envelope: Envelope, *, fill: bool
    ) -> tuple[Any, int | UnsetType]:
        """The payload, and the priority as far as it is not shown there."""
        priority = envelope.priority
        if form.says != "task_assignment":
            return PAYLOADS[form.says](**shown.values), priority
        values = shown.values
        task = DeveloperInput(
            values["task.task_id"],
            values["task.task_description"],
            values["task.context"],
            values["task.constraints"],
            values["task.acceptance_criteria"],
        )
        if priority is UNSET:
            if fill:
                shown.filled.append("/payload/priority")
            word = AssignmentPriority.MEDIUM
        else:
            word = _TO_PRIORITY[to_word(priority)]
            if _FROM_PRIORITY[word] == priority:
                priority = UNSET
        payload = TaskAssignmentPayload(task, word, values["deadline"], values["max_iterations"])
        return payload, priority

    # Wire to envelope ---------------------------------------------------------------------------

    def lift(self, wire: Spec022Message[Any], hints: Hints) -> Envelope:
        payload, filled = wire.payload, hints.filled
        kind = self._kind(wire, hints)
        form = _SEALED if hints.sealed else FORMS[kind]
        if BY_TYPE[form.says] is not type(wire):
            raise ValueError(f"{kind} is not said by {type(wire).__name__}")
        priority: Maybe[int] = UNSET
        if isinstance(payload, TaskAssignmentPayload) and "/payload/priority" not in filled:
            priority = _FROM_PRIORITY[payload.priority]
        body, lossy = form.hear(payload, filled, hints.carried, hints.left)
        return Envelope(
            id=wire.message_id,
            kind=kind,
            time=wire.timestamp,
            sender=_agent(wire.from_agent, "/from_agent", filled),
            recipient=UNSET
            if "/to_agent/agent_id" in filled
            else _agent(wire.to_agent, "/to_agent", filled),
            body=body,
            origin=self.name,
            sequence=UNSET if "/sequence_number" in filled else wire.sequence_number,
            priority=priority,
            correlation_id=wire.correlation_id,
            reply_to=wire.reply_to,
            encrypted=True if hints.sealed else UNSET,
            fragments=lossy + hints.unknown,
        )

    def _kind(self, wire: Spec022Message[Any], hints: Hints) -> Kind:
        if hints.kind is not UNSET:
            return hints.kind
        return _natural(type(wire), wire.payload)

    # The extension and other particulars --------------------------------------------------------

    def detach(
        self, wire: Spec022Message[Any]
    ) -> tuple[Spec022Message[Any], Extension | UnsetType]:
        extension = wire.x_agentcanvas
        if extension is UNSET:
            return wire, UNSET
        return msgspec.structs.replace(wire, x_agentcanvas=UNSET), extension

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


def _natural(message: type[Spec022Message[Any]], payload: Any) -> Kind:
    """What a message is for, by its visible form alone."""
    if isinstance(payload, DeveloperOutput) and payload.status is CompletionStatus.FAILED:
        return Kind.TASK_FAIL
    return _NATURAL[message]


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
