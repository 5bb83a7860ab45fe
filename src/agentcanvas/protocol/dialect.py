"""What a dialect is, and how to tell which one a message speaks.

Every dialect reads bytes into an ``Envelope`` and spells an ``Envelope`` as bytes. The three live
in ``dialects``; ``codec`` holds the machinery they share.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from agentcanvas.errors import ProtocolError, UnknownDialect
from agentcanvas.protocol import scan
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.shape import Breach
from agentcanvas.protocol.values import Word


class DialectName(Word):
    """The documented dialects."""

    MAC = "mac"
    SPEC022 = "spec022"
    ACP = "acp"


class Reading(msgspec.Struct, frozen=True):
    """A message that was understood, with every breach that did not stand in the way (M3).

    ``spelled`` is what ``encode`` would make of it in its own dialect, where that was at hand.
    """

    envelope: Envelope
    breaches: tuple[Breach, ...] = ()
    spelled: bytes = b""


class Dialect(Protocol):
    """One of the message languages agents speak."""

    @property
    def name(self) -> DialectName: ...

    def decode(self, data: bytes) -> Reading:
        """Understand a message, or raise ProtocolError naming the field that is in the way."""

    def decode_plain(self, data: bytes) -> Reading | None:
        """Understand a message of this dialect that has nothing unusual; ``None`` for any other."""

    def encode(self, envelope: Envelope) -> bytes:
        """Spell a message; what the dialect cannot say travels in the extension."""

    def breaches(self, value: Any) -> list[Breach]:
        """Everything about parsed JSON that is against the letter of the document."""


# The fields that only this dialect has.
_OWN: dict[DialectName, frozenset[str]] = {
    DialectName.MAC: frozenset({"type"}),
    DialectName.SPEC022: frozenset({"message_type", "from_agent", "to_agent", "sequence_number"}),
    DialectName.ACP: frozenset({"action", "commandId", "parameters", "results"}),
}


class _Keys(msgspec.Struct):
    """Only which of the telling fields are there; values are skipped, not decoded."""

    type: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    message_type: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    message_id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    from_agent: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    to_agent: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    sequence_number: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    action: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    commandId: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # noqa: N815 - the wire's own name
    parameters: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    results: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_keys_decoder = msgspec.json.Decoder(_Keys)


def detect(data: bytes) -> DialectName:
    """Which dialect these bytes speak, by the shape of the outermost object."""
    scan.prescan(data)
    try:
        keys = _keys_decoder.decode(data)
    except msgspec.ValidationError:
        raise _not_an_object() from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        scan.parse(data)  # says exactly what is wrong
        raise ProtocolError("Not valid JSON") from None
    return detect_keys({name for name in _Keys.__struct_fields__ if getattr(keys, name)})


def detect_value(value: Any) -> DialectName:
    """Which dialect parsed JSON speaks."""
    if not isinstance(value, dict):
        raise _not_an_object()
    return detect_keys(set(value))


def _not_an_object() -> UnknownDialect:
    return UnknownDialect(
        "Not a message: expected a JSON object of one of the dialects MAC, SPEC-022 or ACP"
    )


def detect_keys(keys: set[str]) -> DialectName:
    """Which dialect has these top-level fields."""
    claims = [name for name, own in _OWN.items() if keys & own]
    if len(claims) > 1:
        parts = "; ".join(
            f"{', '.join(sorted(keys & _OWN[name]))} ({_SPOKEN[name]})" for name in claims
        )
        raise UnknownDialect(f"Mixed dialect fields: {parts}. Use the fields of one dialect")
    if not claims:
        raise UnknownDialect(
            "Unknown dialect: no field tells it. MAC has type and from, SPEC-022 message_type and "
            "from_agent, ACP id with action or commandId"
        )
    return claims[0]


_SPOKEN = {
    DialectName.MAC: "MAC",
    DialectName.SPEC022: "SPEC-022",
    DialectName.ACP: "ACP",
}


def spoken(name: DialectName) -> str:
    """The dialect's name as people write it."""
    return _SPOKEN[name]
