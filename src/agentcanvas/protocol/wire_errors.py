"""Errors on the wire and back: a MAC ERROR message (M3, H11).

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
_REF = "ref"


class About(msgspec.Struct, frozen=True):
    """What a refusal on a connection is about: a message by its id, or a word by its ``ref``."""

    message: str | None = None
    ref: int | None = None


class _Payload(msgspec.Struct, frozen=True):
    original_message_id: str | None = None


class _Metadata(msgspec.Struct, frozen=True):
    details: dict[str, Any] = {}


class _Refusal(msgspec.Struct, frozen=True):
    payload: _Payload
    metadata: _Metadata = _Metadata()


_refusals = msgspec.json.Decoder(_Refusal)


def to_body(
    error: AgentCanvasError, *, time: str, about: str | None = None, ref: int | None = None
) -> bytes:
    """The error as a MAC message; what else it carries is in ``metadata.details``."""
    answer = error_answer(
        error,
        id=new_id(),
        time=time,
        sender=_US,
        recipient=_THEM,
        original_message_id=about or getattr(error, "message_id", None) or _NO_MESSAGE,
    )
    details = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    if ref is not None:
        details[_REF] = ref
    fragment = Fragment(_DETAILS, msgspec.Raw(msgspec.json.encode(details)))
    return MAC.encode(
        msgspec.structs.replace(
            answer,
            origin=DialectName.MAC,
            reply_to=UNSET,
            fragments=(fragment,) if details else (),
        )
    )


def about_what(body: bytes) -> About:
    """What a refusal on a connection is about."""
    try:
        refusal = _refusals.decode(body)
    except msgspec.MsgspecError:
        return About()
    ref = refusal.metadata.details.get(_REF)
    message = refusal.payload.original_message_id
    return About(None if message == _NO_MESSAGE else message, ref if isinstance(ref, int) else None)


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
