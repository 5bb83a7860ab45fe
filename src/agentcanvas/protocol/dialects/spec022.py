"""SPEC-022: ``message_type`` and ``from_agent``, numbered within a session (W2)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.protocol.codec import Codec, Hints
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects.spec022_forms import (
    FORMS,
    FROM_PRIORITY,
    SEALED,
    TO_PRIORITY,
)
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
from agentcanvas.protocol.extension import Extension, Held, extension_of
from agentcanvas.protocol.kinds import (
    Kind,
    Sealed,
)
from agentcanvas.protocol.mapping import (
    UNKNOWN,
    Form,
    Shown,
)
from agentcanvas.protocol.priorities import to_word
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.values import Maybe

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

_TASK_ID = "/payload/task/task_id"


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
        form = SEALED if isinstance(envelope.body, Sealed) else FORMS[envelope.kind]
        fill = envelope.origin != self.name or form is SEALED
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
            x_agentcanvas=extension_of(
                envelope,
                held,
                shown,
                dialect=self.name,
                natural=_natural(BY_TYPE[form.says], payload),
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
            # As ACP has it: the command stands for the task.
            envelope.id if _TASK_ID in shown.filled else values["task.task_id"],
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
            word = TO_PRIORITY[to_word(priority)]
            if FROM_PRIORITY[word] == priority:
                priority = UNSET
        payload = TaskAssignmentPayload(task, word, values["deadline"], values["max_iterations"])
        return payload, priority

    # Wire to envelope ---------------------------------------------------------------------------

    def lift(self, wire: Spec022Message[Any], hints: Hints) -> Envelope:
        payload, filled = wire.payload, hints.filled
        kind = self._kind(wire, hints)
        form = SEALED if hints.sealed else FORMS[kind]
        if BY_TYPE[form.says] is not type(wire):
            raise ValueError(f"{kind} is not said by {type(wire).__name__}")
        priority: Maybe[int] = UNSET
        if isinstance(payload, TaskAssignmentPayload) and "/payload/priority" not in filled:
            priority = FROM_PRIORITY[payload.priority]
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
        return AgentIdentifier(UNKNOWN, AgentType.DEVELOPER)
    type_ = agent.type
    if type_ is UNSET:
        shown.filled.append(f"{pointer}/agent_type")
        type_ = AgentType.DEVELOPER
    return AgentIdentifier(agent.id, type_, agent.instance)


def _agent(identifier: AgentIdentifier, pointer: str, filled: frozenset[str]) -> AgentRef:
    type_ = UNSET if f"{pointer}/agent_type" in filled else identifier.agent_type
    return AgentRef(identifier.agent_id, type_, identifier.instance_id)
