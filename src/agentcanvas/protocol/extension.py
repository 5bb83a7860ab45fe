"""What a dialect cannot say, carried along so that nothing is lost (D33, C7).

The extension never overrides what is visible: it is believed only as far as the message it
describes, spelled again in this dialect, gives exactly the visible fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from agentcanvas.protocol.envelope import AgentRef, Fragment, Priority, RetryPolicy, Security
from agentcanvas.protocol.kinds import (
    Kind,
)
from agentcanvas.protocol.values import Count, JsonObject, Maybe, NotNegative, Value

KEY = "x_agentcanvas"


class Held(Value, frozen=True):
    """Header fields that the visible message has no place for."""

    sender: Maybe[AgentRef] = UNSET
    recipient: Maybe[AgentRef] = UNSET
    session: Maybe[str] = UNSET
    sequence: Maybe[Count] = UNSET
    priority: Maybe[Priority] = UNSET
    correlation_id: Maybe[str] = UNSET
    reply_to: Maybe[str] = UNSET
    timeout_ms: Maybe[NotNegative] = UNSET
    retry: Maybe[RetryPolicy] = UNSET
    security: Maybe[Security] = UNSET
    trace_level: Maybe[int] = UNSET
    parent_task_id: Maybe[str] = UNSET
    signature: Maybe[str] = UNSET
    encrypted: Maybe[bool] = UNSET
    encryption_algorithm: Maybe[str] = UNSET


NOTHING_HELD = Held()


class Extension(Value, frozen=True):
    """``metadata.x_agentcanvas`` in MAC, ``x_agentcanvas`` at the top elsewhere.

    ``body`` holds body fields without a visible place, unless ``carried`` says that they stand in
    the payload's own free-form field. ``filled`` points at visible values that were invented.
    ``signature`` is this message's own, in the dialects that have no field for one.
    """

    kind: Maybe[Kind] = UNSET
    origin: Maybe[str] = UNSET
    filled: Maybe[tuple[str, ...]] = UNSET
    header: Maybe[Held] = UNSET
    body: Maybe[JsonObject] = UNSET
    carried: Maybe[bool] = UNSET
    fragments: Maybe[tuple[Fragment, ...]] = UNSET
    signature: Maybe[str] = UNSET
    verified_by: Maybe[str] = UNSET


Claim = Callable[[Extension], Extension]


def given(held: Maybe[Held]) -> dict[str, Any]:
    """The header fields an extension holds."""
    if held is UNSET:
        return {}
    return {
        name: value
        for name in Held.__struct_fields__
        if (value := getattr(held, name)) is not UNSET
    }


def marks(extension: Extension) -> dict[str, Any]:
    """What an extension says about a message beside its content, as fields of an envelope."""
    found: dict[str, Any] = {}
    if extension.origin is not UNSET:
        found["origin"] = extension.origin
        found["fragments"] = extension.fragments or ()
    if extension.signature is not UNSET:
        found["signature"] = extension.signature
    if extension.verified_by is not UNSET:
        found["verified_by"] = extension.verified_by
    return found


def claims(extension: Extension) -> Iterator[tuple[str, Claim]]:
    """An extension as single claims; each adds itself to what is trusted already."""
    meaning = ("kind", "origin", "body", "carried", "fragments")
    yield "kind", _setting(**{name: getattr(extension, name) for name in meaning})
    yield "signature", _setting(signature=extension.signature)
    yield "verified_by", _setting(verified_by=extension.verified_by)
    for pointer in extension.filled or ():
        yield f"filled{pointer}", _inventing(pointer)
    for name, value in given(extension.header).items():
        yield f"header/{name}", _holding(name, value)


def _setting(**fields: Any) -> Claim:
    return lambda trusted: msgspec.structs.replace(trusted, **fields)


def _inventing(pointer: str) -> Claim:
    return lambda trusted: msgspec.structs.replace(
        trusted, filled=(*(trusted.filled or ()), pointer)
    )


def _holding(name: str, value: Any) -> Claim:
    def hold(trusted: Extension) -> Extension:
        held = NOTHING_HELD if trusted.header is UNSET else trusted.header
        return msgspec.structs.replace(
            trusted, header=msgspec.structs.replace(held, **{name: value})
        )

    return hold
