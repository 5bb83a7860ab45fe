"""The canonical kinds of message and what each one says.

A body is the union of what the dialects can say about its kind. Where one dialect's payload is
already that union (SPEC-022's reviews, MAC's heartbeat) the body *is* that payload type. Headers
live in ``envelope``; how a dialect spells a body lives in ``dialects``.
"""

from __future__ import annotations

from types import MappingProxyType

from msgspec import UNSET

from agentcanvas.errors import ErrorType
from agentcanvas.protocol.reviews import Feedback, ReviewRequest, ReviewResult
from agentcanvas.protocol.values import (
    Count,
    Fraction,
    Maybe,
    NotNegative,
    Ordinal,
    Percent,
    Raw,
    Value,
    Wanted,
    Word,
)


class Kind(Word):
    """What a message is for, whatever the dialect."""

    TASK_ASSIGN = "task.assign"
    TASK_ACCEPT = "task.accept"
    TASK_REJECT = "task.reject"
    TASK_PROGRESS = "task.progress"
    TASK_COMPLETE = "task.complete"
    TASK_FAIL = "task.fail"
    TASK_CANCEL = "task.cancel"
    REVIEW_REQUEST = "review.request"
    REVIEW_RESULT = "review.result"
    FEEDBACK = "feedback"
    STATUS_QUERY = "status.query"
    STATUS_RESPONSE = "status.response"
    HEARTBEAT = "heartbeat"
    BROADCAST = "broadcast"
    ACK = "ack"
    ERROR = "error"


ANSWERS = frozenset(
    {
        Kind.TASK_ACCEPT,
        Kind.TASK_REJECT,
        Kind.TASK_PROGRESS,
        Kind.TASK_COMPLETE,
        Kind.TASK_FAIL,
        Kind.REVIEW_RESULT,
        Kind.STATUS_RESPONSE,
        Kind.ACK,
        Kind.ERROR,
    }
)
"""What goes back to whoever asked."""


# --- tasks -------------------------------------------------------------------------------------


class Action(Word):
    """The verbs of an ACP command."""

    ANALYZE = "ANALYZE"
    DESIGN = "DESIGN"
    IMPLEMENT = "IMPLEMENT"
    VALIDATE = "VALIDATE"
    OPTIMIZE = "OPTIMIZE"
    REFACTOR = "REFACTOR"
    DOCUMENT = "DOCUMENT"
    TEST = "TEST"
    EXECUTE = "EXECUTE"


class ContextFile(Value, frozen=True):
    """A file worth reading before the work starts."""

    path: str
    reason: str
    sections: Maybe[tuple[str, ...]] = UNSET


class AttemptSummary(Value, frozen=True):
    """What an earlier try at the same task came to."""

    attempt_number: Ordinal
    outcome: str
    feedback: str


class TaskContext(Value, frozen=True):
    """What a worker may read."""

    specs: tuple[ContextFile, ...]
    reference_files: tuple[ContextFile, ...]
    previous_attempts: Maybe[tuple[AttemptSummary, ...]] = UNSET


class TaskConstraints(Value, frozen=True):
    """What a worker must keep to; ``scope`` holds the globs it may change (S8)."""

    scope: tuple[str, ...]
    testing_required: bool
    must_not_break: Wanted[tuple[str, ...]] = UNSET
    style_guide: Maybe[str] = UNSET


class TaskAssign(Value, frozen=True):
    """Work for one agent. ``input`` is the request itself: text, or any JSON."""

    task_id: Maybe[str] = UNSET
    task_type: Maybe[str] = UNSET
    input: Maybe[Raw] = UNSET
    requirements: Maybe[Raw] = UNSET
    callback_url: Maybe[str] = UNSET
    context: Maybe[TaskContext] = UNSET
    constraints: Maybe[TaskConstraints] = UNSET
    acceptance_criteria: Maybe[tuple[str, ...]] = UNSET
    deadline: Maybe[str] = UNSET
    max_iterations: Maybe[Ordinal] = UNSET
    action: Maybe[Action] = UNSET


class TaskAccept(Value, frozen=True):
    """The agent takes the task; its estimate is in seconds."""

    task_id: Maybe[str] = UNSET
    estimated_duration: Maybe[NotNegative] = UNSET
    accepted_at: Maybe[str] = UNSET


class RejectReason(Word):
    """Why an agent does not take a task."""

    CAPABILITY_MISMATCH = "CAPABILITY_MISMATCH"
    RESOURCE_UNAVAILABLE = "RESOURCE_UNAVAILABLE"
    OVERLOADED = "OVERLOADED"
    MAINTENANCE = "MAINTENANCE"
    INVALID_REQUEST = "INVALID_REQUEST"


class TaskReject(Value, frozen=True):
    """The agent does not take the task, and may say who would."""

    task_id: str
    reason: RejectReason
    message: Wanted[str] = UNSET
    suggested_agents: Wanted[tuple[str, ...]] = UNSET


class TaskProgress(Value, frozen=True):
    """How far a task is, sent unasked. ``remaining`` is seconds, or free text as it was said."""

    task_id: Maybe[str] = UNSET
    status: Maybe[str] = UNSET
    progress: Maybe[Percent] = UNSET
    current_step: Maybe[str] = UNSET
    files_modified_so_far: Maybe[tuple[str, ...]] = UNSET
    remaining: Maybe[NotNegative | str] = UNSET
    blockers: Maybe[tuple[str, ...]] = UNSET


class Outcome(Word):
    """How a task ended."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    TIMEOUT = "timeout"


class ChangeType(Word):
    """What happened to a file."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class FileChange(Value, frozen=True):
    """One file a task touched."""

    path: str
    change_type: ChangeType
    lines_added: Maybe[Count] = UNSET
    lines_removed: Maybe[Count] = UNSET
    description: Maybe[str] = UNSET


class Changes(Value, frozen=True):
    """All files a task touched."""

    files_created: tuple[FileChange, ...]
    files_modified: tuple[FileChange, ...]
    files_deleted: tuple[str, ...]


class SelfReview(Value, frozen=True):
    """What the worker says it checked; evidence is gathered apart from it."""

    tests_run: bool
    tests_passed: bool
    type_check_passed: bool
    known_issues: Maybe[tuple[str, ...]] = UNSET


class Artifact(Value, frozen=True):
    """Something a task produced."""

    id: str
    type: str
    path: str
    description: str


class TaskResult(Value, frozen=True):
    """The end of a task, good or bad; the kind says which message it was."""

    task_id: Maybe[str] = UNSET
    status: Maybe[Outcome] = UNSET
    output: Maybe[Raw] = UNSET
    summary: Maybe[str] = UNSET
    artifacts: Maybe[tuple[Artifact, ...]] = UNSET
    duration_ms: Maybe[NotNegative] = UNSET
    completed_at: Maybe[str] = UNSET
    tokens_used: Maybe[Count] = UNSET
    error_code: Maybe[str] = UNSET
    error_message: Maybe[str] = UNSET
    error_details: Maybe[Raw] = UNSET
    retry_possible: Maybe[bool] = UNSET
    changes: Maybe[Changes] = UNSET
    self_review: Maybe[SelfReview] = UNSET
    implementation_notes: Maybe[str] = UNSET
    blockers: Maybe[tuple[str, ...]] = UNSET
    suggestions: Maybe[tuple[str, ...]] = UNSET


class CancelScope(Word):
    """How much an abort ends."""

    TASK = "task"
    SESSION = "session"


class TaskCancel(Value, frozen=True):
    """Stop a task or a session; ``result`` is what was there when it stopped."""

    scope: Maybe[CancelScope] = UNSET
    target_id: Maybe[str] = UNSET
    reason: Maybe[str] = UNSET
    cleanup_required: Maybe[bool] = UNSET
    result: Maybe[TaskResult] = UNSET


# --- state of the world ------------------------------------------------------------------------


class StatusQuery(Value, frozen=True):
    """How is this task, or this agent?"""

    query_type: Maybe[str] = UNSET
    task_id: Maybe[str] = UNSET
    agent_id: Maybe[str] = UNSET


class StatusResponse(Value, frozen=True):
    """The answer to a query."""

    query_id: Maybe[str] = UNSET
    task_id: Maybe[str] = UNSET
    agent_id: Maybe[str] = UNSET
    status: Maybe[str] = UNSET
    progress: Maybe[Percent] = UNSET
    remaining: Maybe[NotNegative | str] = UNSET


class AgentStatus(Word):
    """What an agent says of itself."""

    ACTIVE = "ACTIVE"
    IDLE = "IDLE"
    BUSY = "BUSY"
    MAINTENANCE = "MAINTENANCE"
    ERROR = "ERROR"


class Heartbeat(Value, frozen=True):
    """An agent is alive."""

    status: AgentStatus
    load: Wanted[Fraction] = UNSET
    tasks_running: Wanted[Count] = UNSET
    tasks_queued: Wanted[Count] = UNSET
    capabilities: Wanted[tuple[str, ...]] = UNSET


class Broadcast(Value, frozen=True):
    """News for everybody; ``data`` holds whatever else the event brings."""

    event: str
    message: Maybe[str] = UNSET
    data: Maybe[Raw] = UNSET


class Ack(Value, frozen=True):
    """Received."""


class ErrorSeverity(Word):
    """How loudly an error has to be handled (H9)."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class Error(Value, frozen=True):
    """Something went wrong, said to whom it concerns."""

    error_type: ErrorType
    error_code: str
    error_message: str
    original_message_id: Wanted[str] = UNSET
    severity: Wanted[ErrorSeverity] = UNSET


class Sealed(Value, frozen=True):
    """A payload only its receiver can read; carried whole, never translated (C8)."""

    ciphertext: str


Body = (
    TaskAssign
    | TaskAccept
    | TaskReject
    | TaskProgress
    | TaskResult
    | TaskCancel
    | ReviewRequest
    | ReviewResult
    | Feedback
    | StatusQuery
    | StatusResponse
    | Heartbeat
    | Broadcast
    | Ack
    | Error
    | Sealed
)

BODY_TYPES: MappingProxyType[Kind, type[Body]] = MappingProxyType(
    {
        Kind.TASK_ASSIGN: TaskAssign,
        Kind.TASK_ACCEPT: TaskAccept,
        Kind.TASK_REJECT: TaskReject,
        Kind.TASK_PROGRESS: TaskProgress,
        Kind.TASK_COMPLETE: TaskResult,
        Kind.TASK_FAIL: TaskResult,
        Kind.TASK_CANCEL: TaskCancel,
        Kind.REVIEW_REQUEST: ReviewRequest,
        Kind.REVIEW_RESULT: ReviewResult,
        Kind.FEEDBACK: Feedback,
        Kind.STATUS_QUERY: StatusQuery,
        Kind.STATUS_RESPONSE: StatusResponse,
        Kind.HEARTBEAT: Heartbeat,
        Kind.BROADCAST: Broadcast,
        Kind.ACK: Ack,
        Kind.ERROR: Error,
    }
)
