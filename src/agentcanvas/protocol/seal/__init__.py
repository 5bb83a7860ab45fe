"""Seals: who said it, that nobody changed it, that nobody else reads it, that it counts once.

Sealing works on JSON objects, opening on the bytes as they came. Nothing here keeps keys or reads
a clock: keeping belongs to ``store``, deciding whom to ask for a signature to ``hub``.
"""

from agentcanvas.protocol.seal.canonical import canonical
from agentcanvas.protocol.seal.door import (
    Demand,
    SealPolicy,
    Unverified,
    is_plainly_unsigned,
    note_on_time,
    open_sealed,
)
from agentcanvas.protocol.seal.encrypt import associated_data, decrypt_payload, encrypt_payload
from agentcanvas.protocol.seal.keyring import Keyring
from agentcanvas.protocol.seal.keys import (
    Algorithm,
    Key,
    Secret,
    new_material,
    public_material,
    secret_material,
)
from agentcanvas.protocol.seal.replay import ReplayGuard, skew_note
from agentcanvas.protocol.seal.sign import (
    Verified,
    read_signature,
    sign,
    signed_bytes,
    verify,
)

__all__ = [
    "Algorithm",
    "Demand",
    "Key",
    "Keyring",
    "ReplayGuard",
    "SealPolicy",
    "Secret",
    "Unverified",
    "Verified",
    "associated_data",
    "canonical",
    "decrypt_payload",
    "encrypt_payload",
    "is_plainly_unsigned",
    "new_material",
    "note_on_time",
    "open_sealed",
    "public_material",
    "read_signature",
    "secret_material",
    "sign",
    "signed_bytes",
    "skew_note",
    "verify",
]
