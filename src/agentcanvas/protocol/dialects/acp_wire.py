"""The wire types of ACP v2.0 (W3): commands and responses, durations in milliseconds.

To the letter of the document; a field its own examples leave out is ``Wanted``.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET

from agentcanvas.protocol.extension import Extension
from agentcanvas.protocol.kinds import (
    Action,
    Artifact,
)
from agentcanvas.protocol.priorities import PriorityWord
from agentcanvas.protocol.values import (
    Count,
    Id,
    JsonObject,
    Maybe,
    NotNegative,
    Ordinal,
    Raw,
    Timestamp,
    Value,
    Word,
    check_free,
    is_sound_object,
)


class AcpRetryPolicy(Value, frozen=True, rename="camel"):
    """How often and how soon to try again."""

    max_attempts: Ordinal
    backoff_ms: NotNegative


class CommandContext(Value, frozen=True, rename="camel"):
    """What surrounds a command; ``timeout`` in milliseconds."""

    correlation_id: Maybe[str] = UNSET
    timeout: Maybe[NotNegative] = UNSET
    retry_policy: Maybe[AcpRetryPolicy] = UNSET


class CommandSecurity(Value, frozen=True, rename="camel"):
    """What the sender must be allowed to do."""

    permissions: tuple[str, ...]
    require_approval: Maybe[bool] = UNSET


class AgentCommand(Value, frozen=True, kw_only=True, rename={"sender": "from", "recipient": "to"}):
    """Do this."""

    id: Id
    timestamp: Timestamp
    version: Literal["2.0"]
    sender: str
    recipient: str
    priority: PriorityWord
    action: Action
    parameters: JsonObject
    context: Maybe[CommandContext] = UNSET
    security: Maybe[CommandSecurity] = UNSET
    x_agentcanvas: Maybe[Extension] = UNSET

    def __post_init__(self) -> None:
        if not is_sound_object(self.parameters):
            raise ValueError("expected an object")


class AcpStatus(Word):
    """How a command ended."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class Results(Value, frozen=True):
    """What came of it."""

    data: Maybe[Raw] = UNSET
    artifacts: Maybe[tuple[Artifact, ...]] = UNSET
    summary: Maybe[str] = UNSET

    def __post_init__(self) -> None:
        if self.data is not UNSET:
            check_free(self.data)


class Execution(Value, frozen=True, rename="camel"):
    """What it took; ``duration`` in milliseconds."""

    duration: NotNegative
    tokens_used: Maybe[Count] = UNSET


class Failure(Value, frozen=True):
    """Why it did not work."""

    code: str
    message: str
    recoverable: bool


class AgentResponse(
    Value, frozen=True, kw_only=True, rename={"sender": "from", "command_id": "commandId"}
):
    """This came of it. A response names no receiver: it goes to the command's sender."""

    id: Id
    command_id: str
    timestamp: Timestamp
    version: Literal["2.0"]
    sender: str
    status: AcpStatus
    results: Results
    execution: Maybe[Execution] = UNSET
    error: Maybe[Failure] = UNSET
    x_agentcanvas: Maybe[Extension] = UNSET


AcpMessage = AgentCommand | AgentResponse
MESSAGES: tuple[type[AcpMessage], ...] = (AgentCommand, AgentResponse)
