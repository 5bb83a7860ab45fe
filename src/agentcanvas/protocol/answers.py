"""How an error is said on the wire: one ERROR message, nothing internal in it (M3, H11)."""

from __future__ import annotations

from msgspec import UNSET

from agentcanvas.errors import AgentCanvasError
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.kinds import Error, ErrorSeverity, Kind

_ERROR_PRIORITY = 8


def error_answer(
    error: AgentCanvasError,
    *,
    id: str,  # noqa: A002 - the envelope's own name for it
    time: str,
    sender: str,
    recipient: str,
    original_message_id: str | None = None,
    severity: ErrorSeverity = ErrorSeverity.ERROR,
) -> Envelope:
    """The ERROR message that tells ``recipient`` what was wrong with what it sent."""
    original = original_message_id or getattr(error, "message_id", None)
    return Envelope(
        id=id,
        kind=Kind.ERROR,
        time=time,
        sender=AgentRef(sender),
        recipient=AgentRef(recipient),
        priority=_ERROR_PRIORITY,
        reply_to=original or UNSET,
        body=Error(
            error_type=error.error_type,
            error_code=error.code,
            error_message=str(error),
            original_message_id=original or UNSET,
            severity=severity,
        ),
    )
