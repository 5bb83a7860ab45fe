"""Encrypted payloads (MAC only): AES-256-GCM with the whole header bound to it (H6, W1).

    payload    = base64( nonce (12 bytes) | ciphertext | tag (16 bytes) )
    plaintext  = the payload object as RFC 8785 text
    associated = "agentcanvas-encryption-v1" LF
                 RFC 8785 text of the message without payload and signature

Encrypt first, then sign, so that the signature can be checked by those who cannot read the payload.
The hub never decrypts (D34); the receiver does.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping
from typing import Any

from agentcanvas.errors import CannotDecrypt, ProtocolError, SealError
from agentcanvas.protocol.seal.canonical import canonical, check_sealable, read_object, without
from agentcanvas.protocol.seal.keyring import Keyring
from agentcanvas.protocol.seal.keys import Algorithm, Key
from agentcanvas.protocol.seal.places import MAC, SIGNATURE, at, place_of

DOMAIN = b"agentcanvas-encryption-v1\n"
KEY_ID = ("metadata", "encryption_key")
NONCE_BYTES = 12
TAG_BYTES = 16


def encrypt_payload(
    message: Mapping[str, Any], key: Key, *, nonce: bytes | None = None
) -> dict[str, Any]:
    """A copy of a MAC message whose payload only a holder of ``key`` can read.

    ``nonce`` is for test vectors; one used twice with the same key gives both payloads away.
    """
    if place_of(message) is not MAC:
        raise SealError("Only MAC messages can be encrypted; send this one in that dialect")
    if SIGNATURE in message:
        raise SealError("The message is signed already; encrypt first, then sign")
    payload = message.get("payload")
    if message.get("encrypted") or not isinstance(payload, dict):
        raise SealError("Only a payload that is an object, and not encrypted yet, can be encrypted")
    metadata = message.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ProtocolError("metadata has to be an object", pointer="/metadata")
    header = without(dict(message), "payload") | {
        "encrypted": True,
        "encryption_algorithm": str(Algorithm.AES_256_GCM),
        "metadata": metadata | {KEY_ID[-1]: key.id},
    }
    if nonce is None:
        nonce = secrets.token_bytes(NONCE_BYTES)
    sealed = nonce + key.encrypt(nonce, canonical(payload), _associated(header))
    return header | {"payload": base64.b64encode(sealed).decode()}


def decrypt_payload(raw: bytes, keyring: Keyring, *, now_ms: int) -> dict[str, Any]:
    """The payload object of the encrypted MAC message in ``raw``, the bytes as they came.

    The key is one of the sender or the receiver named in the message. Why a payload does not open
    is not said: the reason would help only someone who guesses.
    """
    message = read_object(raw)
    if message.get("encrypted") is not True:
        raise CannotDecrypt("The message is not encrypted; read its payload as it is")
    if message.get("encryption_algorithm") != Algorithm.AES_256_GCM:
        raise CannotDecrypt(f"encryption_algorithm has to be {Algorithm.AES_256_GCM}")
    key_id = at(message, KEY_ID)
    parties = (MAC.text(message, ("from",)), MAC.text(message, ("to",)))
    sealed = _from_base64(message.get("payload"))
    if sealed is None or not (key_id is None or isinstance(key_id, str)):
        raise _sealed_shut()
    associated = _associated(without(message, "payload", SIGNATURE))
    for key in keyring.opening_keys(parties, Algorithm.AES_256_GCM, key_id, now_ms=now_ms):
        plaintext = key.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated)
        if plaintext is not None:
            payload = read_object(plaintext)
            check_sealable(payload)
            return payload
    raise _sealed_shut()


def associated_data(message: Mapping[str, Any]) -> bytes:
    """What is bound to the payload of an encrypted ``message``; for checking an implementation."""
    return _associated(without(dict(message), "payload", SIGNATURE))


def _associated(header: dict[str, Any]) -> bytes:
    return DOMAIN + canonical(header)


def _sealed_shut() -> CannotDecrypt:
    return CannotDecrypt(
        "The payload cannot be decrypted: it or the header was changed, or it is for another key"
    )


def _from_base64(text: object) -> bytes | None:
    """Long enough to hold a nonce and a tag, and written in the one way that is accepted."""
    if not isinstance(text, str) or not text.isascii():
        return None
    try:
        value = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    if len(value) < NONCE_BYTES + TAG_BYTES or base64.b64encode(value).decode() != text:
        return None
    return value
