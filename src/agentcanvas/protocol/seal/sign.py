"""Signatures: the text on the wire, the bytes it covers, making and checking it (H6, C8).

    signature = algorithm ":" [ key id ":" ] base64url without padding
    covered   = "agentcanvas-signature-v1" LF
                the signature text up to and including its last colon LF
                RFC 8785 text of the message without its signature member

``docs/seal.md`` describes it for other languages. Whether a message has to be signed is decided in
``door``, whether it was seen before in ``replay``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from copy import copy
from typing import Any

import msgspec

from agentcanvas.errors import BadSignature, ProtocolError
from agentcanvas.protocol.seal.canonical import canonical, read_object, without
from agentcanvas.protocol.seal.keyring import Keyring
from agentcanvas.protocol.seal.keys import Algorithm, Key
from agentcanvas.protocol.seal.places import EXTENSION, SIGNATURE, Place, at, has, place_of
from agentcanvas.protocol.timestamps import parse_ms

# No other use of a key starts its bytes like this, so no signature can be taken for another's.
DOMAIN = b"agentcanvas-signature-v1\n"

_SIGNATURE = re.compile(
    r"(?P<head>(?P<algorithm>SHA256|ED25519):(?:(?P<key_id>[A-Za-z0-9._-]{1,64}):)?)"
    r"(?P<value>[A-Za-z0-9_-]+)",
    re.ASCII,
).fullmatch


class SignatureText(msgspec.Struct, frozen=True):
    """A signature as it is written; ``head`` is the part that is signed along."""

    head: str
    algorithm: Algorithm
    key_id: str | None
    value: bytes


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """A message whose signature holds: who signed it, with which key, and what it is."""

    signer: str
    key_id: str
    algorithm: Algorithm
    dialect: str
    message_id: str
    timestamp_ms: int
    fingerprint: bytes
    """SHA-256 of what the message says, the same however it is spelled or signed."""


def sign(message: Mapping[str, Any], key: Key, *, dialect: str | None = None) -> dict[str, Any]:
    """A copy of ``message`` with its signature, in place of any it had."""
    place = place_of(message, dialect)
    unsigned = _unsigned(dict(message), place)
    head = f"{key.algorithm}:{key.id}:"
    text = head + _base64url(key.signature(_covered(head, canonical(unsigned))))
    if place.signature[0] == EXTENSION:
        return unsigned | {EXTENSION: unsigned[EXTENSION] | {SIGNATURE: text}}
    return unsigned | {SIGNATURE: text}


def verify(raw: bytes, keyring: Keyring, *, now_ms: int, dialect: str | None = None) -> Verified:
    """Check the signature of the message in ``raw``, the bytes as they came.

    Says nothing about its age: pass the result to ``ReplayGuard.admit``.
    """
    message = read_object(raw)
    place = place_of(message, dialect)
    if not has(message, place.signature):
        raise BadSignature("The message has no signature; sign it with the sender's key")
    written = read_signature(at(message, place.signature))
    body = canonical(_unsigned(message, place))
    signer = place.text(message, place.sender)
    keys = keyring.opening_keys((signer,), written.algorithm, written.key_id, now_ms=now_ms)
    covered = _covered(written.head, body)
    for key in keys:
        if key.verifies(covered, written.value):
            return Verified(
                signer=signer,
                key_id=key.id,
                algorithm=key.algorithm,
                dialect=place.dialect,
                message_id=place.text(message, place.message_id),
                timestamp_ms=_sent_ms(message, place),
                fingerprint=hashlib.sha256(body).digest(),
            )
    raise BadSignature(
        f"The signature does not belong to this message and a key of {signer[:80]!r}: "
        "the message was changed on its way, or another key signed it"
    )


def read_signature(text: object) -> SignatureText:
    """The parts of a signature; every signature has exactly one way to be written."""
    match = _SIGNATURE(text) if isinstance(text, str) else None
    value = _from_base64url(match["value"]) if match else None
    if match is None or value is None:
        raise BadSignature(
            "The signature cannot be read; write SHA256:<key id>:<base64url without padding>, "
            "or ED25519 in front"
        )
    return SignatureText(match["head"], Algorithm(match["algorithm"]), match["key_id"], value)


def signed_bytes(message: Mapping[str, Any], head: str, *, dialect: str | None = None) -> bytes:
    """The bytes a signature that starts with ``head`` covers; for checking an implementation."""
    return _covered(head, canonical(_unsigned(dict(message), place_of(message, dialect))))


def _covered(head: str, body: bytes) -> bytes:
    return b"%b%b\n%b" % (DOMAIN, head.encode(), body)


def _unsigned(message: dict[str, Any], place: Place) -> dict[str, Any]:
    """The message without exactly one member, its signature.

    The extension object stays even when it becomes empty: one rule, with no case to forget.
    """
    if place.signature[0] != EXTENSION:
        return without(message, SIGNATURE)
    extension = message.get(EXTENSION, {})
    if not isinstance(extension, dict):
        raise ProtocolError(f"{EXTENSION} has to be an object", pointer=f"/{EXTENSION}")
    unsigned = copy(message)
    unsigned[EXTENSION] = without(extension, SIGNATURE)
    return unsigned


def _sent_ms(message: Mapping[str, Any], place: Place) -> int:
    try:
        return parse_ms(place.text(message, ("timestamp",)))
    except ProtocolError as error:
        raise ProtocolError(str(error), pointer="/timestamp") from None


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _from_base64url(text: str) -> bytes | None:
    try:
        value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
    # The last character has unused bits, which decoders ignore: only one spelling is accepted.
    return value if _base64url(value) == text else None
