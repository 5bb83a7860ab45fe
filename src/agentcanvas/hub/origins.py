"""Where a message belongs that does not say so itself, but answers one that may (D27)."""

from __future__ import annotations

from msgspec import UNSET

from agentcanvas.hub import mailbox, router
from agentcanvas.hub.mailbox import Origin
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.store import Snapshot


def is_vague(envelope: Envelope) -> bool:
    """Tell whether a message leaves open where it belongs, but answers one that may say it."""
    if envelope.session is not UNSET and envelope.recipient is not UNSET:
        return False
    return envelope.reply_to is not UNSET or envelope.correlation_id is not UNSET


def find_origin(look: Snapshot, envelope: Envelope) -> Origin | None:
    """Look for the message in ``reply_to``, else for the session of the correlation id (D27)."""
    for id_ in (envelope.reply_to, envelope.correlation_id):
        if id_ is not UNSET and (found := mailbox.origin(look, router.key_of(id_), id_)):
            return found
    if envelope.correlation_id is not UNSET:
        session = mailbox.session_of_thread(look, envelope.correlation_id)
        if session is not None and envelope.recipient is not UNSET:
            return Origin(session, envelope.recipient.id)
    return None
