"""MAC, the multi-agent protocol v1.0: ``type`` and ``from``, durations in seconds (W1)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.errors import ErrorType
from agentcanvas.protocol.codec import Codec, Hints, Lifted, Rendering
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects.mac_wire import (
    BY_TYPE,
    PAYLOADS,
    BroadcastMessage,
    ErrorMessage,
    HeartbeatMessage,
    MacMessage,
    MacMetadata,
    MacStatus,
    StatusQueryMessage,
    StatusResponseMessage,
    StatusResponsePayload,
    TaskAcceptMessage,
    TaskCancelMessage,
    TaskComplete,
    TaskFailed,
    TaskRejectMessage,
    TaskRequest,
    TaskRequestPayload,
)
from agentcanvas.protocol.envelope import AgentRef, Envelope, Fragment
from agentcanvas.protocol.extension import KEY, Extension, Held
from agentcanvas.protocol.kinds import (
    AgentStatus,
    Broadcast,
    CancelScope,
    ErrorSeverity,
    Kind,
    Outcome,
    Sealed,
)
from agentcanvas.protocol.mapping import (
    TIME,
    Form,
    Row,
    Shown,
    number_or_unset,
    object_or_unset,
    same,
    text_or_object,
    to_ms,
    to_seconds,
)
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.values import (
    Maybe,
    Raw,
    freeze,
    is_object,
    is_text,
)

_TO_STATUS = {
    Outcome.SUCCESS: MacStatus.SUCCESS,
    Outcome.PARTIAL: MacStatus.PARTIAL,
    Outcome.FAILED: MacStatus.FAILED,
    Outcome.TIMEOUT: MacStatus.TIMEOUT,
}
_FROM_STATUS = {mac: outcome for outcome, mac in _TO_STATUS.items()}

_UNKNOWN = "unknown"
_EMPTY = freeze({})


def _form(says: str, *rows: Row, slot: str | None = None, whole: bool = False) -> Form:
    return Form(says=says, rows=rows, slot=slot, slot_whole=whole)


def _task_id(fill: str = _UNKNOWN, field: str = "task_id") -> Row:
    return Row(field, "task_id", fill)


def _remaining(fill: object) -> Row:
    return Row("remaining", "estimated_remaining", fill, number_or_unset, same)


FORMS: dict[Kind, Form] = {
    Kind.TASK_ASSIGN: _form(
        "TASK_REQUEST",
        _task_id(),
        Row("task_type", "task_type", _UNKNOWN),
        Row("input", "input", freeze(""), text_or_object, same),
        Row("callback_url", "callback_url"),
        Row("requirements", "requirements", down=object_or_unset, up=same),
        slot="requirements",
    ),
    Kind.TASK_ACCEPT: _form(
        "TASK_ACCEPT",
        _task_id(),
        Row("estimated_duration", "estimated_duration", 0),
        Row("accepted_at", "accepted_at", TIME),
    ),
    Kind.TASK_REJECT: _form(
        "TASK_REJECT",
        _task_id(),
        Row("reason", "reason"),
        Row("message", "message", ""),
        Row("suggested_agents", "suggested_agents", ()),
    ),
    Kind.TASK_PROGRESS: _form(
        "STATUS_RESPONSE",
        Row("task_id", "task_id"),
        Row("status", "status", "RUNNING"),
        Row("progress", "progress", 0),
        _remaining(0),
    ),
    Kind.TASK_COMPLETE: _form(
        "TASK_COMPLETE",
        _task_id(),
        Row(
            "status", "status", MacStatus.SUCCESS, _TO_STATUS.__getitem__, _FROM_STATUS.__getitem__
        ),
        Row("duration_ms", "duration", 0, to_seconds, to_ms),
        Row("completed_at", "completed_at", TIME),
        Row("output", "output", _EMPTY),
        slot="output",
    ),
    Kind.TASK_FAIL: _form(
        "TASK_FAILED",
        _task_id(),
        Row("error_code", "error_code", "EXECUTION_ERROR"),
        Row("error_message", "error_message", _UNKNOWN),
        Row("retry_possible", "retry_possible", fill=False),
        Row("error_details", "error_details", _EMPTY),
        slot="error_details",
    ),
    Kind.TASK_CANCEL: _form(
        "TASK_CANCEL",
        Row("scope", "scope", CancelScope.TASK),
        Row("target_id", "target_id", _UNKNOWN),
        Row("reason", "reason", _UNKNOWN),
        Row("cleanup_required", "cleanup_required", fill=False),
    ),
    Kind.REVIEW_REQUEST: _form(
        "TASK_REQUEST",
        _task_id(),
        Row("", "task_type", "review"),
        Row("", "input"),
        slot="input",
    ),
    Kind.REVIEW_RESULT: _form(
        "TASK_COMPLETE",
        _task_id(),
        Row("", "status", MacStatus.SUCCESS),
        Row("", "duration", 0),
        Row("", "completed_at", TIME),
        Row("", "output"),
        slot="output",
    ),
    Kind.FEEDBACK: _form(
        "STATUS_RESPONSE",
        Row("related_task_id", "task_id"),
        Row("", "status", "FEEDBACK"),
        Row("", "progress", 0),
        Row("", "estimated_remaining", 0),
    ),
    Kind.STATUS_QUERY: _form(
        "STATUS_QUERY",
        Row("task_id", "task_id"),
        Row("query_type", "query_type", "TASK_STATUS"),
    ),
    Kind.STATUS_RESPONSE: _form(
        "STATUS_RESPONSE",
        Row("query_id", "query_id"),
        Row("task_id", "task_id"),
        Row("status", "status", _UNKNOWN),
        Row("progress", "progress", 0),
        _remaining(0),
    ),
    Kind.HEARTBEAT: _form(
        "HEARTBEAT",
        Row("status", "status", AgentStatus.ACTIVE),
        Row("load", "load", 0),
        Row("tasks_running", "tasks_running", 0),
        Row("tasks_queued", "tasks_queued", 0),
        Row("capabilities", "capabilities", ()),
    ),
    Kind.ACK: _form(
        "STATUS_RESPONSE",
        Row("", "status", "ACKNOWLEDGED"),
        Row("", "progress", 0),
        Row("", "estimated_remaining", 0),
    ),
    Kind.ERROR: _form(
        "ERROR",
        Row("error_type", "error_type", ErrorType.EXECUTION),
        Row("error_code", "error_code", _UNKNOWN),
        Row("error_message", "error_message", _UNKNOWN),
        Row("original_message_id", "original_message_id", _UNKNOWN),
        Row("severity", "severity", ErrorSeverity.ERROR),
    ),
}
_BROADCAST = "BROADCAST"
_NATURAL: dict[str, Kind] = {
    "TASK_REQUEST": Kind.TASK_ASSIGN,
    "TASK_ACCEPT": Kind.TASK_ACCEPT,
    "TASK_REJECT": Kind.TASK_REJECT,
    "TASK_COMPLETE": Kind.TASK_COMPLETE,
    "TASK_FAILED": Kind.TASK_FAIL,
    "TASK_CANCEL": Kind.TASK_CANCEL,
    "HEARTBEAT": Kind.HEARTBEAT,
    "STATUS_QUERY": Kind.STATUS_QUERY,
    "STATUS_RESPONSE": Kind.STATUS_RESPONSE,
    "BROADCAST": Kind.BROADCAST,
    "ERROR": Kind.ERROR,
}
_HEADER_ROWS = {
    "correlation_id": "correlation_id",
    "parent_message_id": "reply_to",
    "parent_task_id": "parent_task_id",
    "trace_level": "trace_level",
    "session_id": "session",
}


class Mac(Codec[MacMessage[Any]]):
    """The MAC dialect."""

    name: ClassVar[DialectName] = DialectName.MAC
    wire_types: ClassVar[Any] = (
        TaskRequest
        | TaskAcceptMessage
        | TaskRejectMessage
        | TaskComplete
        | TaskFailed
        | TaskCancelMessage
        | HeartbeatMessage
        | StatusQueryMessage
        | StatusResponseMessage
        | BroadcastMessage
        | ErrorMessage
    )
    id_field: ClassVar[str] = "message_id"

    # Envelope to wire ---------------------------------------------------------------------------

    def render(self, envelope: Envelope) -> Rendering[MacMessage[Any]]:
        type_, payload, shown = self._payload(envelope)
        filled = shown.filled
        metadata = MacMetadata(
            correlation_id=envelope.correlation_id,
            parent_message_id=envelope.reply_to,
            parent_task_id=envelope.parent_task_id,
            trace_level=envelope.trace_level,
            session_id=envelope.session,
        )
        if envelope.recipient is UNSET:
            recipient = _UNKNOWN
            filled.append("/to")
        else:
            recipient = envelope.recipient.id
        wire = BY_TYPE[type_](
            message_id=envelope.id,
            sender=envelope.sender.id,
            recipient=recipient,
            timestamp=envelope.time,
            payload=payload,
            priority=envelope.priority,
            metadata=metadata if metadata != _NO_METADATA else UNSET,
            signature=envelope.signature if envelope.origin == self.name else UNSET,
            encrypted=envelope.encrypted,
            encryption_algorithm=envelope.encryption_algorithm,
        )
        held = Held(
            sender=_more_than_id(envelope.sender),
            recipient=_more_than_id(envelope.recipient),
            sequence=envelope.sequence,
            timeout_ms=self._hidden_timeout(envelope, payload),
            retry=envelope.retry,
            security=envelope.security,
            signature=UNSET if envelope.origin == self.name else envelope.signature,
        )
        return Rendering(wire, held, shown)

    def _hidden_timeout(self, envelope: Envelope, payload: object) -> Maybe[float]:
        """The timeout where the payload has no place for it, or cannot say it exactly."""
        ms = envelope.timeout_ms
        if ms is UNSET or not isinstance(payload, TaskRequestPayload):
            return ms
        exact = envelope.origin == self.name or to_ms(to_seconds(ms)) == ms
        return UNSET if exact else ms

    def _payload(self, envelope: Envelope) -> tuple[str, Any, Shown]:
        body = envelope.body
        if isinstance(body, Sealed):
            type_ = _BROADCAST if envelope.kind is Kind.BROADCAST else FORMS[envelope.kind].says
            text = freeze(body.ciphertext) if type_ == _BROADCAST else body.ciphertext
            return type_, text, Shown({}, {}, [])
        if isinstance(body, Broadcast):
            return _BROADCAST, *self._broadcast(body, fill=envelope.origin != self.name)
        form = FORMS[envelope.kind]
        shown = form.show(body, fill=envelope.origin != self.name, time=envelope.time)
        if form.says == "TASK_REQUEST" and envelope.timeout_ms is not UNSET:
            shown.values["timeout"] = to_seconds(envelope.timeout_ms)
        return form.says, PAYLOADS[form.says](**shown.values), shown

    def _broadcast(self, body: Broadcast, *, fill: bool) -> tuple[Raw, Shown]:
        members: dict[str, object] = {"event": body.event}
        shown = Shown(members, {}, [])
        if body.message is not UNSET:
            members["message"] = body.message
        elif fill:
            members["message"] = ""
            shown.filled.append("/payload/message")
        if body.data is not UNSET:
            data = (
                msgspec.json.decode(body.data, type=dict[str, Raw])
                if is_object(body.data)
                else None
            )
            if data is None or data.keys() & {"event", "message"} or not data:
                shown.left["data"] = body.data
            else:
                members.update(data)
        return freeze(members), shown

    # Wire to envelope ---------------------------------------------------------------------------

    def lift(self, wire: MacMessage[Any], hints: Hints) -> Lifted:
        type_ = str(wire.__struct_config__.tag)
        header: dict[str, Any] = {
            "id": wire.message_id,
            "time": wire.timestamp,
            "sender": AgentRef(wire.sender),
            "priority": wire.priority,
            "signature": wire.signature,
            "encrypted": wire.encrypted,
            "encryption_algorithm": wire.encryption_algorithm,
        }
        if "/to" not in hints.filled:
            header["recipient"] = AgentRef(wire.recipient)
        fragments: list[Fragment] = []
        if wire.metadata is not UNSET:
            for name, field in _HEADER_ROWS.items():
                header[field] = getattr(wire.metadata, name)
            if wire.metadata == _NO_METADATA:
                fragments.append(Fragment("/metadata", _EMPTY))
        kind = self._kind(type_, wire, hints)
        if wire.encrypted is True:
            text = wire.payload
            ciphertext = text if isinstance(text, str) else msgspec.json.decode(text, type=str)
            return Lifted(header, kind, {"ciphertext": ciphertext}, fragments=tuple(fragments))
        if type_ == _BROADCAST:
            return Lifted(
                header, kind, self._hear_broadcast(wire, hints), fragments=tuple(fragments)
            )
        form = FORMS[kind]
        payload = wire.payload
        heard = form.hear(_attributes(payload), hints.filled, carried=hints.carried)
        if type_ == "TASK_REQUEST" and payload.timeout is not UNSET:
            ms = header["timeout_ms"] = to_ms(payload.timeout)
            if to_seconds(ms) != payload.timeout:
                fragments.append(Fragment("/payload/timeout", freeze(payload.timeout)))
        carrier = getattr(payload, form.slot) if hints.carried and form.slot else UNSET
        return Lifted(header, kind, heard.fields, carrier, (*fragments, *heard.fragments))

    def _kind(self, type_: str, wire: MacMessage[Any], hints: Hints) -> Kind:
        if hints.kind is not UNSET:
            expected = _BROADCAST if hints.kind is Kind.BROADCAST else FORMS[hints.kind].says
            if expected != type_:
                raise ValueError(f"{hints.kind} is not said by {type_}")
            return hints.kind
        payload = wire.payload
        if isinstance(payload, StatusResponsePayload) and payload.query_id is UNSET:
            return Kind.TASK_PROGRESS
        return _NATURAL[type_]

    def _hear_broadcast(self, wire: MacMessage[Any], hints: Hints) -> dict[str, Any]:
        members = msgspec.json.decode(wire.payload, type=dict[str, Raw])
        fields: dict[str, Any] = {"event": msgspec.json.decode(members.pop("event"), type=str)}
        message = members.pop("message", None)
        if message is not None:
            text = msgspec.json.decode(message, type=str)
            if "/payload/message" not in hints.filled:
                fields["message"] = text
        if members:
            fields["data"] = freeze(members)
        return fields

    # The extension and other particulars --------------------------------------------------------

    def detach(self, wire: MacMessage[Any]) -> tuple[MacMessage[Any], Extension | UnsetType]:
        metadata = wire.metadata
        if metadata is UNSET or metadata.x_agentcanvas is UNSET:
            return wire, UNSET
        rest = msgspec.structs.replace(metadata, x_agentcanvas=UNSET)
        extension = metadata.x_agentcanvas
        # A signature on a translation seals that form of it; the message's own is in the extension.
        own = wire.signature if extension.origin is UNSET else UNSET
        plain = msgspec.structs.replace(
            wire, metadata=UNSET if rest == _NO_METADATA else rest, signature=own
        )
        return plain, extension

    def attach(self, wire: MacMessage[Any], extension: Extension) -> MacMessage[Any]:
        metadata = _NO_METADATA if wire.metadata is UNSET else wire.metadata
        return msgspec.structs.replace(
            wire, metadata=msgspec.structs.replace(metadata, x_agentcanvas=extension)
        )

    def wire_type_of(self, value: dict[str, Any]) -> type[MacMessage[Any]] | Breach:
        type_ = value.get("type")
        if type_ is None:
            return Breach(Rule.REQUIRED, "/type", "Missing required field: type")
        if not isinstance(type_, str) or type_ not in BY_TYPE:
            allowed = ", ".join(BY_TYPE)
            return Breach(
                Rule.MEMBER,
                "/type",
                f"Unknown message type: {str(type_)[:60]}; use one of: {allowed}",
            )
        return BY_TYPE[type_]

    def quirks(self, wire: MacMessage[Any]) -> Breach | None:
        payload = wire.payload
        is_string = is_text(payload) if isinstance(payload, Raw) else isinstance(payload, str)
        if (wire.encrypted is True) is is_string:
            return None
        wanted = (
            "a base64 string because encrypted is true"
            if wire.encrypted is True
            else "an object; a string needs encrypted: true"
        )
        return Breach(Rule.SEALED, "/payload", f"Wrong type for payload: expected {wanted}")

    def leaves_open(self, pointer: str) -> bool:
        return pointer.startswith("/metadata/") and not pointer.startswith(f"/metadata/{KEY}/")


_NO_METADATA = MacMetadata()


def _more_than_id(agent: AgentRef | UnsetType) -> AgentRef | UnsetType:
    if agent is UNSET or (agent.type is UNSET and agent.instance is UNSET):
        return UNSET
    return agent


def _attributes(payload: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(payload, name) for name in payload.__struct_fields__}
