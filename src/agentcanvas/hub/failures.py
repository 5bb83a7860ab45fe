"""What went wrong with a request, and what usually helps: pure values and one table (H4).

Carrying the strategies out is ``recovery``'s work. An error that says of itself that it cannot be
recovered is never retried (H11), whatever the table says about its code.
"""

from __future__ import annotations

from types import MappingProxyType

from msgspec import UNSET, Struct

from agentcanvas import errors
from agentcanvas.errors import AgentCanvasError, ErrorCategory, ErrorType
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import (
    Error,
    ErrorSeverity,
    Kind,
    Outcome,
    RejectReason,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.values import Word

CANCELLED = "CANCELLED"
RESOURCE_LIMIT = "RESOURCE_LIMIT"


class FailureType(Word):
    """SPEC-022's words for how a task failed."""

    TIMEOUT = "timeout"
    EXCEPTION = "exception"
    SCOPE_VIOLATION = "scope_violation"
    RESOURCE_LIMIT = "resource_limit"


class SuggestedAction(Word):
    """SPEC-022's words for what to do about it."""

    RETRY = "retry"
    REASSIGN = "reassign"
    ABORT = "abort"
    MANUAL = "manual"


class Strategy(Word):
    """What helps, as far as anything does."""

    RETRY = "retry"
    RETRY_LONGER = "retry_longer"
    RETRY_ONCE = "retry_once"
    SPLIT = "split"
    GIVE_SCOPE = "give_scope"
    REASSIGN = "reassign"
    ABORT = "abort"


RETRIES = frozenset({Strategy.RETRY, Strategy.RETRY_LONGER, Strategy.RETRY_ONCE})

_ACTIONS = MappingProxyType(
    {
        Strategy.RETRY: SuggestedAction.RETRY,
        Strategy.RETRY_LONGER: SuggestedAction.RETRY,
        Strategy.RETRY_ONCE: SuggestedAction.RETRY,
        Strategy.SPLIT: SuggestedAction.MANUAL,
        Strategy.GIVE_SCOPE: SuggestedAction.MANUAL,
        Strategy.REASSIGN: SuggestedAction.REASSIGN,
        Strategy.ABORT: SuggestedAction.ABORT,
    }
)

_BY_CODE = MappingProxyType(
    {
        errors.DeadlineExceeded.code: (FailureType.TIMEOUT, Strategy.RETRY_LONGER),
        errors.ScopeViolation.code: (FailureType.SCOPE_VIOLATION, Strategy.GIVE_SCOPE),
        RESOURCE_LIMIT: (FailureType.RESOURCE_LIMIT, Strategy.SPLIT),
        CANCELLED: (FailureType.EXCEPTION, Strategy.ABORT),
        errors.CircuitOpen.code: (FailureType.RESOURCE_LIMIT, Strategy.REASSIGN),
        errors.AgentLost.code: (FailureType.RESOURCE_LIMIT, Strategy.REASSIGN),
        errors.Undeliverable.code: (FailureType.TIMEOUT, Strategy.REASSIGN),
        errors.AgentNotFound.code: (FailureType.RESOURCE_LIMIT, Strategy.REASSIGN),
        errors.Replaced.code: (FailureType.EXCEPTION, Strategy.ABORT),
    }
)
_BY_TYPE = MappingProxyType(
    {
        ErrorType.TIMEOUT: (FailureType.TIMEOUT, Strategy.RETRY_LONGER),
        ErrorType.EXECUTION: (FailureType.EXCEPTION, Strategy.RETRY_ONCE),
        ErrorType.RESOURCE: (FailureType.RESOURCE_LIMIT, Strategy.RETRY),
        ErrorType.PROTOCOL: (FailureType.EXCEPTION, Strategy.ABORT),
        ErrorType.VALIDATION: (FailureType.EXCEPTION, Strategy.ABORT),
    }
)


def _tree(root: type[AgentCanvasError]) -> dict[str, bool]:
    """Every code of ours, and whether it can be recovered."""
    found = {root.code: root.recoverable}
    for branch in root.__subclasses__():
        found = {**_tree(branch), **found}
    return found


_RECOVERABLE = MappingProxyType(_tree(AgentCanvasError))


class TaskExecutionError(Struct, frozen=True, kw_only=True):
    """How a task failed: SPEC-022's five fields, the code, and what helps."""

    task_id: str
    error_type: FailureType
    error_message: str
    recoverable: bool
    code: str
    strategy: Strategy
    suggested_agents: tuple[str, ...] = ()
    severity: ErrorSeverity = ErrorSeverity.ERROR

    @property
    def suggested_action(self) -> SuggestedAction:
        """SPEC-022's word for the strategy."""
        if self.strategy in RETRIES and not self.recoverable:
            return SuggestedAction.ABORT
        return _ACTIONS[self.strategy]

    @property
    def is_the_agents(self) -> bool:
        """Whether it tells against the recipient, not against what was asked (for breakers)."""
        return self.strategy not in (Strategy.ABORT, Strategy.GIVE_SCOPE, Strategy.SPLIT)

    @property
    def may_be_reassigned(self) -> bool:
        """Whether somebody else could do it as it was asked."""
        return self.is_the_agents


def failure_of(error: AgentCanvasError, asked: Envelope) -> TaskExecutionError:
    """Judge an exception that a request ended with."""
    type_ = error.error_type
    if error.category in (ErrorCategory.USER, ErrorCategory.PERMISSION):
        type_ = ErrorType.VALIDATION
    return _judged(asked, error.code, type_, str(error), recoverable=error.recoverable)


def failure_in(answer: Envelope, asked: Envelope) -> TaskExecutionError | None:
    """Judge a final answer; ``None`` if it is a good one."""
    body = answer.body
    if isinstance(body, TaskReject):
        return _rejection(asked, body)
    if isinstance(body, Error):
        recoverable = _RECOVERABLE.get(body.error_code, True)
        found = _judged(
            asked, body.error_code, body.error_type, body.error_message, recoverable=recoverable
        )
        return _with_severity(found, body.severity or ErrorSeverity.ERROR)
    if isinstance(body, TaskResult) and not _is_good(answer.kind, body):
        timed_out = body.status is Outcome.TIMEOUT
        code = body.error_code or (errors.DeadlineExceeded.code if timed_out else "")
        type_ = ErrorType.TIMEOUT if timed_out else ErrorType.EXECUTION
        said = body.error_message or body.summary or f"{asked.kind} failed"
        recoverable = body.retry_possible if body.retry_possible is not UNSET else True
        return _judged(asked, code, type_, said, recoverable=recoverable)
    return None


def _is_good(kind: Kind, body: TaskResult) -> bool:
    if kind is Kind.TASK_FAIL:
        return False
    return body.status not in (Outcome.FAILED, Outcome.TIMEOUT)


def _judged(
    asked: Envelope, code: str, type_: ErrorType, sentence: str, *, recoverable: bool
) -> TaskExecutionError:
    error_type, strategy = _BY_CODE.get(code) or _BY_TYPE[type_]
    return TaskExecutionError(
        task_id=asked.task_id or asked.id,
        error_type=error_type,
        error_message=sentence,
        recoverable=recoverable,
        code=code or type_.value,
        strategy=strategy,
    )


def _rejection(asked: Envelope, body: TaskReject) -> TaskExecutionError:
    hopeless = body.reason is RejectReason.INVALID_REQUEST
    return TaskExecutionError(
        task_id=asked.task_id or asked.id,
        error_type=FailureType.EXCEPTION if hopeless else FailureType.RESOURCE_LIMIT,
        error_message=body.message or f"rejected: {body.reason}",
        recoverable=False,
        code=body.reason,
        strategy=Strategy.ABORT if hopeless else Strategy.REASSIGN,
        suggested_agents=body.suggested_agents or (),
    )


def _with_severity(found: TaskExecutionError, severity: ErrorSeverity) -> TaskExecutionError:
    return TaskExecutionError(
        task_id=found.task_id,
        error_type=found.error_type,
        error_message=found.error_message,
        recoverable=found.recoverable,
        code=found.code,
        strategy=found.strategy,
        suggested_agents=found.suggested_agents,
        severity=severity,
    )
