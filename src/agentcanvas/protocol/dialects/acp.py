"""ACP, the agent communication protocol v2.0: commands and responses (W3)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.protocol.codec import Codec, Hints, Lifted, Rendering
from agentcanvas.protocol.dialect import DialectName
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
from agentcanvas.protocol.extension import Extension, Held
from agentcanvas.protocol.kinds import (
    Action,
    Kind,
    Outcome,
    Sealed,
    TaskResult,
)
from agentcanvas.protocol.mapping import Form, Row, Shown, object_or_unset, same
from agentcanvas.protocol.priorities import PriorityWord, to_word, word_value
from agentcanvas.protocol.shape import Breach, Rule
from agentcanvas.protocol.values import (
    Maybe,
    Raw,
    freeze,
)

_COMMAND = "AgentCommand"
_RESPONSE = "AgentResponse"
_UNKNOWN = "unknown"
_EMPTY = freeze({})


def _command(action: Action) -> Form:
    """A kind without a place of its own in ACP: its body is the command's parameters."""
    return Form(
        says=_COMMAND,
        rows=(Row("", "action", action), Row("", "parameters", _EMPTY)),
        slot="parameters",
        prefix="",
    )


def _response(status: AcpStatus, *rows: Row) -> Form:
    return Form(
        says=_RESPONSE,
        rows=(Row("", "status", status), *rows, Row("", "results.data")),
        slot="results.data",
        prefix="",
    )


def _failure(code: Row, message: Row) -> tuple[Row, ...]:
    return code, message, Row("", "error.recoverable", fill=False)


_RESULT_ROWS = (
    Row("artifacts", "results.artifacts"),
    Row("summary", "results.summary"),
    Row("duration_ms", "execution.duration"),
    Row("tokens_used", "execution.tokens_used"),
    Row("error_code", "error.code"),
    Row("error_message", "error.message"),
    Row("retry_possible", "error.recoverable"),
    Row("output", "results.data"),
)
_TO_STATUS = {outcome: AcpStatus(outcome.value) for outcome in Outcome}
_FROM_STATUS = {acp: outcome for outcome, acp in _TO_STATUS.items()}


def _result(status: AcpStatus) -> Form:
    return Form(
        says=_RESPONSE,
        rows=(
            Row("status", "status", status, _TO_STATUS.__getitem__, _FROM_STATUS.get),
            *_RESULT_ROWS,
        ),
        slot="results.data",
        prefix="",
    )


FORMS: dict[Kind, Form] = {
    Kind.TASK_ASSIGN: Form(
        says=_COMMAND,
        rows=(
            Row("action", "action", Action.EXECUTE),
            Row("input", "parameters", _EMPTY, object_or_unset, same),
        ),
        slot="parameters",
        slot_whole=True,
        prefix="",
    ),
    Kind.TASK_ACCEPT: _command(Action.EXECUTE),
    Kind.TASK_REJECT: _response(
        AcpStatus.FAILED,
        *_failure(Row("reason", "error.code"), Row("message", "error.message", "")),
    ),
    Kind.TASK_PROGRESS: _command(Action.EXECUTE),
    Kind.TASK_COMPLETE: _result(AcpStatus.SUCCESS),
    Kind.TASK_FAIL: _result(AcpStatus.FAILED),
    Kind.TASK_CANCEL: _command(Action.EXECUTE),
    Kind.REVIEW_REQUEST: _command(Action.VALIDATE),
    Kind.REVIEW_RESULT: _response(AcpStatus.SUCCESS, Row("summary", "results.summary")),
    Kind.FEEDBACK: _command(Action.EXECUTE),
    Kind.STATUS_QUERY: _command(Action.ANALYZE),
    Kind.STATUS_RESPONSE: _response(AcpStatus.SUCCESS),
    Kind.HEARTBEAT: _command(Action.EXECUTE),
    Kind.BROADCAST: _command(Action.EXECUTE),
    Kind.ACK: _command(Action.EXECUTE),
    Kind.ERROR: _response(
        AcpStatus.FAILED,
        *_failure(Row("error_code", "error.code"), Row("error_message", "error.message")),
    ),
}
_SEALED = Form(
    says=_COMMAND,
    rows=(Row("", "action", Action.EXECUTE), Row("", "parameters", _EMPTY)),
    slot="parameters",
    prefix="",
)
_CANCELLED = Form(
    says=_RESPONSE,
    rows=(Row("", "status", AcpStatus.CANCELLED), *_RESULT_ROWS),
    prefix="",
)
"""A response ``cancelled``: the envelope says task.cancel, its result is in the body."""


class Acp(Codec[AcpMessage]):
    """The ACP dialect."""

    name: ClassVar[DialectName] = DialectName.ACP
    id_field: ClassVar[str] = "id"
    wire_types: ClassVar[Any] = AgentCommand
    # msgspec tells struct types apart by a tag and ACP has none, so a response has its own reader.

    def __init__(self) -> None:
        super().__init__()
        self._decoder = _EitherDecoder()  # type: ignore[assignment]  # same one method, two types

    # Envelope to wire ---------------------------------------------------------------------------

    def render(self, envelope: Envelope) -> Rendering[AcpMessage]:
        form, body = self._form(envelope)
        fill = envelope.origin != self.name
        shown = form.show(body, fill=fill, time=envelope.time)
        if form.says == _COMMAND:
            return self._render_command(envelope, shown)
        return self._render_response(envelope, shown, fill=fill)

    def _form(self, envelope: Envelope) -> tuple[Form, Any]:
        body = envelope.body
        if isinstance(body, Sealed):
            return _SEALED, body
        if envelope.kind is Kind.TASK_CANCEL and envelope.origin == self.name:
            result = getattr(body, "result", UNSET)
            return _CANCELLED, TaskResult() if result is UNSET else result
        return FORMS[envelope.kind], body

    def _render_command(self, envelope: Envelope, shown: Shown) -> Rendering[AcpMessage]:
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
            recipient = _UNKNOWN
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
        wire = AgentCommand(
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
            **shown.values,
        )
        held = Held(
            sender=_more_than_id(envelope.sender),
            recipient=_more_than_id(envelope.recipient),
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
        return Rendering(wire, held, shown)

    def _render_response(
        self, envelope: Envelope, shown: Shown, *, fill: bool
    ) -> Rendering[AcpMessage]:
        groups: dict[str, dict[str, Any]] = {"results": {}, "execution": {}, "error": {}}
        for name, value in shown.values.items():
            group, _, field = name.partition(".")
            if field:
                groups[group][field] = value
        if fill:
            _complete(groups, shown)
        command_id = envelope.reply_to
        if command_id is UNSET:
            command_id = _UNKNOWN
            shown.filled.append("/commandId")
        wire = AgentResponse(
            id=envelope.id,
            command_id=command_id,
            timestamp=envelope.time,
            version="2.0",
            sender=envelope.sender.id,
            status=shown.values["status"],
            results=Results(**groups["results"]),
            execution=Execution(**groups["execution"]) if groups["execution"] else UNSET,
            error=Failure(**groups["error"]) if groups["error"] else UNSET,
        )
        held = Held(
            sender=_more_than_id(envelope.sender),
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
        return Rendering(wire, held, shown)

    # Wire to envelope ---------------------------------------------------------------------------

    def lift(self, wire: AcpMessage, hints: Hints) -> Lifted:
        if isinstance(wire, AgentCommand):
            return self._lift_command(wire, hints)
        return self._lift_response(wire, hints)

    def _lift_command(self, wire: AgentCommand, hints: Hints) -> Lifted:
        header: dict[str, Any] = {
            "id": wire.id,
            "time": wire.timestamp,
            "sender": AgentRef(wire.sender),
        }
        if "/to" not in hints.filled:
            header["recipient"] = AgentRef(wire.recipient)
        if "/priority" not in hints.filled:
            header["priority"] = word_value(wire.priority)
        fragments: list[Fragment] = []
        context = wire.context
        if context is not UNSET:
            header["correlation_id"] = context.correlation_id
            header["timeout_ms"] = context.timeout
            if context.retry_policy is not UNSET:
                policy = context.retry_policy
                header["retry"] = RetryPolicy(policy.max_attempts, policy.backoff_ms)
            if context == _NO_CONTEXT:
                fragments.append(Fragment("/context", _EMPTY))
        if wire.security is not UNSET:
            security = wire.security
            header["security"] = Security(security.permissions, security.require_approval)
        kind = Kind.TASK_ASSIGN if hints.kind is UNSET else hints.kind
        form = _SEALED if hints.sealed else FORMS[kind]
        _must_be(form, _COMMAND, kind)
        read = {"action": wire.action, "parameters": wire.parameters}
        heard = form.hear(read, hints.filled, carried=hints.carried)
        carrier = wire.parameters if hints.carried else UNSET
        return Lifted(header, kind, heard.fields, carrier, (*fragments, *heard.fragments))

    def _lift_response(self, wire: AgentResponse, hints: Hints) -> Lifted:
        header: dict[str, Any] = {
            "id": wire.id,
            "time": wire.timestamp,
            "sender": AgentRef(wire.sender),
        }
        if "/commandId" not in hints.filled:
            header["reply_to"] = wire.command_id
        read: dict[str, Any] = {"status": wire.status}
        for group in ("results", "execution", "error"):
            part = getattr(wire, group)
            if part is not UNSET:
                read |= {f"{group}.{name}": getattr(part, name) for name in part.__struct_fields__}
        if hints.kind is UNSET and wire.status is AcpStatus.CANCELLED:
            heard = _CANCELLED.hear(read, hints.filled, carried=False)
            result = {"result": TaskResult(**heard.fields)} if heard.fields else {}
            return Lifted(header, Kind.TASK_CANCEL, result)
        kind = hints.kind
        if kind is UNSET:
            ended_well = wire.status in {AcpStatus.SUCCESS, AcpStatus.PARTIAL}
            kind = Kind.TASK_COMPLETE if ended_well else Kind.TASK_FAIL
        form = FORMS[kind]
        _must_be(form, _RESPONSE, kind)
        heard = form.hear(read, hints.filled, carried=hints.carried)
        carrier = wire.results.data if hints.carried else UNSET
        return Lifted(header, kind, heard.fields, carrier, tuple(heard.fragments))

    # The extension and other particulars --------------------------------------------------------

    def detach(self, wire: AcpMessage) -> tuple[AcpMessage, Extension | UnsetType]:
        extension = wire.x_agentcanvas
        if extension is UNSET:
            return wire, UNSET
        return msgspec.structs.replace(wire, x_agentcanvas=UNSET), extension

    def attach(self, wire: AcpMessage, extension: Extension) -> AcpMessage:
        return msgspec.structs.replace(wire, x_agentcanvas=extension)

    def wire_type_of(self, value: dict[str, Any]) -> type[AcpMessage] | Breach:
        if value.get("version", "2.0") != "2.0":
            return Breach(
                Rule.MEMBER, "/version", f"Unknown version {value['version']!r}; use '2.0'"
            )
        return AgentResponse if _is_response(value.keys()) else AgentCommand


class _Marks(Struct):
    """The fields that tell a response from a command."""

    action: Maybe[Raw] = UNSET
    commandId: Maybe[Raw] = UNSET  # noqa: N815 - the wire's own name
    results: Maybe[Raw] = UNSET


class _EitherDecoder:
    """Reads a command, or a response."""

    def __init__(self) -> None:
        self._marks = msgspec.json.Decoder(_Marks)
        self._command = msgspec.json.Decoder(AgentCommand)
        self._response = msgspec.json.Decoder(AgentResponse)

    def decode(self, data: bytes) -> AcpMessage:
        marks = self._marks.decode(data)
        if marks.action is UNSET and (marks.commandId is not UNSET or marks.results is not UNSET):
            return self._response.decode(data)
        return self._command.decode(data)


def _is_response(keys: Any) -> bool:
    return "action" not in keys and ("commandId" in keys or "results" in keys)


def _must_be(form: Form, type_: str, kind: Kind) -> None:
    if form.says != type_:
        raise ValueError(f"{kind} is not said by {type_}")


def _complete(groups: dict[str, dict[str, Any]], shown: Shown) -> None:
    """Fill up a group that has some of its required fields."""
    required: dict[str, dict[str, object]] = {
        "execution": {"duration": 0},
        "error": {"code": _UNKNOWN, "message": "", "recoverable": False},
    }
    for group, fields in required.items():
        for name, fill in fields.items():
            if groups[group] and name not in groups[group]:
                groups[group][name] = fill
                shown.filled.append(f"/{group}/{name}")


_NO_CONTEXT = CommandContext()


def _more_than_id(agent: AgentRef | UnsetType) -> AgentRef | UnsetType:
    if agent is UNSET or (agent.type is UNSET and agent.instance is UNSET):
        return UNSET
    return agent
