"""What goes over a WebSocket: messages, and a few words between the two ends about them.

A frame is one JSON object. Most are messages of a dialect; the hub puts a last member ``delivery``
on those it hands out, which says by what number they are acknowledged. The others are ``Word`` of
the agent and ``Receipts`` or ``Settled`` of the hub; a refusal is a MAC ERROR message without
``delivery``. The HTTP door uses the same values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import ProtocolError
from agentcanvas.hub.broker import Parcel, Receipt, Settlement
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.limits import MessageLimits

DELIVERY = "delivery"
"""The member of a message that is the hub's own; it is never part of what was signed."""

PATH = "/agent/ws"
REPLACED = 4409
"""The close code of a connection whose place another one has taken (D36)."""

_MOST_NUMBERS = 10_000
_MARK = b',"delivery":{'
_WORD = re.compile(rb'\s*\{\s*"(?:ack|nack|hold|ref)"\s*:')


class Delivery(Struct, frozen=True, omit_defaults=True):
    """How a message came: ``number`` is what it is acknowledged by.

    ``redelivered`` warns that it may have come before (D28).
    """

    number: int
    session: str
    redelivered: bool = False
    tries: int = 0
    on_behalf_of: OnBehalfOf | UnsetType = UNSET


class Word(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent says of parcels in its hands, each by its number or the message's id.

    ``ack`` takes over, ``nack`` gives back, ``hold`` asks for patience. Whoever gives a ``ref`` is
    told when it is done.
    """

    ack: tuple[int | str, ...] = ()
    nack: tuple[int | str, ...] = ()
    hold: tuple[int | str, ...] = ()
    ref: int | None = None


class Receipts(Struct, frozen=True):
    """What was kept; it is on disk."""

    receipts: tuple[Receipt, ...]


class Done(Struct, frozen=True):
    """For how many parcels a word was news."""

    ref: int
    news: int


class Settled(Struct, frozen=True):
    """The answer to words with a ``ref``, each of which was carried out."""

    settled: tuple[Done, ...]


class FromHub(Struct, frozen=True):
    """A frame of the hub that is no message, or neither member."""

    receipts: tuple[Receipt, ...] | UnsetType = UNSET
    settled: tuple[Done, ...] | UnsetType = UNSET


class _Ids(Struct, frozen=True):
    message_id: str | None = None
    id: str | None = None


_encode = msgspec.json.Encoder().encode
_ids = msgspec.json.Decoder(_Ids)
_words = msgspec.json.Decoder(Word)
_deliveries = msgspec.json.Decoder(Delivery)
_from_hub = msgspec.json.Decoder(FromHub)


def is_word(frame: bytes) -> bool:
    """Tell an agent's word about parcels from a message."""
    return _WORD.match(frame) is not None


def read_word(frame: bytes) -> Word:
    """Read an agent's word."""
    try:
        word = _words.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
        raise ProtocolError(
            f"This is no word about messages: {wrong}. Write it like "
            '{"ack": [17]}, with the numbers or ids of messages.'
        ) from None
    if max(len(word.ack), len(word.nack), len(word.hold)) > _MOST_NUMBERS:
        raise ProtocolError(f"One word is about at most {_MOST_NUMBERS:,} messages; send several.")
    return word


def write_word(numbers: Sequence[int], how: Settlement, ref: int | None = None) -> bytes:
    """Write what an agent says about parcels."""
    named = tuple(numbers)
    match how:
        case Settlement.TAKEN:
            return _encode(Word(ack=named, ref=ref))
        case Settlement.FAILED:
            return _encode(Word(nack=named, ref=ref))
        case Settlement.HELD:
            return _encode(Word(hold=named, ref=ref))


def write_receipts(receipts: Sequence[Receipt]) -> bytes:
    """Say what was kept."""
    return _encode(Receipts(tuple(receipts)))


def write_settled(done: Sequence[Done]) -> bytes:
    """Say that words were heard, and for how many parcels each was news."""
    return _encode(Settled(tuple(done)))


def read_from_hub(frame: bytes) -> FromHub:
    """Read a frame of the hub that is no message."""
    try:
        return _from_hub.decode(frame)
    except msgspec.MsgspecError as wrong:
        raise ProtocolError(f"The hub's frame cannot be read: {wrong}.") from None


def delivery_of(parcel: Parcel) -> Delivery:
    """Tell how a parcel came."""
    return Delivery(
        parcel.number, parcel.session, parcel.redelivered, parcel.tries, parcel.on_behalf_of
    )


def write_delivered(message: bytes, delivery: Delivery) -> bytes:
    """Put the hub's member on a message."""
    return b'%b,"delivery":%b}' % (message[:-1], _encode(delivery))


def read_delivered(frame: bytes) -> tuple[bytes, Delivery] | None:
    """Take the hub's member off a message again; ``None`` if it has none."""
    # It is the last member, and inside of a JSON string its quotes would be escaped.
    start = frame.rfind(_MARK)
    if start < 0 or not frame.endswith(b"}}"):
        return None
    try:
        delivery = _deliveries.decode(frame[start + len(_MARK) - 1 : -1])
    except msgspec.MsgspecError:
        return None
    return frame[:start] + b"}", delivery


def without_delivery(envelope: Envelope) -> Envelope:
    """Drop the hub's member from a message that was made out of one it had handed out."""
    pointer = f"/{DELIVERY}"
    if not any(each.pointer == pointer for each in envelope.fragments):
        return envelope
    kept = tuple(each for each in envelope.fragments if each.pointer != pointer)
    return msgspec.structs.replace(envelope, fragments=kept)


def id_in(frame: bytes, limits: MessageLimits) -> str | None:
    """Look for the id of a message that was refused; one that is too large is not looked at."""
    if len(frame) > limits.size_bytes:
        return None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _ids.decode(frame)
        return found.message_id or found.id
    return None
