"""Reading and translating messages, against pydantic on the same model and against ourselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from agentcanvas.protocol.dialects import ACP, MAC, SPEC022
from bench.harness import Contender, Contest, times_better, times_worse

MESSAGE = json.dumps(
    {
        "message_id": "6513270e-269e-4d37-b2a7-4de452e6b438",
        "type": "TASK_REQUEST",
        "from": "coordinator-agent",
        "to": "worker-agent-1",
        "timestamp": "2026-01-28T10:00:00Z",
        "priority": 5,
        "payload": {
            "task_id": "task-001",
            "task_type": "code_review",
            "input": "function add(a, b) { return a + b; }" * 10,
            "requirements": {"language": "javascript", "check_security": True},
            "timeout": 300,
            "callback_url": "http://coordinator/callback",
        },
        "metadata": {"parent_task_id": "main-task-001", "correlation_id": "corr-001"},
    }
).encode()
assert len(MESSAGE) == 830


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Payload(_Model):
    """The payload of a TASK_REQUEST."""

    task_id: str
    task_type: str
    input: str | dict[str, object]
    requirements: dict[str, object] | None = None
    timeout: float | None = Field(None, ge=0)
    callback_url: str | None = None


class Metadata(_Model):
    """What MAC's metadata says about tracing."""

    correlation_id: str | None = None
    parent_message_id: str | None = None
    parent_task_id: str | None = None
    trace_level: int | None = None
    session_id: str | None = None


class TaskRequest(_Model):
    """The same message as a pydantic model."""

    message_id: str
    type: Literal["TASK_REQUEST"]
    sender: str = Field(alias="from")
    to: str
    timestamp: AwareDatetime
    priority: int = Field(5, ge=1, le=10)
    payload: Payload
    metadata: Metadata | None = None
    signature: str | None = None
    encrypted: bool | None = None
    encryption_algorithm: str | None = None


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of the message language."""
    del quick
    yield Contest(
        name="validated read of an 830-byte TASK_REQUEST",
        baseline="pydantic",
        contenders=[
            Contender("pydantic", lambda: TaskRequest.model_validate_json(MESSAGE)),
            Contender(
                "header and route key",
                lambda: MAC.route(MESSAGE),
                bar=times_better(3.5, than="pydantic"),
            ),
            Contender("full", lambda: MAC.read(MESSAGE), bar=times_better(2.5, than="pydantic")),
        ],
    )
    yield Contest(
        name="translation, bytes to bytes",
        baseline="full decode",
        contenders=[
            Contender("full decode", lambda: MAC.decode(MESSAGE)),
            Contender(
                "to SPEC-022",
                lambda: SPEC022.encode(MAC.decode(MESSAGE).envelope),
                bar=times_worse(3, than="full decode"),
            ),
            Contender(
                "to ACP",
                lambda: ACP.encode(MAC.decode(MESSAGE).envelope),
                bar=times_worse(3, than="full decode"),
            ),
        ],
        note="A full decode ends in an envelope; the typed read above it ends in the wire's types.",
    )
