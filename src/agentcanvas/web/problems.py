"""Errors on the wire and back: a MAC ERROR message with an HTTP status (M3, H11).

Both halves are here, so that a caller in another process catches the same exception with the same
sentence and the same details as one in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from agentcanvas import errors as tree
from agentcanvas.errors import AgentCanvasError
from agentcanvas.protocol.answers import error_answer
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import MAC
from agentcanvas.protocol.envelope import Fragment
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Error

_US = "agentcanvas"
_THEM = "client"
_NO_MESSAGE = "unknown"
_DETAILS = "/metadata/details"

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
    (tree.DeadlineExceeded, 504),
    (tree.ResourceError, 503),
)
_INTERNAL = 500


def status_of(error: AgentCanvasError) -> int:
    """The HTTP status that says the same."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), _INTERNAL)


def to_body(error: AgentCanvasError, *, time: str) -> bytes:
    """The error as a MAC message; what else it carries is in ``metadata.details``."""
    answer = error_answer(
        error,
        id=new_id(),
        time=time,
        sender=_US,
        recipient=_THEM,
        original_message_id=getattr(error, "message_id", None) or _NO_MESSAGE,
    )
    details = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    fragment = Fragment(_DETAILS, msgspec.Raw(msgspec.json.encode(details)))
    return MAC.encode(
        msgspec.structs.replace(
            answer,
            origin=DialectName.MAC,
            reply_to=UNSET,
            fragments=(fragment,) if details else (),
        )
    )


def from_body(body: bytes) -> AgentCanvasError:
    """The exception that a body tells of; ``ProtocolError`` if it tells of none."""
    try:
        envelope = MAC.decode(body).envelope
    except AgentCanvasError:
        return tree.ProtocolError("The server's answer is not one of AgentCanvas.")
    said = envelope.body
    if not isinstance(said, Error):
        return tree.ProtocolError("The server's answer is not an error message.")
    kind = _by_code().get(said.error_code, AgentCanvasError)
    # Not through __init__: what a class demands of those who raise it is in the details already.
    error = kind.__new__(kind)
    error.args = (said.error_message,)
    for fragment in envelope.fragments:
        if fragment.pointer == _DETAILS:
            details: dict[str, Any] = msgspec.json.decode(fragment.json)
            for name, value in details.items():
                setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error


def _by_code() -> dict[str, type[AgentCanvasError]]:
    return {kind.code: kind for kind in _classes(AgentCanvasError) if "code" in vars(kind)}


def _classes(kind: type[AgentCanvasError]) -> Iterator[type[AgentCanvasError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _classes(child)
