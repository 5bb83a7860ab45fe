"""The canonical kinds of message and what each one says.

A body is the union of what the dialects can say about its kind. Where one dialect's payload is
already that union (SPEC-022's reviews, MAC's heartbeat) the body *is* that payload type. Headers
live in ``envelope``; how a dialect spells a body lives in ``dialects``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from agentcanvas.errors import ErrorType
from agentcanvas.protocol.values import (
    Fraction,
    Maybe,
    NotNegative,
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


Count = Annotated[int, Meta(ge=0)]
Ordinal = Annotated[int, Meta(ge=1)]


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


# --- reviews -----------------------------------------------------------------------------------


class FocusArea(Word):
    """What a reviewer is asked to look at."""

    SECURITY = "security"
    PERFORMANCE = "performance"
    STYLE = "style"
    LOGIC = "logic"
    ERROR_HANDLING = "error_handling"
    TEST_COVERAGE = "test_coverage"


class CustomCheck(Value, frozen=True):
    """A shell command that must end with the expected code."""

    name: str
    command: str
    expected_exit_code: int


class ReviewScope(Value, frozen=True):
    """Which files to look at, and how."""

    files: tuple[str, ...]
    focus_areas: tuple[FocusArea, ...]
    ignore_patterns: Maybe[tuple[str, ...]] = UNSET


class ReviewCriteria(Value, frozen=True):
    """What must pass before an approval."""

    must_pass_tests: bool
    must_pass_type_check: bool
    must_pass_lint: Maybe[bool] = UNSET
    custom_checks: Maybe[tuple[CustomCheck, ...]] = UNSET


class ReviewSummary(Value, frozen=True):
    """What an earlier review of the same task came to."""

    review_number: Ordinal
    verdict: str
    key_findings: tuple[str, ...]


class ReviewContext(Value, frozen=True):
    """What the work was meant to do."""

    task_description: str
    acceptance_criteria: tuple[str, ...]
    previous_reviews: Maybe[tuple[ReviewSummary, ...]] = UNSET


class ReviewRequest(Value, frozen=True):
    """Please judge this work."""

    review_id: str
    task_id: str
    scope: ReviewScope
    criteria: ReviewCriteria
    context: ReviewContext


class Verdict(Word):
    """A reviewer's word; inside they are apply, revise and reject."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    REJECTED = "rejected"


class Severity(Word):
    """How bad a finding is (R5)."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"
    SUGGESTION = "suggestion"


class FindingCategory(Word):
    """What a finding is about."""

    BUG = "bug"
    SECURITY = "security"
    PERFORMANCE = "performance"
    STYLE = "style"
    LOGIC = "logic"
    TEST = "test"


class Location(Value, frozen=True):
    """Where in the code."""

    file: str
    line_start: Maybe[Count] = UNSET
    line_end: Maybe[Count] = UNSET
    code_snippet: Maybe[str] = UNSET


class Finding(Value, frozen=True):
    """One thing a reviewer saw."""

    finding_id: str
    severity: Severity
    category: FindingCategory
    location: Location
    description: str
    rationale: Wanted[str] = UNSET
    suggestion: Maybe[str] = UNSET
    fixed_in_iteration: Maybe[Count] = UNSET


class VerificationResult(Value, frozen=True):
    """One check and what it printed."""

    passed: bool
    output: Maybe[str] = UNSET
    error: Maybe[str] = UNSET


NamedResults = Annotated[Raw, Meta(extra={"holds": dict[str, VerificationResult]})]


class Verification(Value, frozen=True):
    """What the reviewer ran."""

    tests: VerificationResult
    type_check: VerificationResult
    lint: Maybe[VerificationResult] = UNSET
    custom: Wanted[NamedResults] = UNSET

    def __post_init__(self) -> None:
        if self.custom is not UNSET:
            msgspec.json.decode(self.custom, type=dict[str, VerificationResult])

    def custom_results(self) -> dict[str, VerificationResult]:
        """The custom checks by name; empty when none were run."""
        if self.custom is UNSET:
            return {}
        return msgspec.json.decode(self.custom, type=dict[str, VerificationResult])


class ChangePriority(Word):
    """How firmly a change is asked for."""

    MUST_FIX = "must_fix"
    SHOULD_FIX = "should_fix"
    CONSIDER = "consider"


class RequiredChange(Value, frozen=True):
    """What has to change before an approval."""

    change_id: str
    priority: ChangePriority
    related_findings: tuple[str, ...]
    description: str


class ReviewResult(Value, frozen=True):
    """A reviewer's verdict with its reasons."""

    review_id: str
    task_id: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    verification: Verification
    summary: str
    required_changes: Maybe[tuple[RequiredChange, ...]] = UNSET
    commendations: Maybe[tuple[str, ...]] = UNSET


class FeedbackType(Word):
    """What a piece of feedback wants."""

    CLARIFICATION = "clarification"
    CORRECTION = "correction"
    GUIDANCE = "guidance"
    QUESTION = "question"


class Feedback(Value, frozen=True):
    """A remark or a question between agents."""

    feedback_type: FeedbackType
    subject: str
    content: str
    action_required: bool
    related_task_id: Maybe[str] = UNSET


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
