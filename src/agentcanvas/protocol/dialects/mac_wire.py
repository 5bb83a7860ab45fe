"""The wire types of MAC v1.0 (W1): ``type`` and ``from``, durations in seconds.

To the letter of the document; a field its own examples leave out is ``Wanted``.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta

from agentcanvas.protocol.envelope import Priority
from agentcanvas.protocol.extension import Extension
from agentcanvas.protocol.kinds import (
    CancelScope,
    Error,
    Heartbeat,
    TaskReject,
)
from agentcanvas.protocol.values import (
    JsonObject,
    Maybe,
    NotNegative,
    Percent,
    Raw,
    Seconds,
    TextOrObject,
    Timestamp,
    Uuid,
    Value,
    Wanted,
    Whole,
    Word,
    check_free,
    is_object,
    is_text,
)


class MacStatus(Word):
    """How MAC says a task ended."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"
    TIMEOUT = "TIMEOUT"


class TaskRequestPayload(Value, frozen=True):
    """TASK_REQUEST; ``timeout`` in seconds, 300 when absent."""

    task_id: str
    task_type: str
    input: TextOrObject
    requirements: Maybe[JsonObject] = UNSET
    timeout: Maybe[Seconds] = UNSET
    callback_url: Maybe[str] = UNSET


class TaskAcceptPayload(Value, frozen=True):
    """TASK_ACCEPT; the estimate in seconds."""

    task_id: str
    estimated_duration: Wanted[NotNegative] = UNSET
    accepted_at: Wanted[Timestamp] = UNSET


class TaskCompletePayload(Value, frozen=True):
    """TASK_COMPLETE; ``duration`` in seconds."""

    task_id: str
    status: MacStatus
    output: Wanted[Raw] = UNSET
    duration: Wanted[Seconds] = UNSET
    completed_at: Wanted[Timestamp] = UNSET

    def __post_init__(self) -> None:
        if self.output is not UNSET:
            check_free(self.output)


class TaskFailedPayload(Value, frozen=True):
    """TASK_FAILED."""

    task_id: str
    error_code: str
    error_message: str
    error_details: Wanted[Raw] = UNSET
    retry_possible: Wanted[bool] = UNSET

    def __post_init__(self) -> None:
        if self.error_details is not UNSET:
            check_free(self.error_details)


class TaskCancelPayload(Value, frozen=True):
    """TASK_CANCEL, our addition: MAC itself cannot take a task back."""

    scope: CancelScope
    target_id: str
    reason: str
    cleanup_required: bool


class StatusQueryPayload(Value, frozen=True):
    """STATUS_QUERY; without a task it asks about the agent."""

    query_type: str
    task_id: Maybe[str] = UNSET


class StatusResponsePayload(Value, frozen=True):
    """STATUS_RESPONSE; without ``query_id`` it is a progress report nobody asked for."""

    status: str
    query_id: Maybe[str] = UNSET
    task_id: Maybe[str] = UNSET
    progress: Wanted[Percent] = UNSET
    estimated_remaining: Wanted[NotNegative] = UNSET


class BroadcastPayload(msgspec.Struct, frozen=True):
    """BROADCAST; any further field belongs to the event."""

    event: str
    message: Wanted[str] = UNSET


class MacMetadata(Value, frozen=True):
    """What MAC's ``metadata`` says about tracing; any other field is welcome too."""

    correlation_id: Maybe[str] = UNSET
    parent_message_id: Maybe[str] = UNSET
    parent_task_id: Maybe[str] = UNSET
    trace_level: Maybe[Whole] = UNSET
    session_id: Maybe[str] = UNSET
    x_agentcanvas: Maybe[Extension] = UNSET


P = TypeVar("P")


class MacMessage(
    Value,
    Generic[P],
    frozen=True,
    kw_only=True,
    tag_field="type",
    rename={"sender": "from", "recipient": "to"},
):
    """What every MAC message has around its payload."""

    message_id: Uuid
    sender: str
    recipient: str
    timestamp: Timestamp
    priority: Maybe[Priority] = UNSET
    payload: P
    metadata: Maybe[MacMetadata] = UNSET
    signature: Maybe[str] = UNSET
    encrypted: Maybe[bool] = UNSET
    encryption_algorithm: Maybe[str] = UNSET


class TaskRequest(MacMessage[TaskRequestPayload | str], frozen=True, tag="TASK_REQUEST"):
    """Do this."""


class TaskAcceptMessage(MacMessage[TaskAcceptPayload | str], frozen=True, tag="TASK_ACCEPT"):
    """I will."""


class TaskRejectMessage(MacMessage[TaskReject | str], frozen=True, tag="TASK_REJECT"):
    """I will not."""


class TaskComplete(MacMessage[TaskCompletePayload | str], frozen=True, tag="TASK_COMPLETE"):
    """It is done."""


class TaskFailed(MacMessage[TaskFailedPayload | str], frozen=True, tag="TASK_FAILED"):
    """It went wrong."""


class TaskCancelMessage(MacMessage[TaskCancelPayload | str], frozen=True, tag="TASK_CANCEL"):
    """Stop."""


class HeartbeatMessage(MacMessage[Heartbeat | str], frozen=True, tag="HEARTBEAT"):
    """I am here."""


class StatusQueryMessage(MacMessage[StatusQueryPayload | str], frozen=True, tag="STATUS_QUERY"):
    """How is it going?"""


class StatusResponseMessage(
    MacMessage[StatusResponsePayload | str], frozen=True, tag="STATUS_RESPONSE"
):
    """This is how it is going."""


BroadcastContent = msgspec.json.Decoder(BroadcastPayload)


class BroadcastMessage(
    MacMessage[Annotated[Raw, Meta(extra={"holds": BroadcastPayload | str})]],
    frozen=True,
    tag="BROADCAST",
):
    """Everybody should know."""

    def __post_init__(self) -> None:
        if is_object(self.payload):
            check_free(self.payload)
            BroadcastContent.decode(self.payload)
        elif not is_text(self.payload):
            raise ValueError("payload must be an object")


class ErrorMessage(MacMessage[Error | str], frozen=True, tag="ERROR"):
    """Something is wrong with what you sent."""


MESSAGES: tuple[type[MacMessage[Any]], ...] = (
    TaskRequest,
    TaskAcceptMessage,
    TaskRejectMessage,
    TaskComplete,
    TaskFailed,
    TaskCancelMessage,
    HeartbeatMessage,
    StatusQueryMessage,
    StatusResponseMessage,
    BroadcastMessage,
    ErrorMessage,
)
BY_TYPE = {str(message.__struct_config__.tag): message for message in MESSAGES}
PAYLOADS: dict[str, type[msgspec.Struct]] = {
    "TASK_REQUEST": TaskRequestPayload,
    "TASK_ACCEPT": TaskAcceptPayload,
    "TASK_REJECT": TaskReject,
    "TASK_COMPLETE": TaskCompletePayload,
    "TASK_FAILED": TaskFailedPayload,
    "TASK_CANCEL": TaskCancelPayload,
    "HEARTBEAT": Heartbeat,
    "STATUS_QUERY": StatusQueryPayload,
    "STATUS_RESPONSE": StatusResponsePayload,
    "ERROR": Error,
}


class MacHeader(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    rename={"id": "message_id", "sender": "from", "recipient": "to"},
):
    """Enough of a message to route it; the payload is passed over, not read."""

    id: str
    type: str
    sender: str
    recipient: str
    timestamp: Timestamp
    payload: Raw
    priority: Priority = 5
    metadata: Maybe[Raw] = UNSET
