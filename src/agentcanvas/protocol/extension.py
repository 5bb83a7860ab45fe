"""What a dialect cannot say, carried along so that nothing is lost (D33, C7).

The extension never overrides what is visible: it is believed only as far as the message it
describes, spelled again in this dialect, gives exactly the visible fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from agentcanvas.protocol.envelope import (
    AgentRef,
    Envelope,
    Fragment,
    Priority,
    RetryPolicy,
    Security,
)
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.mapping import Shown
from agentcanvas.protocol.values import (
    Count,
    JsonObject,
    Maybe,
    NotNegative,
    Raw,
    Value,
    Whole,
    is_sound_object,
)

KEY = "x_agentcanvas"

_MOST_FILLED = 64
"""No form has nearly as many fields; each is weighed on its own when an extension contradicts."""


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
    trace_level: Maybe[Whole] = UNSET
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

    def __post_init__(self) -> None:
        if isinstance(self.body, Raw) and not is_sound_object(self.body):
            raise ValueError("expected an object")


def extension_of(
    envelope: Envelope, held: Held, shown: Shown, *, dialect: str, natural: Kind
) -> Maybe[Extension]:
    """What goes along with a visible message of a dialect; a native one mostly needs nothing.

    ``natural`` is the kind it would be taken for without an extension.
    """
    left: Any = shown.left or UNSET  # encoded as it is: a dictionary is an object
    header: Maybe[Held] = UNSET if held == NOTHING_HELD else held
    filled: Maybe[tuple[str, ...]] = tuple(shown.filled) or UNSET
    carried: Maybe[bool] = shown.carried or UNSET
    if envelope.origin != dialect:
        return Extension(
            kind=envelope.kind,
            origin=envelope.origin,
            filled=filled,
            header=header,
            body=left,
            carried=carried,
            fragments=envelope.fragments or UNSET,
            verified_by=envelope.verified_by,
        )
    kind: Maybe[Kind] = UNSET if envelope.kind == natural else envelope.kind
    if all(part is UNSET for part in (kind, filled, header, left, carried)) and (
        envelope.verified_by is UNSET
    ):
        return UNSET
    signature: Maybe[str] = UNSET
    if header is not UNSET and header.signature is not UNSET:
        # This dialect has no field for a signature of its own.
        signature = header.signature
        rest = msgspec.structs.replace(header, signature=UNSET)
        header = UNSET if rest == NOTHING_HELD else rest
    return Extension(
        kind=kind,
        filled=filled,
        header=header,
        body=left,
        carried=carried,
        signature=signature,
        verified_by=envelope.verified_by,
    )


def more_than_id(agent: Maybe[AgentRef]) -> Maybe[AgentRef]:
    """An agent as it is held where the dialect shows its id."""
    if agent is UNSET or (agent.type is UNSET and agent.instance is UNSET):
        return UNSET
    return agent


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
    """What an extension says about a message beside its content, as fields of an envelope.

    A signature on a translation seals that form of it; the message's own is in the header.
    """
    found: dict[str, Any] = {}
    if extension.origin is not UNSET:
        found["origin"] = extension.origin
        found["fragments"] = extension.fragments or ()
        found["signature"] = UNSET if extension.header is UNSET else extension.header.signature
    elif extension.signature is not UNSET:
        found["signature"] = extension.signature
    if extension.verified_by is not UNSET:
        found["verified_by"] = extension.verified_by
    return found


def is_possible(extension: Extension, dialect: str) -> bool:
    """Whether ``dialect`` could have been given this extension at all.

    A message is no translation of itself, and only a translation has pieces of another form.
    """
    fragments = extension.fragments or ()
    return (
        extension.origin != dialect
        and not (fragments and extension.origin is UNSET)
        and all(fragment.pointer.startswith("/") for fragment in fragments)
        and len(extension.filled or ()) <= _MOST_FILLED
    )


def claims(extension: Extension) -> Iterator[tuple[str, Claim]]:
    """An extension as single claims; each adds itself to what is trusted already."""
    meaning = ("kind", "origin", "body", "carried")
    yield "kind", _setting(**{name: getattr(extension, name) for name in meaning})
    if extension.fragments:
        yield "fragments", _setting(fragments=extension.fragments)
    yield "signature", _setting(signature=extension.signature)
    yield "verified_by", _setting(verified_by=extension.verified_by)
    filled = extension.filled or ()
    if len(filled) > _MOST_FILLED:
        yield "filled", _setting(filled=filled)
    else:
        for index, pointer in enumerate(filled):
            yield f"filled/{index}", _inventing(pointer)
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
