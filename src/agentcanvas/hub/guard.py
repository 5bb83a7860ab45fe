"""Who may say what to whom: the sender is who it says, keeps to the edges, and may do what it asks.

How a principal is recognised is told in ``tokens``, what needs a person's consent in ``consent``
(D22, D23, D26).
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import NotApproved, PermissionDenied
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.session import Session
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import ANSWERS, Kind
from agentcanvas.protocol.values import Word


class PrincipalKind(Word):
    """Who can be at the other end (D26)."""

    AGENT = "agent"
    PERSON = "person"
    DOOR = "door"
    ENGINE = "engine"


class Scope(Word):
    """What a door may be used for (D26)."""

    READ = "read"
    RUN = "run"
    REVIEW = "review"


EVERYTHING = "*"
"""The permission that holds all others."""

_PREFIXES = tuple(f"{kind}:" for kind in PrincipalKind if kind is not PrincipalKind.AGENT)


def is_agent(name: str) -> bool:
    """Tell an agent's name from that of a person, a door or an engine (``engine:<run>``)."""
    return not name.startswith(_PREFIXES)


class Principal(Struct, frozen=True):
    """Somebody who was recognised.

    ``scopes`` are what a door may be used for, ``permissions`` what an agent may ask others to do.
    """

    id: str
    kind: PrincipalKind = PrincipalKind.AGENT
    scopes: frozenset[Scope] = frozenset()
    permissions: frozenset[str] = frozenset()


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


def check_scope(principal: Principal, scope: Scope) -> None:
    """Refuse what somebody has no right to: an agent has its inbox and nothing else (D26)."""
    if principal.kind in (PrincipalKind.PERSON, PrincipalKind.ENGINE):
        return
    if principal.kind is PrincipalKind.DOOR and scope in principal.scopes:
        return
    raise PermissionDenied(f"{principal.id} may not {scope}; use a token that has this scope.")


def check_permissions(principal: Principal, envelope: Envelope) -> None:
    """Refuse a message that needs a permission its sender does not hold (H6); most need none."""
    if envelope.security is UNSET or principal.kind is not PrincipalKind.AGENT:
        return
    if EVERYTHING in principal.permissions:
        return
    missing = [each for each in envelope.security.permissions if each not in principal.permissions]
    if missing:
        raise PermissionDenied(
            f"{principal.id} lacks the permission {', '.join(missing)}; "
            "ask for a token that has it, or leave it out."
        )


def check_consent(principal: Principal, envelope: Envelope) -> None:
    """Refuse a task whose sender wants a person's consent where nobody can be asked (C5)."""
    if principal.kind is not PrincipalKind.AGENT or envelope.kind is not Kind.TASK_ASSIGN:
        return
    if envelope.security is not UNSET and envelope.security.require_approval is True:
        raise NotApproved(
            f"The message {envelope.id} asks for a person's consent, and this hub has nobody to "
            "ask; name one when the hub is started, or leave requireApproval out."
        )


def is_answer(kind: Kind) -> bool:
    """Tell whether a message goes back along an edge, to whoever asked."""
    return kind in ANSWERS


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
        kind in ANSWERS and session.has_edge(recipient, speaker)
    )
