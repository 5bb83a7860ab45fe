"""What each kind is called in MAC, and which field says what (W1)."""

from __future__ import annotations

from agentcanvas.errors import ErrorType
from agentcanvas.protocol.dialects.mac_wire import MacStatus
from agentcanvas.protocol.kinds import (
    BODY_TYPES,
    AgentStatus,
    CancelScope,
    ErrorSeverity,
    Kind,
    Outcome,
)
from agentcanvas.protocol.mapping import (
    EMPTY,
    TIME,
    UNKNOWN,
    Form,
    Row,
    number_or_unset,
    object_or_unset,
    same,
    text_or_object,
    to_ms,
    to_seconds,
)
from agentcanvas.protocol.values import freeze

_TO_STATUS = {
    Outcome.SUCCESS: MacStatus.SUCCESS,
    Outcome.PARTIAL: MacStatus.PARTIAL,
    Outcome.FAILED: MacStatus.FAILED,
    Outcome.TIMEOUT: MacStatus.TIMEOUT,
}
_FROM_STATUS = {mac: outcome for outcome, mac in _TO_STATUS.items()}


def _form(kind: Kind, says: str, *rows: Row, slot: str | None = None) -> tuple[Kind, Form]:
    return kind, Form(says, BODY_TYPES[kind], rows, slot=slot)


def _task_id(fill: str = UNKNOWN, field: str = "task_id") -> Row:
    return Row(field, "task_id", fill)


def _remaining(fill: object) -> Row:
    return Row("remaining", "estimated_remaining", fill, number_or_unset, same)


FORMS: dict[Kind, Form] = dict(
    [
        _form(
            Kind.TASK_ASSIGN,
            "TASK_REQUEST",
            _task_id(),
            Row("task_type", "task_type", UNKNOWN),
            Row("input", "input", freeze(""), text_or_object, same),
            Row("callback_url", "callback_url"),
            Row("requirements", "requirements", down=object_or_unset, up=same),
            slot="requirements",
        ),
        _form(
            Kind.TASK_ACCEPT,
            "TASK_ACCEPT",
            _task_id(),
            Row("estimated_duration", "estimated_duration", 0),
            Row("accepted_at", "accepted_at", TIME),
        ),
        _form(
            Kind.TASK_REJECT,
            "TASK_REJECT",
            _task_id(),
            Row("reason", "reason"),
            Row("message", "message", ""),
            Row("suggested_agents", "suggested_agents", ()),
        ),
        _form(
            Kind.TASK_PROGRESS,
            "STATUS_RESPONSE",
            Row("task_id", "task_id"),
            Row("status", "status", "RUNNING"),
            Row("progress", "progress", 0),
            _remaining(0),
        ),
        _form(
            Kind.TASK_COMPLETE,
            "TASK_COMPLETE",
            _task_id(),
            Row(
                "status",
                "status",
                MacStatus.SUCCESS,
                _TO_STATUS.__getitem__,
                _FROM_STATUS.__getitem__,
            ),
            Row("duration_ms", "duration", 0, to_seconds, to_ms, lossy=True),
            Row("completed_at", "completed_at", TIME),
            Row("output", "output", EMPTY),
            slot="output",
        ),
        _form(
            Kind.TASK_FAIL,
            "TASK_FAILED",
            _task_id(),
            Row("error_code", "error_code", "EXECUTION_ERROR"),
            Row("error_message", "error_message", UNKNOWN),
            Row("retry_possible", "retry_possible", fill=False),
            Row("error_details", "error_details", EMPTY),
            slot="error_details",
        ),
        _form(
            Kind.TASK_CANCEL,
            "TASK_CANCEL",
            Row("scope", "scope", CancelScope.TASK),
            Row("target_id", "target_id", UNKNOWN),
            Row("reason", "reason", UNKNOWN),
            Row("cleanup_required", "cleanup_required", fill=False),
        ),
        _form(
            Kind.REVIEW_REQUEST,
            "TASK_REQUEST",
            _task_id(),
            Row("", "task_type", "review"),
            Row("", "input"),
            slot="input",
        ),
        _form(
            Kind.REVIEW_RESULT,
            "TASK_COMPLETE",
            _task_id(),
            Row("", "status", MacStatus.SUCCESS),
            Row("", "duration", 0),
            Row("", "completed_at", TIME),
            Row("", "output"),
            slot="output",
        ),
        _form(
            Kind.FEEDBACK,
            "STATUS_RESPONSE",
            Row("related_task_id", "task_id"),
            Row("", "status", "FEEDBACK"),
            Row("", "progress", 0),
            Row("", "estimated_remaining", 0),
        ),
        _form(
            Kind.STATUS_QUERY,
            "STATUS_QUERY",
            Row("task_id", "task_id"),
            Row("query_type", "query_type", "TASK_STATUS"),
        ),
        _form(
            Kind.STATUS_RESPONSE,
            "STATUS_RESPONSE",
            Row("query_id", "query_id"),
            Row("task_id", "task_id"),
            Row("status", "status", UNKNOWN),
            Row("progress", "progress", 0),
            _remaining(0),
        ),
        _form(
            Kind.HEARTBEAT,
            "HEARTBEAT",
            Row("status", "status", AgentStatus.ACTIVE),
            Row("load", "load", 0),
            Row("tasks_running", "tasks_running", 0),
            Row("tasks_queued", "tasks_queued", 0),
            Row("capabilities", "capabilities", ()),
        ),
        _form(
            Kind.ACK,
            "STATUS_RESPONSE",
            Row("", "status", "ACKNOWLEDGED"),
            Row("", "progress", 0),
            Row("", "estimated_remaining", 0),
        ),
        _form(
            Kind.ERROR,
            "ERROR",
            Row("error_type", "error_type", ErrorType.EXECUTION),
            Row("error_code", "error_code", UNKNOWN),
            Row("error_message", "error_message", UNKNOWN),
            Row("original_message_id", "original_message_id", UNKNOWN),
            Row("severity", "severity", ErrorSeverity.ERROR),
        ),
    ]
)
