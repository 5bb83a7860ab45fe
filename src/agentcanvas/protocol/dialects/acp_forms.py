"""What each kind is called in ACP, or how it travels there, and which field says what (W3)."""

from __future__ import annotations

from agentcanvas.protocol.dialects.acp_wire import AcpStatus
from agentcanvas.protocol.kinds import (
    BODY_TYPES,
    Action,
    Body,
    Kind,
    Outcome,
    Sealed,
    TaskAssign,
    TaskResult,
)
from agentcanvas.protocol.mapping import EMPTY, UNKNOWN, Form, Row, object_or_unset, same

COMMAND = "AgentCommand"
RESPONSE = "AgentResponse"
_PARTS = ("execution", "error")


def _command(kind: Kind, action: Action) -> tuple[Kind, Form]:
    """A kind without a place of its own in ACP: its body is the command's parameters."""
    return kind, _carrying(BODY_TYPES[kind], action)


def _carrying(body: type[Body], action: Action) -> Form:
    rows = (Row("", "action", action), Row("", "parameters", EMPTY))
    return Form(COMMAND, body, rows, slot="parameters", prefix="")


def _response(kind: Kind, status: AcpStatus, *rows: Row) -> tuple[Kind, Form]:
    return kind, Form(
        RESPONSE,
        BODY_TYPES[kind],
        (Row("", "status", status), *rows, Row("", "results.data")),
        slot="results.data",
        parts=_PARTS,
        prefix="",
    )


def _failure(code: Row, message: Row) -> tuple[Row, ...]:
    return code, message, Row("", "error.recoverable", fill=False)


_RESULT_ROWS = (
    Row("artifacts", "results.artifacts"),
    Row("summary", "results.summary"),
    Row("duration_ms", "execution.duration", 0),
    Row("tokens_used", "execution.tokens_used"),
    Row("error_code", "error.code", UNKNOWN),
    Row("error_message", "error.message", ""),
    Row("retry_possible", "error.recoverable", fill=False),
    Row("output", "results.data"),
)
_TO_STATUS = {outcome: AcpStatus(outcome.value) for outcome in Outcome}
_FROM_STATUS = {acp: outcome for outcome, acp in _TO_STATUS.items()}


def _result(kind: Kind, status: AcpStatus) -> tuple[Kind, Form]:
    ended = Row("status", "status", status, _TO_STATUS.__getitem__, _FROM_STATUS.__getitem__)
    rows = (ended, *_RESULT_ROWS)
    return kind, Form(RESPONSE, TaskResult, rows, slot="results.data", parts=_PARTS, prefix="")


def _assignment() -> tuple[Kind, Form]:
    rows = (
        Row("action", "action", Action.EXECUTE),
        Row("input", "parameters", EMPTY, object_or_unset, same),
    )
    return Kind.TASK_ASSIGN, Form(
        COMMAND, TaskAssign, rows, slot="parameters", slot_whole=True, prefix=""
    )


FORMS: dict[Kind, Form] = dict(
    [
        _assignment(),
        _command(Kind.TASK_ACCEPT, Action.EXECUTE),
        _response(
            Kind.TASK_REJECT,
            AcpStatus.FAILED,
            *_failure(Row("reason", "error.code"), Row("message", "error.message", "")),
        ),
        _command(Kind.TASK_PROGRESS, Action.EXECUTE),
        _result(Kind.TASK_COMPLETE, AcpStatus.SUCCESS),
        _result(Kind.TASK_FAIL, AcpStatus.FAILED),
        _command(Kind.TASK_CANCEL, Action.EXECUTE),
        _command(Kind.REVIEW_REQUEST, Action.VALIDATE),
        _response(Kind.REVIEW_RESULT, AcpStatus.SUCCESS, Row("summary", "results.summary")),
        _command(Kind.FEEDBACK, Action.EXECUTE),
        _command(Kind.STATUS_QUERY, Action.ANALYZE),
        _response(Kind.STATUS_RESPONSE, AcpStatus.SUCCESS),
        _command(Kind.HEARTBEAT, Action.EXECUTE),
        _command(Kind.BROADCAST, Action.EXECUTE),
        _command(Kind.ACK, Action.EXECUTE),
        _response(
            Kind.ERROR,
            AcpStatus.FAILED,
            *_failure(Row("error_code", "error.code"), Row("error_message", "error.message")),
        ),
    ]
)
SEALED = _carrying(Sealed, Action.EXECUTE)
CANCELLED = Form(
    RESPONSE,
    TaskResult,
    (Row("", "status", AcpStatus.CANCELLED), *_RESULT_ROWS),
    parts=_PARTS,
    prefix="",
)
"""A response ``cancelled``: the envelope says task.cancel, its result is in the body."""
