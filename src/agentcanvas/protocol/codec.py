"""The machinery the dialects share: reading quickly, reading carefully, weaving the extension.

A dialect gives its wire types and two pure functions, ``render`` (envelope to visible message) and
``lift`` (visible message to envelope). Everything about leftovers, inventions and breaches is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import InvalidMessage, ProtocolError
from agentcanvas.protocol import scan
from agentcanvas.protocol.dialect import DialectName, Reading, spoken
from agentcanvas.protocol.envelope import OURS, Envelope, Fragment
from agentcanvas.protocol.extension import (
    KEY,
    Extension,
    claims,
    given,
    is_possible,
    marks,
)
from agentcanvas.protocol.fragments import insert, without
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.scan import MAX_BYTES, is_utf8
from agentcanvas.protocol.shape import Breach, Rule, breaches_of
from agentcanvas.protocol.timestamps import is_rfc3339


class WireMessage(Protocol):
    """What the machinery needs to see of a wire message."""

    @property
    def timestamp(self) -> str: ...


W = TypeVar("W", bound=WireMessage)

_to_json = msgspec.json.Encoder().encode
_NEWLINE = ord("\n")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Hints(Struct, frozen=True):
    """What is known about a visible message beside itself while it is being lifted.

    ``kind``, ``filled``, ``left`` and ``carried`` are claims of the extension; ``sealed`` says that
    the payload is ciphertext. ``unknown`` holds the fields that were taken out of it before.
    """

    kind: Kind | UnsetType = UNSET
    filled: frozenset[str] = frozenset()
    left: msgspec.Raw | UnsetType = UNSET
    carried: bool = False
    sealed: bool = False
    unknown: tuple[Fragment, ...] = ()


NO_HINTS = Hints()


class Codec(ABC, Generic[W]):
    """A dialect, given its wire types and how they mean."""

    name: ClassVar[DialectName]
    wire_types: ClassVar[Any] = None
    id_field: ClassVar[str]
    extension_at: ClassVar[str] = f"/{KEY}"

    def __init__(self) -> None:
        self._decode = self.make_reader()

    def make_reader(self) -> Callable[[bytes], W]:
        """The quick reader of all its wire types."""
        decoder: msgspec.json.Decoder[W] = msgspec.json.Decoder(self.wire_types)
        return decoder.decode

    # What a dialect gives -----------------------------------------------------------------------

    @abstractmethod
    def render(self, envelope: Envelope) -> W:
        """The message in this dialect, with the extension it needs."""

    @abstractmethod
    def lift(self, wire: W, hints: Hints) -> Envelope:
        """What the visible message says; raises ValueError when the hints do not fit it."""

    @abstractmethod
    def detach(self, wire: W) -> tuple[W, Extension | UnsetType]:
        """The message without its extension, and the extension."""

    @abstractmethod
    def wire_type_of(self, value: dict[str, Any]) -> type[W] | Breach:
        """Which wire type parsed JSON claims to be, or why that is none."""

    def is_consistent(self, wire: W) -> bool:
        """Whether fields that depend on each other fit; types cannot express that."""
        del wire
        return True

    def inconsistency(self, wire: W) -> Breach:
        """What does not fit, where ``is_consistent`` says no; that one overrides both."""
        raise AssertionError(f"{type(self).__name__} finds {type(wire).__name__} always consistent")

    def leaves_open(self, pointer: str) -> bool:
        """Whether unknown fields are welcome at this place."""
        del pointer
        return False

    # Reading ------------------------------------------------------------------------------------

    def read(self, data: bytes) -> W:
        """The typed wire message, quickly; ProtocolError names the field that is in the way."""
        return self._read_quickly(data) or self._read_carefully(data)[0]

    def decode(self, data: bytes) -> Reading:
        """Understand a message, or raise ProtocolError naming the field that is in the way."""
        wire = self._read_quickly(data)
        if wire is not None:
            return self.understand(wire)
        wire, unknown, breaches = self._read_carefully(data)
        reading = self.understand(wire, unknown)
        if unknown and reading.envelope.origin != self.name:
            breaches += _lost_in(unknown, breaches)
        return Reading(reading.envelope, (*breaches, *reading.breaches))

    def decode_plain(self, data: bytes) -> Reading | None:
        """Understand a message of this dialect that has nothing unusual; ``None`` for any other.

        Unknown fields are unusual, those of other dialects included: whatever is read here would be
        taken for this dialect by its fields too.
        """
        wire = self._read_quickly(data)
        if wire is None or self.detach(wire)[1] is not UNSET:
            return None
        envelope = self.lift(wire, NO_HINTS)
        # What has fragments or no form of its own is put together anew, not repeated as it came.
        if envelope.fragments or envelope.kind is Kind.BROADCAST:
            return Reading(envelope)
        return Reading(envelope, spelled=_in_one_line(_to_json(wire)))

    def _read_quickly(self, data: bytes) -> W | None:
        # Size and UTF-8 are all that has to be looked at before: the types bound the depth of what
        # they name, and see to it for the free JSON they hold.
        if len(data) > MAX_BYTES or not (data.isascii() or is_utf8(data)):
            return None
        try:
            wire = self._decode(data)
        except _UNREADABLE:
            return None
        return wire if is_rfc3339(wire.timestamp) and self.is_consistent(wire) else None

    def breaches(self, value: Any) -> list[Breach]:
        """Everything about parsed JSON that is against the letter of the document."""
        return [
            breach
            for breach in self._all_breaches(value)
            if not (breach.rule is Rule.UNKNOWN_FIELD and self.leaves_open(breach.pointer))
        ]

    def _all_breaches(self, value: Any) -> list[Breach]:
        """The breaches, and the unknown fields that are none."""
        if not isinstance(value, dict):
            return [Breach(Rule.TYPE, "", "Wrong type for the message: expected an object")]
        wire_type = self.wire_type_of(value)
        if isinstance(wire_type, Breach):
            return [wire_type]
        found = breaches_of(value, wire_type)
        if isinstance(value.get("timestamp"), str) and not is_rfc3339(value["timestamp"]):
            found.append(
                Breach(
                    Rule.TIME_FORM,
                    "/timestamp",
                    f"Invalid timestamp: {value['timestamp'][:40]!r}; write RFC 3339, for example "
                    "2026-01-28T10:00:00Z",
                )
            )
        return found

    def _read_carefully(self, data: bytes) -> tuple[W, tuple[Fragment, ...], list[Breach]]:
        value = scan.parse(data)
        every = self._all_breaches(value)
        unknown = [breach.pointer for breach in every if breach.rule is Rule.UNKNOWN_FIELD]
        found = [
            breach
            for breach in every
            if not (breach.rule is Rule.UNKNOWN_FIELD and self.leaves_open(breach.pointer))
        ]
        self._raise_fatal(found, value)
        known, fragments = without(data, unknown)
        try:
            wire = self._decode(known)
        except _UNREADABLE as error:
            raise self._unreadable(error, found, value) from None
        if not self.is_consistent(wire):
            self._raise_fatal([self.inconsistency(wire)], value)
        return wire, fragments, found

    def _unreadable(self, error: Exception, found: list[Breach], value: Any) -> ProtocolError:
        """Why no message came of JSON without a fatal breach: which of two types is meant?"""
        repeated = next((breach for breach in found if breach.rule is Rule.REPEATED_KEY), None)
        if repeated is None:
            return ProtocolError(f"Not understood: {error}", message_id=self._id_in(value))
        return ProtocolError(
            repeated.sentence, pointer=repeated.pointer, message_id=self._id_in(value)
        )

    def _raise_fatal(self, found: list[Breach], value: Any) -> None:
        fatal = next((breach for breach in found if breach.fatal), None)
        if fatal is not None:
            raise ProtocolError(
                fatal.sentence,
                pointer=fatal.pointer,
                message_id=self._id_in(value),
                breaches=[str(breach) for breach in found],
            )

    def _id_in(self, value: Any) -> str | None:
        found = value.get(self.id_field) if isinstance(value, dict) else None
        return found if isinstance(found, str) else None

    # Writing ------------------------------------------------------------------------------------

    def encode(self, envelope: Envelope) -> bytes:
        """Spell a message; what the dialect cannot say travels in the extension."""
        if envelope.origin == self.name:
            data = self._spell_native(envelope)
            if envelope.fragments:
                data = self._with_fragments(data, envelope)
        else:
            data = _to_json(self.render(envelope))
        data = _in_one_line(data)
        if len(data) > MAX_BYTES:
            raise scan.too_large(len(data))
        return data

    def _spell_native(self, envelope: Envelope) -> bytes:
        """A message that was read from this dialect has all the dialect requires.

        One that only claims so, by a forged extension or made by hand, may not: then it is filled
        in like any other.
        """
        try:
            data = _to_json(self.render(envelope))
        except TypeError:
            data = b""
        if self._read_quickly(data) is None:
            data = _to_json(self.render(msgspec.structs.replace(envelope, origin=OURS)))
            try:
                self.read(data)
            except ProtocolError as error:
                raise InvalidMessage(
                    f"{envelope.kind} cannot be written in {spoken(self.name)}: {error}"
                ) from None
        return data

    def _with_fragments(self, data: bytes, envelope: Envelope) -> bytes:
        """The message with the pieces that its envelope has no field for.

        They may come from an extension, which anyone can write, so they are put back only if the
        message still says what it says without them (D33).
        """
        # What was unknown inside an extension has no place when that was not believed.
        outside = tuple(
            fragment
            for fragment in envelope.fragments
            if not fragment.pointer.startswith(f"{self.extension_at}/")
        )
        for fragments in (envelope.fragments, outside):
            try:
                whole = insert(data, fragments)
                said = _without_fragments(self.decode(whole).envelope)
            except (ProtocolError, ValueError, LookupError, *_UNREADABLE):
                continue
            meant = _without_fragments(envelope)
            if said == meant or said == _without_fragments(self.decode(data).envelope):
                return whole
        return data

    # Understanding ------------------------------------------------------------------------------

    def understand(self, wire: W, unknown: tuple[Fragment, ...] = ()) -> Reading:
        """What a wire message means, as far as its extension does not contradict it."""
        plain, extension = self.detach(wire)
        hints = Hints(unknown=unknown) if unknown else NO_HINTS
        visible = self.lift(plain, hints)
        if extension is UNSET:
            return Reading(visible)
        completed = self._believe(plain, visible, extension, unknown)
        if completed is not None:
            return Reading(completed)
        return self._believe_in_part(plain, visible, extension, unknown)

    def _believe(
        self, plain: W, visible: Envelope, extension: Extension, unknown: tuple[Fragment, ...]
    ) -> Envelope | None:
        """The message as the extension completes it, if that still looks as it does here."""
        if not is_possible(extension, self.name):
            return None
        hints = Hints(
            kind=extension.kind,
            filled=frozenset(extension.filled or ()),
            left=extension.body,
            carried=extension.carried is True,
            sealed=extension.header is not UNSET and extension.header.encrypted is True,
            unknown=unknown,
        )
        try:
            lifted = self.lift(plain, hints)
            changes = {**given(extension.header), **marks(extension)}
            completed = msgspec.structs.replace(lifted, **changes)
            alike = self._looks_alike(completed, visible)
        except (ValueError, TypeError, LookupError, *_UNREADABLE):
            return None  # claims that do not even make a message
        return completed if alike else None

    def _believe_in_part(
        self, plain: W, visible: Envelope, extension: Extension, unknown: tuple[Fragment, ...]
    ) -> Reading:
        """Take from a contradictory extension, one by one, the claims that nothing contradicts."""
        envelope, trusted = visible, Extension()
        refused: list[Breach] = []
        for name, claim in claims(extension):
            attempt = self._believe(plain, visible, claim(trusted), unknown)
            if attempt is None:
                refused.append(
                    Breach(
                        Rule.EXTENSION,
                        f"{self.extension_at}/{name}",
                        f"The extension's {name} contradicts the visible message, which counts",
                    )
                )
            else:
                envelope, trusted = attempt, claim(trusted)
        return Reading(envelope, tuple(refused))

    def _looks_alike(self, completed: Envelope, visible: Envelope) -> bool:
        if completed.origin != self.name:
            visible = msgspec.structs.replace(visible, signature=UNSET)  # of this form only
        one, _ = self.detach(self.render(completed))
        other, _ = self.detach(self.render(visible))
        # The same message may have been written with other spacing or key order.
        return one == other or scan.exactly(_to_json(one)) == scan.exactly(_to_json(other))


def _in_one_line(data: bytes) -> bytes:
    """Free-form JSON is kept as it was written, which may have been over several lines."""
    return msgspec.json.format(data, indent=-1) if _NEWLINE in data else data


def _without_fragments(envelope: Envelope) -> Envelope:
    return msgspec.structs.replace(envelope, fragments=())


def _lost_in(unknown: tuple[Fragment, ...], noted: list[Breach]) -> list[Breach]:
    """Fields that someone added to a translation; they are in no place of the original."""
    pointers = {breach.pointer for breach in noted}
    return [
        Breach(
            Rule.EXTENSION,
            fragment.pointer,
            "Added to a translation, which has no place for it; send a message of your own",
        )
        for fragment in unknown
        if fragment.pointer not in pointers
    ]
