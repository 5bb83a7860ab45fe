"""Keys: what they are made of, whose they are, and until when they hold.

A key does one job (its algorithm) for one owner. Its secret never shows in a repr, a log line or
an encoded value (D37); ``secret_bytes`` is the only way out. Where keys are kept belongs to the
store, which of them is used to ``keyring``.
"""

from __future__ import annotations

import hmac
import re
import secrets
from enum import StrEnum
from typing import NoReturn

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from agentcanvas.errors import ValidationError

SECRET_BYTES = 32
is_key_id = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII).fullmatch


class Algorithm(StrEnum):
    """What a key is for; the values are the words on the wire."""

    HMAC_SHA256 = "SHA256"
    ED25519 = "ED25519"
    AES_256_GCM = "AES-256-GCM"


class Secret:
    """Bytes that do not show themselves."""

    __slots__ = ("_bytes",)

    def __init__(self, material: bytes) -> None:
        self._bytes = bytes(material)

    def reveal(self) -> bytes:
        """The bytes; use them in place and do not keep them in a variable a traceback may print."""
        return self._bytes

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._bytes, other._bytes)

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is neither copied nor pickled; use reveal() on purpose")


Material = Secret | Ed25519PrivateKey | Ed25519PublicKey


def new_material(algorithm: Algorithm) -> Material:
    """Fresh random material for a key."""
    return secret_material(algorithm, secrets.token_bytes(SECRET_BYTES))


def secret_material(algorithm: Algorithm, secret: bytes) -> Material:
    """The material whose ``secret_bytes`` were kept; for Ed25519 the 32-byte seed of RFC 8032."""
    if algorithm is Algorithm.ED25519:
        _check_length("An Ed25519 private key", secret)
        return Ed25519PrivateKey.from_private_bytes(secret)
    return Secret(secret)


def public_material(public: bytes) -> Material:
    """The public half of another agent's Ed25519 key: verifies, cannot sign."""
    _check_length("An Ed25519 public key", public)
    return Ed25519PublicKey.from_public_bytes(public)


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One owner's key for one algorithm, accepted from ``not_before_ms`` to ``not_after_ms``."""

    owner: str
    id: str
    algorithm: Algorithm
    material: Material
    not_before_ms: int = 0
    not_after_ms: int | None = None

    def __post_init__(self) -> None:
        if not self.owner:
            raise ValidationError("A key needs an owner; name the agent it belongs to")
        if is_key_id(self.id) is None:
            raise ValidationError(
                f"Key id {self.id[:80]!r} is not valid; use 1 to 64 letters, digits, '.', '_', '-'"
            )
        _check_material(self.algorithm, self.material)

    def secret_bytes(self) -> bytes:
        """What has to be kept safe to have this key again."""
        if isinstance(self.material, Secret):
            return self.material.reveal()
        if isinstance(self.material, Ed25519PrivateKey):
            return self.material.private_bytes_raw()
        raise ValidationError(f"Key {self.id!r} of {self.owner!r} is public; it has no secret")

    def public_bytes(self) -> bytes:
        """What an Ed25519 key may show to everybody."""
        return _public(self.material).public_bytes_raw()

    @property
    def can_seal(self) -> bool:
        """Whether it can sign or encrypt, not only verify."""
        return not isinstance(self.material, Ed25519PublicKey)

    def holds_at(self, now_ms: int) -> bool:
        """Whether it is accepted at that time."""
        return self.not_before_ms <= now_ms and (
            self.not_after_ms is None or now_ms <= self.not_after_ms
        )

    def signature(self, data: bytes) -> bytes:
        """The signature of ``data``."""
        if self.algorithm is Algorithm.HMAC_SHA256 and isinstance(self.material, Secret):
            # Not hmac.digest: its frame would show the secret in a traceback with locals.
            keyed = HMAC(self.material.reveal(), SHA256())
            keyed.update(data)
            return keyed.finalize()
        if isinstance(self.material, Ed25519PrivateKey):
            return self.material.sign(data)
        raise self._cannot("sign")

    def verifies(self, data: bytes, signature: bytes) -> bool:
        """Whether ``signature`` belongs to ``data`` and this key, compared in constant time."""
        if self.algorithm is Algorithm.HMAC_SHA256:
            return hmac.compare_digest(self.signature(data), signature)
        try:
            _public(self.material).verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def encrypt(self, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
        """Ciphertext with its tag at the end."""
        return self._cipher().encrypt(nonce, plaintext, associated)

    def decrypt(self, nonce: bytes, ciphertext: bytes, associated: bytes) -> bytes | None:
        """The plaintext, or None if anything at all was changed or the key is another one."""
        try:
            return self._cipher().decrypt(nonce, ciphertext, associated)
        except InvalidTag:
            return None

    def _cipher(self) -> AESGCM:
        if self.algorithm is Algorithm.AES_256_GCM and isinstance(self.material, Secret):
            return AESGCM(self.material.reveal())
        raise self._cannot("encrypt")

    def _cannot(self, verb: str) -> ValidationError:
        return ValidationError(
            f"Key {self.id!r} of {self.owner!r} ({self.algorithm}) cannot {verb}; use another key"
        )


def _check_material(algorithm: Algorithm, material: object) -> None:
    if algorithm is Algorithm.ED25519:
        if not isinstance(material, Ed25519PrivateKey | Ed25519PublicKey):
            raise ValidationError("An Ed25519 key needs Ed25519 material; use secret_material")
    elif not isinstance(material, Secret):
        raise ValidationError(f"A {algorithm} key needs secret bytes; use secret_material")
    elif algorithm is Algorithm.AES_256_GCM:
        _check_length("An AES-256-GCM key", material.reveal())
    elif len(material.reveal()) < SECRET_BYTES:
        raise ValidationError(
            f"An HMAC key needs at least {SECRET_BYTES} bytes; this one has "
            f"{len(material.reveal())}"
        )


def _check_length(what: str, material: bytes) -> None:
    if len(material) != SECRET_BYTES:
        raise ValidationError(f"{what} has exactly {SECRET_BYTES} bytes; this has {len(material)}")


def _public(material: Material) -> Ed25519PublicKey:
    if isinstance(material, Ed25519PrivateKey):
        return material.public_key()
    if isinstance(material, Ed25519PublicKey):
        return material
    raise ValidationError("Only an Ed25519 key has a public half")
