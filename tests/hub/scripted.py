"""Somebody to ask who answers as told: for the tests of recovery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.errors import (
    AgentCanvasError,
    ValidationError,
)
from agentcanvas.hub.broker import Parcel
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import (
    Error,
    Kind,
    Outcome,
    RejectReason,
    TaskReject,
    TaskResult,
)
from tests.hub.helpers import of_kind

Reply = AgentCanvasError | Callable[[Envelope], Envelope]


class Answered(Delivery, frozen=True):
    """An answer that counts its acknowledgements."""

    acks: list[str] = msgspec.field(default_factory=list)

    async def ack(self) -> bool:
        self.acks.append(self.envelope.id)
        return True


class Script:
    """Somebody to ask who answers as it is told, and remembers what it was asked."""

    def __init__(self, *said: Reply) -> None:
        self.said = list(said)
        self.asked: list[tuple[Envelope, float | None]] = []
        self.acks: list[str] = []

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Answer as told."""
        del on_behalf_of
        self.asked.append((envelope, timeout_s))
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if isinstance(said, AgentCanvasError):
            raise said
        parcel = Parcel(len(self.asked), "default", said(envelope))
        return Answered(parcel, cast("Connection", None), self.acks)

    @property
    def recipients(self) -> list[str]:
        return [each.recipient.id for each, _ in self.asked if each.recipient is not UNSET]

    @property
    def ids(self) -> list[str]:
        return [each.id for each, _ in self.asked]


def well(asked: Envelope) -> Envelope:
    return _answer(asked, Kind.TASK_COMPLETE, TaskResult(status=Outcome.SUCCESS))


def failing(code: str = "EXECUTION_ERROR", **fields: Any) -> Callable[[Envelope], Envelope]:
    body = TaskResult(status=Outcome.FAILED, error_code=code, error_message="no", **fields)
    return lambda asked: _answer(asked, Kind.TASK_FAIL, body)


def late(asked: Envelope) -> Envelope:
    return _answer(asked, Kind.TASK_COMPLETE, TaskResult(status=Outcome.TIMEOUT))


def rejecting(*others: str, reason: str = "OVERLOADED") -> Callable[[Envelope], Envelope]:
    body = TaskReject(task_id="t1", reason=RejectReason(reason), suggested_agents=others)
    return lambda asked: _answer(asked, Kind.TASK_REJECT, body)


def error(code: str, type_: Any, severity: Any = UNSET) -> Callable[[Envelope], Envelope]:
    body = Error(error_type=type_, error_code=code, error_message="no", severity=severity)
    return lambda asked: _answer(asked, Kind.ERROR, body)


def _answer(asked: Envelope, kind: Kind, body: Any) -> Envelope:
    who = asked.recipient.id if asked.recipient is not UNSET else "?"
    return of_kind(kind, who, asked.sender.id, body, reply_to=asked.id)


NOT_THE_AGENTS: tuple[Reply, ...] = (
    ValidationError("wrong"),
    rejecting(reason="INVALID_REQUEST"),
    failing("CANCELLED"),
)
"""What goes wrong because of what was asked, whoever is asked."""
