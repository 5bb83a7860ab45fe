"""What the hub puts on record: messages, and whatever happened to them, as events of a session.

The stream of a session is ``session/<name>``. A message's event holds its content; everything else
about its delivery is in the tables of ``mailbox``.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agentcanvas.protocol.envelope import Envelope, from_json, to_json
from agentcanvas.protocol.values import Word

STREAMS = "session/"
PRESENCE = "presence"
"""The stream of who came and who was lost, whatever the session."""


class EventKind(Word):
    """Kinds of event in the stream of a session."""

    MESSAGE = "message"
    UNDELIVERABLE = "undeliverable"
    RESENT = "resent"
    DELETED = "deleted"
    RECOVERY = "recovery"
    REJECTED = "rejected"
    AGENT_LOST = "agent_lost"
    AGENT_PRESENT = "agent_present"
    CALLBACK = "callback"


def stream_of(session: str) -> str:
    """Name the stream of a session's events."""
    return STREAMS + session


class OnBehalfOf(Struct, frozen=True, omit_defaults=True):
    """For whom the engine relays, and along which edge of the flow (D22)."""

    speaker: str
    edge: str | UnsetType = UNSET


class Posted(Struct, frozen=True, omit_defaults=True):
    """A message as it was taken in; ``validation_errors`` are breaches it was not refused for.

    The duration is the time from when the hub got it to the commit that keeps it (M4).
    """

    envelope: Raw
    on_behalf_of: OnBehalfOf | UnsetType = UNSET
    validation_errors: tuple[str, ...] = ()
    processing_duration_ms: int | UnsetType = UNSET


class DeliveryFailure(Word):
    """SPEC-022's words for why a message did not arrive (H2)."""

    TIMEOUT = "timeout"
    REJECTED = "rejected"
    MALFORMED = "malformed"


class Undelivered(Struct, frozen=True, omit_defaults=True):
    """SPEC-022's MessageDeliveryError, with whom it concerns."""

    original_message_id: str
    error_type: DeliveryFailure
    retry_count: int
    max_retries: int
    sender: str
    recipient: str
    reason: str


class Resent(Struct, frozen=True):
    """A dead letter was put back into its inbox; ``letter`` is the number of its message."""

    letter: int
    recipient: str


class Deleted(Struct, frozen=True):
    """A dead letter was given up for good."""

    letter: int
    recipient: str


class Rejected(Struct, frozen=True, omit_defaults=True):
    """A message was refused at the door, for the ``suppressed + 1``-th time since the last note."""

    message_id: str
    sender: str
    code: str
    sentence: str
    suppressed: int = 0


class CallOutcome(Word):
    """What became of the call to the address that a task names."""

    CALLED = "called"
    SKIPPED = "skipped"
    FAILED = "failed"


class CallbackEnded(Struct, frozen=True, omit_defaults=True):
    """A call that was made or not; of the address only where it leads (C10)."""

    message_id: str
    host: str
    outcome: CallOutcome
    tries: int = 0
    reason: str = ""


class Owed(Struct, frozen=True):
    """A task or review that one agent owes another."""

    kind: str
    name: str
    message_id: str
    owner: str


class AgentLostEvent(Struct, frozen=True):
    """An agent fell silent or left; ``owed`` is what it had still to do."""

    agent: str
    reason: str
    owed: tuple[Owed, ...] = ()


class AgentPresentEvent(Struct, frozen=True):
    """An agent that was lost is back."""

    agent: str


Body: TypeAlias = (
    Posted
    | Undelivered
    | Resent
    | Deleted
    | Rejected
    | AgentLostEvent
    | AgentPresentEvent
    | CallbackEnded
)

encode = msgspec.json.Encoder().encode
_posted = msgspec.json.Decoder(Posted)


def posted(
    envelope: Envelope,
    on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    validation_errors: tuple[str, ...] = (),
) -> bytes:
    """Write the event of a message."""
    return encode(Posted(Raw(to_json(envelope)), on_behalf_of, validation_errors))


def timed(content: bytes, took_ms: int) -> bytes:
    """Put on the event of a message how long it took to be taken in."""
    return b'%b,"processing_duration_ms":%d}' % (content[:-1], took_ms)


def read_posted(body: bytes) -> tuple[Envelope, OnBehalfOf | UnsetType]:
    """Read the event of a message."""
    found = _posted.decode(body)
    return from_json(bytes(found.envelope)), found.on_behalf_of
