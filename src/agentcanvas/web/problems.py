"""Which HTTP status says the same as an error of ours (M3, H11)."""

from __future__ import annotations

from agentcanvas import errors as tree
from agentcanvas.errors import AgentCanvasError
from agentcanvas.protocol.wire_errors import from_body, to_body

__all__ = ["from_body", "status_of", "to_body"]

# The first class that fits decides, so the more particular ones come first.
_STATUS: tuple[tuple[type[AgentCanvasError], int], ...] = (
    (tree.MethodNotAllowed, 405),
    (tree.MessageTooLarge, 413),
    (tree.ProtocolError, 400),
    (tree.NotFound, 404),
    (tree.AgentNotFound, 404),
    (tree.UnknownTransaction, 404),
    (tree.IllegalTransition, 409),
    (tree.IdReused, 409),
    (tree.ApplyConflict, 409),
    (tree.RunDiverged, 409),
    (tree.ValidationError, 422),
    (tree.Unauthenticated, 401),
    (tree.PermissionDenied, 403),
    (tree.Overloaded, 429),
    (tree.RateLimited, 429),
    (tree.QuotaExceeded, 507),
    (tree.Replaced, 409),
    (tree.DeadlineExceeded, 504),
    (tree.ResourceError, 503),
)
_INTERNAL = 500


def status_of(error: AgentCanvasError) -> int:
    """The HTTP status that says the same."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), _INTERNAL)
