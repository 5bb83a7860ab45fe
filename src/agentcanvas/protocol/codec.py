"""The machinery the dialects share: reading quickly, reading carefully, weaving the extension.

A dialect gives its wire types and two pure functions, ``render`` (envelope to visible message) and
``lift`` (visible message to envelope). Everything about leftovers, inventions and breaches is here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.errors import InvalidMessage, ProtocolError
from agentcanvas.protocol import scan
from agentcanvas.protocol.dialect import DialectName, Reading, spoken
from agentcanvas.protocol.envelope import Envelope, Fragment
from agentcanvas.protocol.extension import KEY, NOTHING_HELD, Extension, Held
from agentcanvas.protocol.fragments import insert, without
from agentcanvas.protocol.kinds import BODY_TYPES, Body, Kind, Sealed
from agentcanvas.protocol.mapping import Shown
from agentcanvas.protocol.shape import Breach, Rule, breaches_of
from agentcanvas.protocol.timestamps import is_rfc3339
from agentcanvas.protocol.values import Maybe, freeze


class WireMessage(Protocol):
    """What the machinery needs to see of a wire message."""

    @property
    def timestamp(self) -> str: ...


W = TypeVar("W", bound=WireMessage)

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Rendering(Struct, Generic[W]):
    """A visible message, and what it does not show."""

    wire: W
    held: Held
    shown: Shown


class Hints(Struct, frozen=True):
    """What the extension claims about a visible message while it is being lifted."""

    kind: Kind | UnsetType = UNSET
    filled: frozenset[str] = frozenset()
    carried: bool = False
    sealed: bool = False


NO_HINTS = Hints()


class Lifted(Struct):
    """The visible part of a message as envelope fields; ``body`` as loose fields by name."""

    header: dict[str, Any]
    kind: Kind
    body: dict[str, Any]
    carrier: msgspec.Raw | UnsetType = UNSET
    fragments: tuple[Fragment, ...] = ()


class Codec(ABC, Generic[W]):
    """A dialect, given its wire types and how they mean."""

    name: ClassVar[DialectName]
    wire_types: ClassVar[Any]
    id_field: ClassVar[str]

    def __init__(self) -> None:
        self._decoder: msgspec.json.Decoder[W] = msgspec.json.Decoder(self.wire_types)

    # What a dialect gives -----------------------------------------------------------------------

    @abstractmethod
    def render(self, envelope: Envelope) -> Rendering[W]:
        """The visible message, without an extension."""

    @abstractmethod
    def lift(self, wire: W, hints: Hints) -> Lifted:
        """What the visible message says; raises ValueError when the hints do not fit it."""

    @abstractmethod
    def detach(self, wire: W) -> tuple[W, Extension | UnsetType]:
        """The message without its extension, and the extension."""

    @abstractmethod
    def attach(self, wire: W, extension: Extension) -> W:
        """The message with an extension."""

    @abstractmethod
    def wire_type_of(self, value: dict[str, Any]) -> type[W] | Breach:
        """Which wire type parsed JSON claims to be, or why that is none."""

    def quirks(self, wire: W) -> Breach | None:
        """A breach that types cannot express and that makes the message unreadable."""
        del wire
        return None

    def leaves_open(self, pointer: str) -> bool:
        """Whether unknown fields are welcome at this place."""
        del pointer
        return False

    # Reading ------------------------------------------------------------------------------------

    def read(self, data: bytes) -> W:
        """The typed wire message, quickly; ProtocolError names the field that is in the way."""
        scan.prescan(data)
        wire = self._read_quickly(data)
        return self._read_carefully(data)[0] if wire is None else wire

    def decode(self, data: bytes) -> Reading:
        """Understand a message, or raise ProtocolError naming the field that is in the way."""
        scan.prescan(data)
        wire = self._read_quickly(data)
        if wire is not None:
            envelope, contradictions = self._understand(wire, ())
            return Reading(envelope, contradictions)
        wire, unknown, breaches = self._read_carefully(data)
        envelope, contradictions = self._understand(wire, unknown)
        return Reading(envelope, (*breaches, *contradictions))

    def _read_quickly(self, data: bytes) -> W | None:
        try:
            wire = self._decoder.decode(data)
        except _UNREADABLE:
            return None
        return wire if is_rfc3339(wire.timestamp) and self.quirks(wire) is None else None

    def breaches(self, value: Any) -> list[Breach]:
        """Everything about parsed JSON that is against the letter of the document."""
        if not isinstance(value, dict):
            return [Breach(Rule.TYPE, "", "Wrong type for the message: expected an object")]
        wire_type = self.wire_type_of(value)
        if isinstance(wire_type, Breach):
            return [wire_type]
        found = [
            breach
            for breach in breaches_of(value, wire_type)
            if not (breach.rule is Rule.UNKNOWN_FIELD and self.leaves_open(breach.pointer))
        ]
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
        found = self.breaches(value)
        self._raise_fatal(found, value)
        pointers = [breach.pointer for breach in found if breach.rule is Rule.UNKNOWN_FIELD]
        if isinstance(value, dict):
            wire_type = self.wire_type_of(value)
            pointers += [
                breach.pointer
                for breach in breaches_of(value, wire_type)
                if breach.rule is Rule.UNKNOWN_FIELD and breach.pointer not in pointers
            ]
        known, fragments = without(data, pointers)
        try:
            wire = self._decoder.decode(known)
        except _UNREADABLE as error:
            raise ProtocolError(str(error), message_id=self._id_in(value)) from None
        quirk = self.quirks(wire)
        self._raise_fatal([quirk] if quirk else [], value)
        return wire, fragments, found

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

    # Weaving the extension ----------------------------------------------------------------------

    def encode(self, envelope: Envelope) -> bytes:
        """Spell a message; what the dialect cannot say travels in the extension."""
        try:
            rendering = self.render(envelope)
        except TypeError as error:
            # Only an envelope made by hand with our origin's name can lack a required field.
            raise InvalidMessage(
                f"{envelope.kind} cannot be written in {spoken(self.name)}: {error}"
            ) from None
        extension = self._extension(envelope, rendering)
        wire = rendering.wire if extension is None else self.attach(rendering.wire, extension)
        data = msgspec.json.encode(wire)
        if envelope.fragments and envelope.origin == self.name:
            data = insert(data, envelope.fragments)
        # Free-form JSON is kept as it was written, which may have been over several lines.
        return msgspec.json.format(data, indent=-1) if b"\n" in data else data

    def _extension(self, envelope: Envelope, rendering: Rendering[W]) -> Extension | None:
        shown = rendering.shown
        foreign = envelope.origin != self.name
        signature: Maybe[str] = UNSET
        held = rendering.held
        if not foreign and held.signature is not UNSET:
            # This dialect has no field for a signature of its own.
            signature, held = held.signature, msgspec.structs.replace(held, signature=UNSET)
        nothing_held = held == NOTHING_HELD
        if not (foreign or shown.left or not nothing_held or signature or envelope.verified_by):
            return None
        return Extension(
            kind=envelope.kind if foreign else UNSET,
            origin=envelope.origin if foreign else UNSET,
            filled=tuple(shown.filled) or UNSET,
            header=UNSET if nothing_held else held,
            body=freeze(shown.left) if shown.left else UNSET,
            carried=shown.carried or UNSET,
            fragments=(envelope.fragments or UNSET) if foreign else UNSET,
            signature=signature,
            verified_by=envelope.verified_by,
        )

    def _understand(
        self, wire: W, unknown: tuple[Fragment, ...]
    ) -> tuple[Envelope, tuple[Breach, ...]]:
        plain, extension = self.detach(wire)
        visible = self._assemble(self.lift(plain, NO_HINTS), unknown)
        if extension is UNSET:
            return visible, ()
        believed = self._believe(plain, visible, extension, unknown)
        if believed is not None:
            return believed, ()
        return self._believe_in_part(plain, visible, extension, unknown)

    def _believe(
        self, plain: W, visible: Envelope, extension: Extension, unknown: tuple[Fragment, ...]
    ) -> Envelope | None:
        """The message as the extension completes it, if that still looks as it does here."""
        hints = Hints(
            kind=extension.kind,
            filled=frozenset(extension.filled or ()),
            carried=extension.carried is True,
            sealed=extension.header is not UNSET and extension.header.encrypted is True,
        )
        try:
            lifted = self.lift(plain, hints)
            left = extension.body if lifted.carrier is UNSET else lifted.carrier
            header = {**lifted.header, **_given(extension.header), **_given_marks(extension)}
            completed = self._assemble(
                msgspec.structs.replace(lifted, header=header), unknown, left=left
            )
            alike = self._looks_alike(completed, visible)
        except (ValueError, TypeError, LookupError, *_UNREADABLE):
            return None  # claims that do not even make a message
        return completed if alike else None

    def _believe_in_part(
        self, plain: W, visible: Envelope, extension: Extension, unknown: tuple[Fragment, ...]
    ) -> tuple[Envelope, tuple[Breach, ...]]:
        """Take from a contradictory extension, one by one, the claims that nothing contradicts."""
        envelope, trusted = visible, Extension()
        refused: list[str] = []
        for name, claim in _claims(extension):
            attempt = self._believe(plain, visible, claim(trusted), unknown)
            if attempt is None:
                refused.append(name)
            else:
                envelope, trusted = attempt, claim(trusted)
        return envelope, tuple(
            Breach(
                Rule.EXTENSION,
                f"/{KEY}/{name}",
                f"The extension's {name} contradicts the visible message; the visible one counts",
            )
            for name in refused
        )

    def _looks_alike(self, completed: Envelope, visible: Envelope) -> bool:
        one, other = self.render(completed).wire, self.render(visible).wire
        # The same message may have been written with other spacing or key order.
        return one == other or _parsed(one) == _parsed(other)

    def _assemble(
        self,
        lifted: Lifted,
        unknown: tuple[Fragment, ...],
        *,
        left: msgspec.Raw | UnsetType = UNSET,
    ) -> Envelope:
        header = lifted.header
        if header.setdefault("origin", self.name) == self.name:
            header["fragments"] = (*lifted.fragments, *unknown)
        body_type = Sealed if header.get("encrypted") is True else BODY_TYPES[lifted.kind]
        return Envelope(kind=lifted.kind, body=_body(body_type, lifted.body, left), **header)


def _body(body_type: type[Body], fields: dict[str, Any], left: msgspec.Raw | UnsetType) -> Body:
    if left is UNSET:
        return body_type(**fields)
    rest = msgspec.json.decode(left, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(msgspec.json.encode({**fields, **rest}), type=body_type)


def _given(held: Held | UnsetType) -> dict[str, Any]:
    if held is UNSET:
        return {}
    return {
        name: value
        for name in Held.__struct_fields__
        if (value := getattr(held, name)) is not UNSET
    }


def _given_marks(extension: Extension) -> dict[str, Any]:
    """What an extension says about the message beside its content."""
    marks: dict[str, Any] = {}
    if extension.origin is not UNSET:
        marks["origin"] = extension.origin
        marks["fragments"] = extension.fragments or ()
    if extension.signature is not UNSET:
        marks["signature"] = extension.signature
    if extension.verified_by is not UNSET:
        marks["verified_by"] = extension.verified_by
    return marks


def _claims(extension: Extension) -> list[tuple[str, Any]]:
    """An extension as single claims, each a function that adds itself to a trusted extension."""

    def whole(**fields: Any) -> Any:
        return lambda trusted: msgspec.structs.replace(trusted, **fields)

    def part(name: str, value: Any) -> Any:
        def add(trusted: Extension) -> Extension:
            held = trusted.header or NOTHING_HELD
            return msgspec.structs.replace(
                trusted, header=msgspec.structs.replace(held, **{name: value})
            )

        return add

    def invention(pointer: str) -> Any:
        return lambda trusted: msgspec.structs.replace(
            trusted, filled=(*(trusted.filled or ()), pointer)
        )

    meaning = ("kind", "origin", "body", "carried", "fragments")
    claims: list[tuple[str, Any]] = [
        ("kind", whole(**{name: getattr(extension, name) for name in meaning})),
        ("signature", whole(signature=extension.signature)),
        ("verified_by", whole(verified_by=extension.verified_by)),
    ]
    claims += [(f"filled: {pointer}", invention(pointer)) for pointer in extension.filled or ()]
    claims += [(f"header/{name}", part(name, v)) for name, v in _given(extension.header).items()]
    return claims


def _parsed(wire: object) -> Any:
    # The standard parser also takes numbers that are beyond a double.
    return json.loads(msgspec.json.encode(wire))
