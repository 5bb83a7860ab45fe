"""Who may say what to whom: the sender is who it says, and keeps to the edges (D22, D23).

Tokens, permissions and approvals come before this, at the doors; here a principal is already known.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import PermissionDenied
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.session import Session
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.values import Word

_ANSWERS = frozenset(
    {
        Kind.TASK_ACCEPT,
        Kind.TASK_REJECT,
        Kind.TASK_PROGRESS,
        Kind.TASK_COMPLETE,
        Kind.TASK_FAIL,
        Kind.REVIEW_RESULT,
        Kind.STATUS_RESPONSE,
        Kind.ACK,
        Kind.ERROR,
    }
)
"""They go back along an edge, to whoever asked."""


class PrincipalKind(Word):
    """Who can be at the other end (D26)."""

    AGENT = "agent"
    PERSON = "person"
    DOOR = "door"
    ENGINE = "engine"


_PREFIXES = tuple(f"{kind}:" for kind in PrincipalKind if kind is not PrincipalKind.AGENT)


def is_agent(name: str) -> bool:
    """Tell an agent's name from that of a person, a door or an engine (``engine:<run>``)."""
    return not name.startswith(_PREFIXES)


class Principal(Struct, frozen=True):
    """Somebody who was recognised."""

    id: str
    kind: PrincipalKind = PrincipalKind.AGENT


def check_sender(
    principal: Principal, envelope: Envelope, on_behalf_of: OnBehalfOf | UnsetType
) -> None:
    """Refuse a message in somebody else's name."""
    if envelope.sender.id != principal.id:
        raise PermissionDenied(
            f"{principal.id} cannot send as {envelope.sender.id}; a message names its own sender."
        )
    if on_behalf_of is not UNSET and principal.kind is not PrincipalKind.ENGINE:
        raise PermissionDenied(
            f"{principal.id} cannot speak on behalf of {on_behalf_of.speaker}; only the engine can."
        )


def check_edge(
    session: Session,
    envelope: Envelope,
    recipient: str,
    on_behalf_of: OnBehalfOf | UnsetType = UNSET,
) -> None:
    """Refuse a message along an edge that the session does not have."""
    speaker = envelope.sender.id if on_behalf_of is UNSET else on_behalf_of.speaker
    if not may_speak(session, envelope.kind, speaker, recipient):
        raise PermissionDenied(
            f"{speaker} may not address {recipient} in the session {session.name}; "
            "its flow has no such edge."
        )


def may_speak(session: Session, kind: Kind, speaker: str, recipient: str) -> bool:
    """Tell whether the session has an edge for this, there or, for an answer, back."""
    return session.has_edge(speaker, recipient) or (
        kind in _ANSWERS and session.has_edge(recipient, speaker)
    )
