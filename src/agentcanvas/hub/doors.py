"""What every door to the network asks of the bytes it gets, before the hub sees a message.

In this order: size, before anything is parsed (L1); seal, on the bytes as they came (C8); language
(M3). How bytes arrive, and how an answer goes back, is left to the doors.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Struct

from agentcanvas.errors import MessageTooLarge, ProtocolError, Repeated, SealError
from agentcanvas.protocol.dialect import Reading
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.limits import MessageLimits
from agentcanvas.protocol.seal import (
    Demand,
    Keyring,
    ReplayGuard,
    SealPolicy,
    Unverified,
    Verified,
    is_plainly_unsigned,
    note_on_time,
    open_sealed,
    verify,
)

VERIFIED_BY_HUB = "verified_by_hub"
_DEFAULT_POLICY = SealPolicy()


def check_size(size: int, limits: MessageLimits) -> None:
    """Refuse what is too large, by what is announced or by what has come, before parsing."""
    if size > limits.size_bytes:
        raise MessageTooLarge(
            f"The message has {size} bytes, more than the {limits.size_bytes} allowed; "
            "send large content as a blob."
        )


class SealDoor:
    """What is asked of each agent's messages: signatures, and encrypted payloads (H6)."""

    def __init__(
        self,
        keyring: Keyring,
        guard: ReplayGuard,
        *,
        signatures: SealPolicy = _DEFAULT_POLICY,
        encryption: SealPolicy = _DEFAULT_POLICY,
    ) -> None:
        self.keyring = keyring
        self.signatures = signatures
        self.encryption = encryption
        self._guard = guard

    def open(
        self, raw: bytes, *, sender: str, now_ms: int, dialect: str | None = None
    ) -> Verified | Unverified:
        """Judge the bytes that an authenticated sender handed in.

        A resend of what was let in before is let in again: the hub knows it by its id (M5).
        """
        try:
            return open_sealed(
                raw,
                sender=sender,
                policy=self.signatures,
                keyring=self.keyring,
                guard=self._guard,
                now_ms=now_ms,
                dialect=dialect,
            )
        except Repeated:
            return verify(raw, self.keyring, now_ms=now_ms, dialect=dialect)

    def needs_no_look(self, raw: bytes, sender: str) -> bool:
        """Tell whether a message may be unsigned, and plainly is."""
        return self.signatures.demand_on(sender) is Demand.ACCEPT and is_plainly_unsigned(raw)

    def note_on(self, envelope: Envelope, now_ms: int) -> Unverified:
        """Judge a message that needed no look; the same as ``open`` says of it."""
        return Unverified(note_on_time(envelope.time, self._guard.window_ms, now_ms))

    def check_encryption(self, envelope: Envelope) -> None:
        """Hold a message to what its sender's payloads have to be."""
        demand = self.encryption.demand_on(envelope.sender.id)
        encrypted = envelope.encrypted is True
        if demand is Demand.OFF and encrypted:
            raise SealError(
                f"{envelope.sender.id} may not encrypt its payloads; send this one in the clear."
            )
        if demand is Demand.REQUIRE and not encrypted and envelope.kind is not Kind.HEARTBEAT:
            raise SealError(f"{envelope.sender.id} has to encrypt its payloads; this one is not.")


class Admitted(Struct, frozen=True):
    """A message that may be handed to the hub, and what was noted about it on the way.

    ``spelled`` is the message in its own dialect, where nothing has to be done to write it.
    """

    envelope: Envelope
    breaches: tuple[str, ...] = ()
    signer: str | None = None
    spelled: bytes = b""


def admit(
    raw: bytes,
    *,
    sender: str,
    decode: Callable[[bytes], Reading],
    seal: SealDoor,
    limits: MessageLimits,
    now_ms: int,
    dialect: str | None = None,
) -> Admitted:
    """Take a message in from the wire, or raise why not; ``decode`` reads its dialect."""
    check_size(len(raw), limits)
    sealed: Verified | Unverified | None = None
    if not seal.needs_no_look(raw, sender):
        sealed = seal.open(raw, sender=sender, now_ms=now_ms, dialect=dialect)
    reading = decode(raw)
    envelope = reading.envelope
    if envelope.verified_by is not UNSET:
        raise ProtocolError("Only the hub says who has verified a message; leave the field out.")
    seal.check_encryption(envelope)
    breaches = [str(breach) for breach in reading.breaches]
    if sealed is None:
        sealed = seal.note_on(envelope, now_ms)
    if isinstance(sealed, Verified):
        envelope = msgspec.structs.replace(envelope, verified_by=VERIFIED_BY_HUB)
        return Admitted(envelope, tuple(breaches), sealed.signer)
    if sealed.note:
        breaches.append(sealed.note)
    return Admitted(envelope, tuple(breaches), spelled=reading.spelled)
