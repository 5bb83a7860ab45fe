"""Where a message belongs that does not say so itself, but answers one that may (D27)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from agentcanvas.hub import mailbox, router
from agentcanvas.hub.events import read_posted
from agentcanvas.hub.mailbox import Origin
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.kinds import TaskResult
from agentcanvas.store import Snapshot


def is_vague(envelope: Envelope) -> bool:
    """Tell whether a message leaves open where it belongs, but answers one that may say it."""
    if envelope.session is not UNSET and envelope.recipient is not UNSET:
        return False
    return envelope.reply_to is not UNSET or envelope.correlation_id is not UNSET


def place(look: Snapshot, envelopes: Sequence[Envelope]) -> list[tuple[Envelope, Origin | None]]:
    """Look for what each of these answers if it is vague; one look for all of them."""
    placed = []
    for envelope in envelopes:
        origin = _origin(look, envelope) if is_vague(envelope) else None
        placed.append((_completed(look, envelope, origin), origin))
    return placed


def _origin(look: Snapshot, envelope: Envelope) -> Origin | None:
    """Look for the message in ``reply_to``, else for the session of the correlation id (D27)."""
    for id_ in (envelope.reply_to, envelope.correlation_id):
        if id_ is not UNSET and (found := mailbox.origin(look, router.key_of(id_), id_)):
            return found
    if envelope.correlation_id is not UNSET:
        session = mailbox.session_of_thread(look, envelope.correlation_id)
        if session is not None and envelope.recipient is not UNSET:
            return Origin(session, envelope.recipient.id)
    return None


def _completed(look: Snapshot, envelope: Envelope, origin: Origin | None) -> Envelope:
    """Say in an answer what it leaves open, as all of ACP do, to whoever asked in another dialect.

    There one looks for one's own name, conversation and task, not for the command.
    """
    if origin is None or origin.number is None or envelope.recipient is not UNSET:
        return envelope
    asked = _message(look, origin.number)
    if asked is None or asked.origin == envelope.origin:
        return envelope
    body = envelope.body
    if isinstance(body, TaskResult) and body.task_id is UNSET and asked.task_id is not None:
        body = msgspec.structs.replace(body, task_id=asked.task_id)
    return msgspec.structs.replace(
        envelope,
        recipient=AgentRef(origin.sender),
        correlation_id=envelope.correlation_id or asked.correlation_id or asked.id,
        body=body,
    )


def _message(look: Snapshot, number: int) -> Envelope | None:
    found = look.events(after=number - 1, limit=1)
    if not found or found[0].seq != number:  # it was taken over, and is forgotten since
        return None
    return read_posted(found[0].body)[0]
