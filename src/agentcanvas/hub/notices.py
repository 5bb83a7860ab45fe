"""What the hub itself says to agents: ERROR messages about what became of their own (D31, M3)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.clock import rfc3339
from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub.broker import Post
from agentcanvas.hub.router import to_one
from agentcanvas.protocol.answers import error_answer
from agentcanvas.protocol.ids import new_id

HUB = "hub"
"""The sender of the hub's own messages; nobody else may use the name."""


def notice(
    error: AgentCanvasError,
    *,
    to: str,
    session: str,
    about: str,
    at_ms: int,
    correlation: str | UnsetType = UNSET,
) -> Post:
    """Tell ``to`` what happened to its message ``about``."""
    answer = error_answer(
        error,
        id=new_id(),
        time=rfc3339(at_ms),
        sender=HUB,
        recipient=to,
        original_message_id=about,
    )
    answer = msgspec.structs.replace(answer, session=session, correlation_id=correlation)
    return to_one(answer, session, to)
