"""The one message every dialect maps to.

An envelope is a frozen value: after creation nothing in it can change (PR6). Absent fields are
``UNSET``; durations are milliseconds; ``time`` keeps the sender's own RFC 3339 text.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol.kinds import (
    BODY_TYPES,
    Body,
    Kind,
    Sealed,
)
from agentcanvas.protocol.scan import check_utf8
from agentcanvas.protocol.timestamps import parse_ms
from agentcanvas.protocol.values import (
    Count,
    Maybe,
    NotNegative,
    Ordinal,
    Raw,
    Value,
    Whole,
    Word,
    check_free,
)

BROADCAST = "broadcast"
"""The recipient that means everybody."""

OURS = "agentcanvas"
"""The origin of a message that was written as an envelope, not read from a dialect."""

_BODIES = dict(BODY_TYPES)

Priority = Annotated[int, Meta(ge=1, le=10)]


class AgentType(Word):
    """SPEC-022's roles; architect is our orchestrator, developer our worker."""

    ARCHITECT = "architect"
    DEVELOPER = "developer"
    REVIEWER = "reviewer"


class AgentRef(Value, frozen=True):
    """An agent by its id, with what SPEC-022 adds."""

    id: str
    type: Maybe[AgentType] = UNSET
    instance: Maybe[str] = UNSET


class RetryPolicy(Value, frozen=True):
    """How often and how soon to try again."""

    max_attempts: Ordinal
    backoff_ms: NotNegative


class Security(Value, frozen=True):
    """What the sender must be allowed to do, and whether a person has to agree."""

    permissions: tuple[str, ...]
    require_approval: Maybe[bool] = UNSET


class Fragment(Value, frozen=True):
    """A piece of the original wire form that the envelope has no field for, kept verbatim."""

    pointer: str
    json: Raw

    def __post_init__(self) -> None:
        check_free(self.json)


class Envelope(Value, frozen=True, kw_only=True):
    """A message: who says what to whom, when, and in which conversation."""

    id: str
    kind: Kind
    time: str
    sender: AgentRef
    recipient: Maybe[AgentRef] = UNSET
    body: Body
    origin: str = OURS
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
    verified_by: Maybe[str] = UNSET
    fragments: tuple[Fragment, ...] = ()

    def __post_init__(self) -> None:
        if type(self.body) is not (Sealed if self.encrypted is True else _BODIES[self.kind]):
            expected = Sealed if self.encrypted is True else _BODIES[self.kind]
            got = type(self.body).__name__
            raise ValueError(f"the body of {self.kind} must be {expected.__name__}, not {got}")

    def __hash__(self) -> int:
        # Free JSON has no hash of its own; the sender's id for a message is there to tell it apart.
        return hash((self.id, self.sender.id, self.kind))

    @property
    def is_broadcast(self) -> bool:
        """Whether the message is for everybody."""
        return self.recipient is not UNSET and self.recipient.id == BROADCAST

    @property
    def time_ms(self) -> int:
        """When the sender says it was sent, in milliseconds since the epoch."""
        return parse_ms(self.time)

    @property
    def task_id(self) -> str | None:
        """The task this message is about, if it says so."""
        found = getattr(self.body, "task_id", UNSET)
        return found if isinstance(found, str) else None


# msgspec tells struct types in a union apart only by a tag, and the wire form has its tag
# (``kind``) outside the body, so an envelope is read in two steps.
EnvelopeHeader: Any = msgspec.defstruct(
    "EnvelopeHeader",
    [
        (field.name, Raw if field.name == "body" else field.type, field.default)
        if not field.required
        else (field.name, Raw if field.name == "body" else field.type)
        for field in msgspec.structs.fields(Envelope)
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
_header_decoder = msgspec.json.Decoder(EnvelopeHeader)
_body_decoders = {kind: msgspec.json.Decoder(body) for kind, body in BODY_TYPES.items()}
_sealed_decoder = msgspec.json.Decoder(Sealed)


def to_json(envelope: Envelope) -> bytes:
    """The envelope as the store keeps it: one line of JSON."""
    line = msgspec.json.encode(envelope)
    # A verbatim fragment may have been written over several lines.
    return msgspec.json.format(line, indent=-1) if b"\n" in line else line


def from_json(line: bytes) -> Envelope:
    """Read what ``to_json`` wrote."""
    try:
        check_utf8(line)
        header = _header_decoder.decode(line)
        parse_ms(header.time)
        decoder = _sealed_decoder if header.encrypted is True else _body_decoders[header.kind]
        fields = {name: getattr(header, name) for name in EnvelopeHeader.__struct_fields__}
        fields["body"] = decoder.decode(header.body)
        return Envelope(**fields)
    except (msgspec.MsgspecError, ProtocolError, RecursionError, ValueError) as error:
        raise ProtocolError(f"Not an envelope: {error}") from None
