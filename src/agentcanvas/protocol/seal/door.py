"""What the hub asks of a message at its door: signed or not, by whom, and is it fresh (C8, C9)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from agentcanvas.errors import BadSignature, ProtocolError
from agentcanvas.protocol.seal.canonical import read_object
from agentcanvas.protocol.seal.keyring import Keyring
from agentcanvas.protocol.seal.places import SIGNATURE, has, place_of
from agentcanvas.protocol.seal.replay import ReplayGuard, skew_note
from agentcanvas.protocol.seal.sign import Verified, verify
from agentcanvas.protocol.timestamps import parse_ms

_SIGNATURE = SIGNATURE.encode()
_ESCAPE, _UNICODE_ESCAPE = b"\\", b"\\u"


class Demand(StrEnum):
    """What is asked of an agent's messages."""

    OFF = "off"
    """Signatures are not looked at."""
    ACCEPT = "accept"
    """A signature is checked if there is one."""
    REQUIRE = "require"
    """Without a valid signature nothing gets in."""


class SealPolicy(msgspec.Struct, frozen=True):
    """The demand on each agent, and on those not named."""

    default: Demand = Demand.ACCEPT
    agents: Mapping[str, Demand] = {}

    def demand_on(self, agent: str) -> Demand:
        """What is asked of this agent."""
        return self.agents.get(agent, self.default)


class Unverified(msgspec.Struct, frozen=True):
    """A message let in without a signature; ``note`` is a remark on its clock, if any (C9)."""

    note: str | None = None


def open_sealed(
    raw: bytes,
    *,
    sender: str,
    policy: SealPolicy,
    keyring: Keyring,
    guard: ReplayGuard,
    now_ms: int,
    dialect: str | None = None,
) -> Verified | Unverified:
    """Judge the bytes that the authenticated ``sender`` handed in, as the policy asks.

    A ``SealError`` says why they stay outside. ``Repeated`` means that the very same message was
    let in before: answer as the first time.
    """
    demand = policy.demand_on(sender)
    if demand is Demand.OFF:
        return Unverified()
    message = _glance(raw)
    if not has(message, place_of(message, dialect).signature):
        if demand is Demand.REQUIRE:
            raise BadSignature(f"{sender[:80]!r} has to sign its messages; this one is not signed")
        return Unverified(_note_on(message, guard.window_ms, now_ms))
    verified = verify(raw, keyring, now_ms=now_ms, dialect=dialect)
    if verified.signer != sender:
        raise BadSignature(
            f"The message is signed by {verified.signer[:80]!r} but was handed in by "
            f"{sender[:80]!r}; an agent sends only its own messages"
        )
    guard.admit(
        verified.signer,
        verified.message_id,
        timestamp_ms=verified.timestamp_ms,
        fingerprint=verified.fingerprint,
        now_ms=now_ms,
    )
    return verified


def is_plainly_unsigned(raw: bytes) -> bool:
    """Tell, without reading it, that no member of a message can be called ``signature``."""
    if _SIGNATURE in raw:
        return False
    # Only an escape of a code can spell a letter; a single byte is found faster than two.
    return _ESCAPE not in raw or _UNICODE_ESCAPE not in raw


def note_on_time(time: str, window_ms: int, now_ms: int) -> str | None:
    """Return a remark on a timestamp that was understood, if it is far from our clock (C9)."""
    return skew_note(parse_ms(time), now_ms=now_ms, window_ms=window_ms)


def _glance(raw: bytes) -> dict[str, Any]:
    """A quick look that tells a signed message from others; ``verify`` reads it with care.

    An unsigned message is not held to what can be sealed, so the careful reader is only asked for
    its explanation when the quick one fails.
    """
    try:
        message = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = read_object(raw)
    if not isinstance(message, dict):
        raise ProtocolError("A message is a JSON object; put it into { }")
    return message


def _note_on(message: Mapping[str, Any], window_ms: int, now_ms: int) -> str | None:
    try:
        timestamp_ms = parse_ms(message["timestamp"])
    except (KeyError, TypeError, ProtocolError):
        return None  # judged where messages are validated
    return skew_note(timestamp_ms, now_ms=now_ms, window_ms=window_ms)
