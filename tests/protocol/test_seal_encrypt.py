"""A payload opens for the right key under the right header, whole, or not at all."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from agentcanvas.errors import CannotDecrypt, ProtocolError, SealError, UnknownKey
from agentcanvas.protocol.seal import (
    Algorithm,
    Key,
    Keyring,
    decrypt_payload,
    encrypt_payload,
    new_material,
    sign,
    verify,
)

pytestmark = pytest.mark.req("H6", "W1", "C8", "D34")

NOW = 1_769_594_400_000
PAYLOAD: dict[str, Any] = {"task_id": "t1", "task_type": "review", "input": "the secret plan €"}
MAC: dict[str, Any] = {
    "message_id": "5a0c7c1e-7d3c-4b7e-9b39-0b7b4b7f6d11",
    "type": "TASK_REQUEST",
    "from": "alice",
    "to": "bob",
    "timestamp": "2026-01-28T10:00:00Z",
    "priority": 5,
    "metadata": {"correlation_id": "c1"},
    "payload": PAYLOAD,
}


def a_key(
    owner: str = "bob", key_id: str = "k1", algorithm: Algorithm = Algorithm.AES_256_GCM
) -> Key:
    return Key(owner=owner, id=key_id, algorithm=algorithm, material=new_material(algorithm))


KEY = a_key()
RING = Keyring([KEY])


def opened(message: dict[str, Any], ring: Keyring = RING) -> dict[str, Any]:
    return decrypt_payload(json.dumps(message).encode(), ring, now_ms=NOW)


def test_an_encrypted_message_has_the_fields_of_the_document_and_opens() -> None:
    sealed = encrypt_payload(MAC, KEY)
    assert sealed["encrypted"] is True
    assert sealed["encryption_algorithm"] == "AES-256-GCM"
    assert sealed["metadata"] == {"correlation_id": "c1", "encryption_key": "k1"}
    assert (
        len(base64.b64decode(sealed["payload"]))
        == 12 + len(json.dumps(PAYLOAD, ensure_ascii=False, separators=(",", ":")).encode()) + 16
    )
    assert opened(sealed) == PAYLOAD
    assert "secret plan" not in json.dumps(sealed)


def test_encrypting_leaves_the_given_message_alone() -> None:
    before = json.dumps(MAC)
    encrypt_payload(MAC, KEY)
    assert json.dumps(MAC) == before


def test_no_two_encryptions_share_a_nonce() -> None:
    nonces = {base64.b64decode(encrypt_payload(MAC, KEY)["payload"])[:12] for _ in range(200)}
    assert len(nonces) == 200


def test_who_cannot_read_the_payload_can_still_check_the_signature() -> None:
    signing = a_key("alice", "s1", Algorithm.HMAC_SHA256)
    signed = sign(encrypt_payload(MAC, KEY), signing)
    raw = json.dumps(signed).encode()
    assert verify(raw, Keyring([signing]), now_ms=NOW).signer == "alice"
    assert decrypt_payload(raw, RING, now_ms=NOW) == PAYLOAD


def test_a_cut_of_any_length_stays_shut() -> None:
    sealed = encrypt_payload(MAC, KEY)
    raw = base64.b64decode(sealed["payload"])
    for length in range(len(raw)):
        with pytest.raises(CannotDecrypt):
            opened({**sealed, "payload": base64.b64encode(raw[:length]).decode()})
    for length in range(len(sealed["payload"])):
        with pytest.raises(CannotDecrypt):
            opened({**sealed, "payload": sealed["payload"][:length]})


def test_every_bit_of_nonce_ciphertext_and_tag_counts() -> None:
    sealed = encrypt_payload(MAC, KEY)
    raw = base64.b64decode(sealed["payload"])
    for position in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[position] ^= 1 << bit
            with pytest.raises(CannotDecrypt):
                opened({**sealed, "payload": base64.b64encode(changed).decode()})


@pytest.mark.parametrize(
    "change",
    [
        {"message_id": "other"},
        {"type": "BROADCAST"},
        {"from": "mallory"},
        {"to": "bob", "cc": "mallory"},
        {"timestamp": "2026-01-28T10:00:01Z"},
        {"priority": 5.5},
        {"metadata": {"encryption_key": "k1"}},
        {"metadata": {"correlation_id": "c2", "encryption_key": "k1"}},
        {"x": None},
    ],
)
def test_the_whole_header_is_bound_to_the_payload(change: dict[str, Any]) -> None:
    with pytest.raises(CannotDecrypt):
        opened({**encrypt_payload(MAC, KEY), **change})


@pytest.mark.parametrize("field", ["message_id", "type", "timestamp", "priority"])
def test_a_header_field_cannot_be_taken_away(field: str) -> None:
    sealed = encrypt_payload(MAC, KEY)
    del sealed[field]
    with pytest.raises(CannotDecrypt):
        opened(sealed)


def test_a_wrong_key_and_changed_data_give_the_same_sentence() -> None:
    sealed = encrypt_payload(MAC, KEY)
    raw = base64.b64decode(sealed["payload"])
    sentences = set()
    for message, ring in (
        (sealed, Keyring([a_key()])),
        ({**sealed, "payload": base64.b64encode(raw[:-1]).decode()}, RING),
        ({**sealed, "payload": base64.b64encode(raw[:5]).decode()}, RING),
        ({**sealed, "payload": base64.b64encode(raw[::-1]).decode()}, RING),
        ({**sealed, "payload": "encrypted_base64_data..."}, RING),
        ({**sealed, "payload": "ä"}, RING),
        ({**sealed, "priority": 6}, RING),
    ):
        with pytest.raises(CannotDecrypt) as caught:
            opened(message, ring)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


def test_a_key_opens_only_messages_from_or_to_its_owner() -> None:
    for owner in ("alice", "bob"):
        key = a_key(owner)
        assert opened(encrypt_payload(MAC, key), Keyring([key])) == PAYLOAD
    eves = a_key("eve")
    with pytest.raises(UnknownKey):
        opened(encrypt_payload(MAC, eves), Keyring([eves]))


def test_an_older_key_still_opens_after_a_rotation() -> None:
    ring = Keyring([KEY])
    ring.rotate(a_key(key_id="k2"), accept_old_until_ms=NOW)
    assert opened(encrypt_payload(MAC, KEY), ring) == PAYLOAD
    with pytest.raises(UnknownKey):
        decrypt_payload(json.dumps(encrypt_payload(MAC, KEY)).encode(), ring, now_ms=NOW + 1)


def test_a_signed_message_is_not_encrypted_afterwards() -> None:
    with pytest.raises(SealError, match="encrypt first"):
        encrypt_payload({**MAC, "signature": "SHA256:x"}, KEY)


@pytest.mark.parametrize("change", [{"encrypted": True}, {"payload": "text"}, {"payload": None}])
def test_only_a_plain_object_is_encrypted(change: dict[str, Any]) -> None:
    with pytest.raises(SealError, match="object"):
        encrypt_payload({**MAC, **change}, KEY)


def test_only_mac_has_encrypted_payloads() -> None:
    acp = {"id": "1", "from": "alice", "to": "bob", "action": "TEST", "parameters": {}}
    with pytest.raises(SealError, match="Only MAC"):
        encrypt_payload(acp, KEY)


def test_metadata_that_is_no_object_is_refused_by_name() -> None:
    with pytest.raises(ProtocolError) as caught:
        encrypt_payload({**MAC, "metadata": 7}, KEY)
    assert caught.value.pointer == "/metadata"


@pytest.mark.parametrize("field", ["from", "to"])
def test_an_encrypted_message_without_its_parties_is_refused_by_name(field: str) -> None:
    sealed = encrypt_payload(MAC, KEY)
    del sealed[field]
    with pytest.raises(ProtocolError) as caught:
        opened(sealed)
    assert caught.value.pointer == f"/{field}"


def test_bytes_that_are_no_message_are_refused_without_a_crash() -> None:
    for raw in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"encrypted":true}'):
        with pytest.raises((ProtocolError, CannotDecrypt)):
            decrypt_payload(raw, RING, now_ms=NOW)
