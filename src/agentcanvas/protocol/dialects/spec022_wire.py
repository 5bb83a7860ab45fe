"""The wire types of SPEC-022 (W2): ``message_type`` and ``from_agent``.

To the letter of the document; a field its own examples leave out is ``Wanted``.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET

from agentcanvas.protocol.envelope import AgentType
from agentcanvas.protocol.extension import Extension
from agentcanvas.protocol.kinds import (
    Ack,
    CancelScope,
    Changes,
    SelfReview,
    TaskConstraints,
    TaskContext,
)
from agentcanvas.protocol.reviews import (
    Feedback,
    ReviewRequest,
    ReviewResult,
)
from agentcanvas.protocol.values import Count, Maybe, Ordinal, Percent, Timestamp, Uuid, Value, Word


class AgentIdentifier(Value, frozen=True):
    """An agent with its role."""

    agent_id: str
    agent_type: AgentType
    instance_id: Maybe[str] = UNSET


class AssignmentPriority(Word):
    """SPEC-022 has no critical; it is said as high, with the extension (C7)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class DeveloperInput(Value, frozen=True):
    """The task itself."""

    task_id: str
    task_description: str
    context: TaskContext
    constraints: TaskConstraints
    acceptance_criteria: tuple[str, ...]


class TaskAssignmentPayload(Value, frozen=True):
    """task_assignment; ``deadline`` is soft, ``max_iterations`` 3 when absent."""

    task: DeveloperInput
    priority: AssignmentPriority
    deadline: Maybe[Timestamp] = UNSET
    max_iterations: Maybe[Ordinal] = UNSET


class TaskProgressPayload(Value, frozen=True):
    """task_progress; the remaining time is free text."""

    task_id: str
    progress_percent: Percent
    current_step: str
    files_modified_so_far: tuple[str, ...]
    estimated_remaining: Maybe[str] = UNSET
    blockers: Maybe[tuple[str, ...]] = UNSET


class CompletionStatus(Word):
    """How SPEC-022 says a task ended."""

    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"


class DeveloperOutput(Value, frozen=True):
    """task_completion."""

    task_id: str
    status: CompletionStatus
    changes: Changes
    summary: str
    self_review: SelfReview
    implementation_notes: Maybe[str] = UNSET
    blockers: Maybe[tuple[str, ...]] = UNSET
    suggestions: Maybe[tuple[str, ...]] = UNSET


class StatusQueryPayload(Value, frozen=True):
    """status_query: a task or an agent."""

    task_id: Maybe[str] = UNSET
    agent_id: Maybe[str] = UNSET


class StatusResponsePayload(Value, frozen=True):
    """status_response."""

    status: str
    task_id: Maybe[str] = UNSET
    agent_id: Maybe[str] = UNSET
    progress_percent: Maybe[Percent] = UNSET


class AbortPayload(Value, frozen=True):
    """abort; ``target_id`` is a task or a session."""

    scope: CancelScope
    target_id: str
    reason: str
    cleanup_required: bool


P = TypeVar("P")


class Spec022Message(Value, Generic[P], frozen=True, kw_only=True, tag_field="message_type"):
    """What every SPEC-022 message has around its payload."""

    message_id: Uuid
    timestamp: Timestamp
    sequence_number: Count
    from_agent: AgentIdentifier
    to_agent: AgentIdentifier
    payload: P
    correlation_id: Maybe[str] = UNSET
    reply_to: Maybe[str] = UNSET
    x_agentcanvas: Maybe[Extension] = UNSET


class TaskAssignment(Spec022Message[TaskAssignmentPayload], frozen=True, tag="task_assignment"):
    """Architect to developer: do this."""


class TaskProgressMessage(Spec022Message[TaskProgressPayload], frozen=True, tag="task_progress"):
    """Developer to architect: this far."""


class TaskCompletion(Spec022Message[DeveloperOutput], frozen=True, tag="task_completion"):
    """Developer to architect: it ended, well or not."""


class ReviewRequestMessage(Spec022Message[ReviewRequest], frozen=True, tag="review_request"):
    """Architect to reviewer: judge this."""


class ReviewResultMessage(Spec022Message[ReviewResult], frozen=True, tag="review_result"):
    """Reviewer to architect: the verdict."""


class FeedbackMessage(Spec022Message[Feedback], frozen=True, tag="feedback"):
    """Anyone to anyone: a remark."""


class StatusQueryMessage(Spec022Message[StatusQueryPayload], frozen=True, tag="status_query"):
    """How is it going?"""


class StatusResponseMessage(
    Spec022Message[StatusResponsePayload], frozen=True, tag="status_response"
):
    """This is how it is going."""


class Abort(Spec022Message[AbortPayload], frozen=True, tag="abort"):
    """Stop."""


class Acknowledgment(Spec022Message[Ack], frozen=True, tag="acknowledgment"):
    """Received; in answer to a task_assignment: accepted."""


MESSAGES: tuple[type[Spec022Message[Any]], ...] = (
    TaskAssignment,
    TaskProgressMessage,
    TaskCompletion,
    ReviewRequestMessage,
    ReviewResultMessage,
    FeedbackMessage,
    StatusQueryMessage,
    StatusResponseMessage,
    Abort,
    Acknowledgment,
)
BY_TYPE = {str(message.__struct_config__.tag): message for message in MESSAGES}
PAYLOADS: dict[str, type[msgspec.Struct]] = {
    "task_progress": TaskProgressPayload,
    "task_completion": DeveloperOutput,
    "review_request": ReviewRequest,
    "review_result": ReviewResult,
    "feedback": Feedback,
    "status_query": StatusQueryPayload,
    "status_response": StatusResponsePayload,
    "abort": AbortPayload,
    "acknowledgment": Ack,
}
