"""ACP, the agent communication protocol v2.0: commands and responses (W3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.protocol.codec import Codec, Hints
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects.acp_forms import CANCELLED, COMMAND, FORMS, RESPONSE, SEALED
from agentcanvas.protocol.dialects.acp_wire import (
    AcpMessage,
    AcpRetryPolicy,
    AcpStatus,
    AgentCommand,
    AgentResponse,
    CommandContext,
    CommandSecurity,
    Execution,
    Failure,
    Results,
)
from agentcanvas.protocol.envelope import AgentRef, Envelope, Fragment, RetryPolicy, Security
from agentcanvas.protocol.extension import Extension, Held, extension_of, more_than_id
from agentcanvas.protocol.kinds import (
    Body,
    Kind,
    Sealed,
    TaskCancel,
    TaskResult,
)
from agentcanvas.protocol.mapping import EMPTY, UNKNOWN, Form, Shown
from agentcanvas.protocol.priorities import PriorityWord, to_word, word_value
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.values import (
    Maybe,
    Raw,
)


class Acp(Codec[AcpMessage]):
    """The ACP dialect."""

    name: ClassVar[DialectName] = DialectName.ACP
    id_field: ClassVar[str] = "id"

    def make_reader(self) -> Callable[[bytes], AcpMessage]:
        # msgspec tells struct types apart by a tag; ACP has none, so look for the telling fields.
        return _read_either

    # Envelope to wire ---------------------------------------------------------------------------

    def render(self, envelope: Envelope) -> AcpMessage:
        form, body = self._form(envelope)
        fill = envelope.origin != self.name
        shown = form.show(body, fill, envelope.time)
        if form.says == COMMAND:
            return self._render_command(envelope, shown)
        return self._render_response(envelope, shown)

    def _form(self, envelope: Envelope) -> tuple[Form, Any]:
        body = envelope.body
        if isinstance(body, Sealed):
            return SEALED, body
        if envelope.origin == self.name and _is_cancelled_response(body):
            return CANCELLED, TaskResult() if body.result is UNSET else body.result
        return FORMS[envelope.kind], body

    def _render_command(self, envelope: Envelope, shown: Shown) -> AcpMessage:
        priority = envelope.priority
        if priority is UNSET:
            shown.filled.append("/priority")
            word = PriorityWord.MEDIUM
        else:
            word = to_word(priority)
            if word_value(word) == priority:
                priority = UNSET
        if envelope.recipient is UNSET:
            shown.filled.append("/to")
            recipient = UNKNOWN
        else:
            recipient = envelope.recipient.id
        retry = envelope.retry
        context = CommandContext(
            correlation_id=envelope.correlation_id,
            timeout=envelope.timeout_ms,
            retry_policy=UNSET
            if retry is UNSET
            else AcpRetryPolicy(retry.max_attempts, retry.backoff_ms),
        )
        security = envelope.security
        held = Held(
            sender=more_than_id(envelope.sender),
            recipient=more_than_id(envelope.recipient),
            session=envelope.session,
            sequence=envelope.sequence,
            priority=priority,
            reply_to=envelope.reply_to,
            trace_level=envelope.trace_level,
            parent_task_id=envelope.parent_task_id,
            signature=envelope.signature,
            encrypted=envelope.encrypted,
            encryption_algorithm=envelope.encryption_algorithm,
        )
        return AgentCommand(
            id=envelope.id,
            timestamp=envelope.time,
            version="2.0",
            sender=envelope.sender.id,
            recipient=recipient,
            priority=word,
            context=context if context != _NO_CONTEXT else UNSET,
            security=UNSET
            if security is UNSET
            else CommandSecurity(security.permissions, security.require_approval),
            x_agentcanvas=extension_of(
                envelope, held, shown, dialect=self.name, natural=Kind.TASK_ASSIGN
            ),
            **shown.values,
        )

    def _render_response(self, envelope: Envelope, shown: Shown) -> AcpMessage:
        parts: dict[str, dict[str, Any]] = {"results": {}, "execution": {}, "error": {}}
        for name, value in shown.values.items():
            part, _, field = name.partition(".")
            if field and value is not UNSET:
                parts[part][field] = value
        command_id = envelope.reply_to
        if command_id is UNSET:  # a command that names no task is known by its own id elsewhere
            command_id = envelope.task_id or UNKNOWN
            shown.filled.append("/commandId")
        held = Held(
            sender=more_than_id(envelope.sender),
            recipient=envelope.recipient,
            session=envelope.session,
            sequence=envelope.sequence,
            priority=envelope.priority,
            correlation_id=envelope.correlation_id,
            timeout_ms=envelope.timeout_ms,
            retry=envelope.retry,
            security=envelope.security,
            trace_level=envelope.trace_level,
            parent_task_id=envelope.parent_task_id,
            signature=envelope.signature,
            encrypted=envelope.encrypted,
            encryption_algorithm=envelope.encryption_algorithm,
        )
        return AgentResponse(
            id=envelope.id,
            command_id=command_id,
            timestamp=envelope.time,
            version="2.0",
            sender=envelope.sender.id,
            status=shown.values["status"],
            results=Results(**parts["results"]),
            execution=Execution(**parts["execution"]) if parts["execution"] else UNSET,
            error=Failure(**parts["error"]) if parts["error"] else UNSET,
            x_agentcanvas=extension_of(
                envelope,
                held,
                shown,
                dialect=self.name,
                natural=_kind_of_ending(shown.values["status"]),
            ),
        )

    # Wire to envelope ---------------------------------------------------------------------------

    def lift(self, wire: AcpMessage, hints: Hints) -> Envelope:
        if isinstance(wire, AgentCommand):
            return self._lift_command(wire, hints)
        return self._lift_response(wire, hints)

    def _lift_command(self, wire: AgentCommand, hints: Hints) -> Envelope:
        filled = hints.filled
        kind = Kind.TASK_ASSIGN if hints.kind is UNSET else hints.kind
        form = SEALED if hints.sealed else FORMS[kind]
        _must_be(form, COMMAND, kind)
        body, fragments = form.hear(wire, filled, hints.carried, hints.left)
        context = wire.context
        if context is UNSET:
            context = _NO_CONTEXT
        elif context == _NO_CONTEXT:
            fragments += (Fragment("/context", EMPTY),)
        policy, security = context.retry_policy, wire.security
        return Envelope(
            id=wire.id,
            kind=kind,
            time=wire.timestamp,
            sender=AgentRef(wire.sender),
            recipient=UNSET if "/to" in filled else AgentRef(wire.recipient),
            body=body,
            origin=self.name,
            priority=UNSET if "/priority" in filled else word_value(wire.priority),
            correlation_id=context.correlation_id,
            timeout_ms=context.timeout,
            retry=UNSET if policy is UNSET else RetryPolicy(policy.max_attempts, policy.backoff_ms),
            security=UNSET
            if security is UNSET
            else Security(security.permissions, security.require_approval),
            encrypted=True if hints.sealed else UNSET,
            fragments=fragments + hints.unknown,
        )

    def _lift_response(self, wire: AgentResponse, hints: Hints) -> Envelope:
        filled = hints.filled
        if hints.kind is UNSET and wire.status is AcpStatus.CANCELLED:
            kind = Kind.TASK_CANCEL
            result, fragments = CANCELLED.hear(wire, filled, hints.carried, hints.left)
            assert isinstance(result, TaskResult)
            body: Body = TaskCancel() if result == TaskResult() else TaskCancel(result=result)
        else:
            kind = _kind_of_ending(wire.status) if hints.kind is UNSET else hints.kind
            form = FORMS[kind]
            _must_be(form, RESPONSE, kind)
            body, fragments = form.hear(wire, filled, hints.carried, hints.left)
        return Envelope(
            id=wire.id,
            kind=kind,
            time=wire.timestamp,
            sender=AgentRef(wire.sender),
            body=body,
            origin=self.name,
            reply_to=UNSET if "/commandId" in filled else wire.command_id,
            fragments=fragments + hints.unknown,
        )

    # The extension and other particulars --------------------------------------------------------

    def detach(self, wire: AcpMessage) -> tuple[AcpMessage, Extension | UnsetType]:
        extension = wire.x_agentcanvas
        if extension is UNSET:
            return wire, UNSET
        return msgspec.structs.replace(wire, x_agentcanvas=UNSET), extension

    def wire_type_of(self, value: dict[str, Any]) -> type[AcpMessage] | Breach:
        version = value.get("version")
        if isinstance(version, str) and version != "2.0":
            return Breach(Rule.MEMBER, "/version", f"Unknown version {version[:60]!r}; use '2.0'")
        return AgentResponse if _is_response(value.keys()) else AgentCommand


class _Marks(Struct):
    """The fields that tell a response from a command."""

    action: Maybe[Raw] = UNSET
    commandId: Maybe[Raw] = UNSET  # noqa: N815 - the wire's own name
    results: Maybe[Raw] = UNSET


_read_marks = msgspec.json.Decoder(_Marks).decode
_read_command = msgspec.json.Decoder(AgentCommand).decode
_read_response = msgspec.json.Decoder(AgentResponse).decode


def _read_either(data: bytes) -> AcpMessage:
    marks = _read_marks(data)
    if marks.action is UNSET and (marks.commandId is not UNSET or marks.results is not UNSET):
        return _read_response(data)
    return _read_command(data)


def _kind_of_ending(status: AcpStatus) -> Kind:
    if status is AcpStatus.CANCELLED:
        return Kind.TASK_CANCEL
    well = status is AcpStatus.SUCCESS or status is AcpStatus.PARTIAL
    return Kind.TASK_COMPLETE if well else Kind.TASK_FAIL


def _is_cancelled_response(body: Body) -> TypeGuard[TaskCancel]:
    """Only a command says what to cancel; a response was asked for, and has at most a result."""
    return isinstance(body, TaskCancel) and body == TaskCancel(result=body.result)


def _is_response(keys: Any) -> bool:
    return "action" not in keys and ("commandId" in keys or "results" in keys)


def _must_be(form: Form, type_: str, kind: Kind) -> None:
    if form.says != type_:
        raise ValueError(f"{kind} is not said by {type_}")


_NO_CONTEXT = CommandContext()
