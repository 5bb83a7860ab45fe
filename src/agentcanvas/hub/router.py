"""Who receives: a message and its recipients, made ready for the broker.

A broadcast is one copy for each, with an id of its own that follows from the original's, so that a
repeat makes the same copies (H3). Who may receive is decided by ``session``.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.hub.broker import Copy, Post, fingerprint
from agentcanvas.hub.delivery import band_of
from agentcanvas.hub.events import OnBehalfOf, posted
from agentcanvas.protocol.envelope import AgentRef, Envelope

_COPIES = UUID("b0a7b1a4-0f3e-5a0e-9d0c-6a5f6f2c7e55")


def to_one(
    envelope: Envelope,
    session: str,
    recipient: str,
    on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    breaches: tuple[str, ...] = (),
) -> Post:
    """Address a message to one recipient."""
    content = posted(envelope, on_behalf_of, breaches)
    return Post(
        envelope=envelope,
        session=session,
        key=key_of(envelope.id),
        digest=_digest(envelope, content, on_behalf_of, breaches),
        band=band_of(envelope.priority),
        copies=(Copy(recipient, envelope, content),),
        on_behalf_of=on_behalf_of,
        breaches=breaches,
    )


def to_all(
    envelope: Envelope,
    session: str,
    recipients: Iterable[str],
    on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    breaches: tuple[str, ...] = (),
) -> Post:
    """Address a copy of a message to each recipient."""
    content = posted(envelope, on_behalf_of, breaches)
    copies = []
    for recipient in sorted(recipients):
        copy = _copy_for(recipient, envelope, session)
        copies.append(Copy(recipient, copy, posted(copy, on_behalf_of, breaches)))
    return Post(
        envelope=envelope,
        session=session,
        key=key_of(envelope.id),
        digest=_digest(envelope, content, on_behalf_of, breaches),
        band=band_of(envelope.priority),
        copies=tuple(copies),
        broadcast=content,
        on_behalf_of=on_behalf_of,
        breaches=breaches,
    )


def key_of(message_id: str) -> int:
    """Return what messages are looked up by."""
    return fingerprint(message_id.encode())


def _digest(
    envelope: Envelope,
    content: bytes,
    on_behalf_of: OnBehalfOf | UnsetType,
    breaches: tuple[str, ...],
) -> int:
    """Return what a repeat is known by; a remark on its clock says something else each time."""
    return fingerprint(posted(envelope, on_behalf_of) if breaches else content)


def _copy_for(recipient: str, envelope: Envelope, session: str) -> Envelope:
    name = "\n".join((session, envelope.sender.id, envelope.id, recipient))
    return msgspec.structs.replace(
        envelope,
        id=str(uuid5(_COPIES, name)),
        recipient=AgentRef(recipient),
        correlation_id=envelope.correlation_id or envelope.id,
    )
