"""MAC, the multi-agent protocol v1.0: ``type`` and ``from``, durations in seconds (W1)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol import scan
from agentcanvas.protocol.codec import Codec, Hints
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects.mac_forms import FORMS
from agentcanvas.protocol.dialects.mac_wire import (
    BY_TYPE,
    PAYLOADS,
    BroadcastMessage,
    ErrorMessage,
    HeartbeatMessage,
    MacHeader,
    MacMessage,
    MacMetadata,
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
from agentcanvas.protocol.extension import KEY, Extension, Held, extension_of, more_than_id
from agentcanvas.protocol.kinds import (
    Body,
    Broadcast,
    Kind,
    Sealed,
)
from agentcanvas.protocol.mapping import (
    EMPTY,
    UNKNOWN,
    Shown,
    to_ms,
    to_seconds,
)
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.values import (
    Maybe,
    Raw,
    freeze,
    is_object,
    is_sound_object,
    is_text,
)

_QUOTE = ord('"')
_BROADCAST = "BROADCAST"
_NATURAL: dict[type, Kind] = {
    TaskRequest: Kind.TASK_ASSIGN,
    TaskAcceptMessage: Kind.TASK_ACCEPT,
    TaskRejectMessage: Kind.TASK_REJECT,
    TaskComplete: Kind.TASK_COMPLETE,
    TaskFailed: Kind.TASK_FAIL,
    TaskCancelMessage: Kind.TASK_CANCEL,
    HeartbeatMessage: Kind.HEARTBEAT,
    StatusQueryMessage: Kind.STATUS_QUERY,
    StatusResponseMessage: Kind.STATUS_RESPONSE,
    BroadcastMessage: Kind.BROADCAST,
    ErrorMessage: Kind.ERROR,
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
    extension_at: ClassVar[str] = f"/metadata/{KEY}"

    def route(self, data: bytes) -> MacHeader:
        """What is needed to pass a message on, without reading its payload."""
        scan.prescan(data)
        try:
            header = _read_header(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.read(data)  # says exactly what is wrong
            raise ProtocolError("Not understood: the header of the message") from None
        if header.type not in BY_TYPE:
            self.read(data)
        return header

    # Envelope to wire ---------------------------------------------------------------------------

    def render(self, envelope: Envelope) -> MacMessage[Any]:
        type_, payload, shown = self._payload(envelope)
        if envelope.recipient is UNSET:
            recipient = UNKNOWN
            shown.filled.append("/to")
        else:
            recipient = envelope.recipient.id
        native = envelope.origin == self.name
        held = Held(
            sender=more_than_id(envelope.sender),
            recipient=more_than_id(envelope.recipient),
            sequence=envelope.sequence,
            timeout_ms=self._hidden_timeout(envelope, payload),
            retry=envelope.retry,
            security=envelope.security,
            signature=UNSET if native else envelope.signature,
        )
        metadata = MacMetadata(
            correlation_id=envelope.correlation_id,
            parent_message_id=envelope.reply_to,
            parent_task_id=envelope.parent_task_id,
            trace_level=envelope.trace_level,
            session_id=envelope.session,
            x_agentcanvas=extension_of(
                envelope, held, shown, dialect=self.name, natural=_natural(BY_TYPE[type_], payload)
            ),
        )
        return BY_TYPE[type_](
            message_id=envelope.id,
            sender=envelope.sender.id,
            recipient=recipient,
            timestamp=envelope.time,
            payload=payload,
            priority=envelope.priority,
            metadata=metadata if metadata != _NO_METADATA else UNSET,
            signature=envelope.signature if native else UNSET,
            encrypted=envelope.encrypted,
            encryption_algorithm=envelope.encryption_algorithm,
        )

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
        shown = form.show(body, envelope.origin != self.name, envelope.time)
        if envelope.kind is Kind.TASK_ASSIGN and _TASK_ID in shown.filled:
            shown.values["task_id"] = envelope.id  # as ACP has it: the command stands for the task
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

    def lift(self, wire: MacMessage[Any], hints: Hints) -> Envelope:
        payload, filled = wire.payload, hints.filled
        kind = self._kind(wire, hints)
        body, fragments = self._body(wire, kind, hints)
        timeout_ms: Maybe[float] = UNSET
        if payload.__class__ is TaskRequestPayload and payload.timeout is not UNSET:
            timeout_ms = to_ms(payload.timeout)
            if to_seconds(timeout_ms) != payload.timeout:
                fragments += (Fragment("/payload/timeout", freeze(payload.timeout)),)
        metadata = wire.metadata
        if metadata is UNSET:
            metadata = _NO_METADATA
        elif metadata == _NO_METADATA:
            fragments += (Fragment("/metadata", EMPTY),)
        return Envelope(
            id=wire.message_id,
            kind=kind,
            time=wire.timestamp,
            sender=AgentRef(wire.sender),
            recipient=UNSET if "/to" in filled else AgentRef(wire.recipient),
            body=body,
            origin=self.name,
            session=metadata.session_id,
            priority=wire.priority,
            correlation_id=metadata.correlation_id,
            reply_to=metadata.parent_message_id,
            timeout_ms=timeout_ms,
            trace_level=metadata.trace_level,
            parent_task_id=metadata.parent_task_id,
            signature=wire.signature,
            encrypted=wire.encrypted,
            encryption_algorithm=wire.encryption_algorithm,
            fragments=fragments + hints.unknown,
        )

    def _body(
        self, wire: MacMessage[Any], kind: Kind, hints: Hints
    ) -> tuple[Body, tuple[Fragment, ...]]:
        payload = wire.payload
        if wire.encrypted is True:
            text = payload if isinstance(payload, str) else msgspec.json.decode(payload, type=str)
            return Sealed(text), ()
        if kind is Kind.BROADCAST:
            return self._hear_broadcast(payload, hints), ()
        return FORMS[kind].hear(payload, hints.filled, hints.carried, hints.left)

    def _kind(self, wire: MacMessage[Any], hints: Hints) -> Kind:
        if hints.kind is not UNSET:
            says = _BROADCAST if hints.kind is Kind.BROADCAST else FORMS[hints.kind].says
            if BY_TYPE[says] is not type(wire):
                raise ValueError(f"{hints.kind} is not said by {type(wire).__name__}")
            return hints.kind
        return _natural(type(wire), wire.payload)

    def _hear_broadcast(self, payload: Raw, hints: Hints) -> Broadcast:
        members = msgspec.json.decode(payload, type=dict[str, Raw])
        event = msgspec.json.decode(members.pop("event"), type=str)
        said = members.pop("message", None)
        message: Maybe[str] = UNSET
        if said is not None and "/payload/message" not in hints.filled:
            message = msgspec.json.decode(said, type=str)
        data: Maybe[Raw] = freeze(members) if members else UNSET
        if hints.left is not UNSET:
            data = msgspec.json.decode(hints.left, type=dict[str, Raw])["data"]
        return Broadcast(event, message, data)

    # The extension and other particulars --------------------------------------------------------

    def detach(self, wire: MacMessage[Any]) -> tuple[MacMessage[Any], Extension | UnsetType]:
        metadata = wire.metadata
        if metadata is UNSET or metadata.x_agentcanvas is UNSET:
            return wire, UNSET
        rest = msgspec.structs.replace(metadata, x_agentcanvas=UNSET)
        plain = msgspec.structs.replace(wire, metadata=UNSET if rest == _NO_METADATA else rest)
        return plain, metadata.x_agentcanvas

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

    def is_consistent(self, wire: MacMessage[Any]) -> bool:
        payload = wire.payload
        if payload.__class__ is TaskRequestPayload:
            wants = payload.requirements
            return (
                (memoryview(payload.input)[0] == _QUOTE or is_sound_object(payload.input))
                and (wants is UNSET or is_sound_object(wants))
                and wire.encrypted is not True
            )
        is_string = is_text(payload) if payload.__class__ is Raw else payload.__class__ is str
        return is_string is (wire.encrypted is True)

    def inconsistency(self, wire: MacMessage[Any]) -> Breach:
        wanted = (
            "a base64 string because encrypted is true"
            if wire.encrypted is True
            else "an object; a string needs encrypted: true"
        )
        return Breach(Rule.SEALED, "/payload", f"Wrong type for payload: expected {wanted}")

    def leaves_open(self, pointer: str) -> bool:
        return pointer.startswith("/metadata/") and not pointer.startswith(f"/metadata/{KEY}/")


_NO_METADATA = MacMetadata()
_TASK_ID = "/payload/task_id"
_read_header = msgspec.json.Decoder(MacHeader).decode


def _natural(message: type[MacMessage[Any]], payload: Any) -> Kind:
    """What a message is for, by its visible form alone (C6)."""
    if payload.__class__ is StatusResponsePayload and payload.query_id is UNSET:
        return Kind.TASK_PROGRESS
    return _NATURAL[message]
