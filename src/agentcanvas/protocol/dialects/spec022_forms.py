"""What each kind is called in SPEC-022, and which field says what (W2)."""

from __future__ import annotations

from typing import TypeGuard

from agentcanvas.protocol.dialects.spec022_wire import AssignmentPriority, CompletionStatus
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
from agentcanvas.protocol.mapping import NOTHING, UNKNOWN, Form, Row, from_text, same, text_of
from agentcanvas.protocol.priorities import PriorityWord, word_value
from agentcanvas.protocol.reviews import Feedback, FeedbackType, ReviewRequest, ReviewResult
from agentcanvas.protocol.values import is_text

_NO_CONTEXT = TaskContext(specs=(), reference_files=())
_NO_CONSTRAINTS = TaskConstraints(scope=(), testing_required=False, must_not_break=())
_NO_CHANGES = Changes(files_created=(), files_modified=(), files_deleted=())
_NO_SELF_REVIEW = SelfReview(tests_run=False, tests_passed=False, type_check_passed=False)

TO_PRIORITY = {
    PriorityWord.LOW: AssignmentPriority.LOW,
    PriorityWord.MEDIUM: AssignmentPriority.MEDIUM,
    PriorityWord.HIGH: AssignmentPriority.HIGH,
    PriorityWord.CRITICAL: AssignmentPriority.HIGH,
}
FROM_PRIORITY = {word: word_value(PriorityWord(word)) for word in AssignmentPriority}

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
        Row("task_id", "task_id", UNKNOWN),
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
            Row("task_id", "task.task_id", UNKNOWN),
            Row("input", "task.task_description", UNKNOWN, text_of, from_text, exact=is_text),
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
            Row("task_id", "task_id", UNKNOWN),
            Row("progress", "progress_percent", 0),
            Row("current_step", "current_step", UNKNOWN),
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
            Row("target_id", "target_id", UNKNOWN),
            Row("reason", "reason", UNKNOWN),
            Row("cleanup_required", "cleanup_required", fill=False),
        ),
        _form(Kind.REVIEW_REQUEST, "review_request", *_fields(*ReviewRequest.__struct_fields__)),
        _form(Kind.REVIEW_RESULT, "review_result", *_fields(*ReviewResult.__struct_fields__)),
        _form(Kind.FEEDBACK, "feedback", *_fields(*Feedback.__struct_fields__)),
        _form(Kind.STATUS_QUERY, "status_query", *_fields("task_id", "agent_id")),
        _form(
            Kind.STATUS_RESPONSE,
            "status_response",
            Row("status", "status", UNKNOWN),
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
SEALED = Form(
    "feedback",
    Sealed,
    _feedback(FeedbackType.GUIDANCE, Row("", "subject", "encrypted"), Row("ciphertext", "content")),
)
