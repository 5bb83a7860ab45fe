"""A signature belongs to one message, one key and one sender; nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcanvas.errors import (
    AgentCanvasError,
    BadSignature,
    ProtocolError,
    UnknownDialect,
    UnknownKey,
)
from agentcanvas.protocol.seal import (
    Algorithm,
    Key,
    Keyring,
    new_material,
    public_material,
    read_signature,
    sign,
    verify,
)

pytestmark = pytest.mark.req("H6", "C8", "D34")

NOW = 1_769_594_400_000
MAC: dict[str, Any] = {
    "message_id": "5a0c7c1e-7d3c-4b7e-9b39-0b7b4b7f6d11",
    "type": "TASK_REQUEST",
    "from": "alice",
    "to": "bob",
    "timestamp": "2026-01-28T10:00:00Z",
    "payload": {"task_id": "t1", "task_type": "review", "input": "äöü €", "timeout": 300},
}
SPEC022: dict[str, Any] = {
    "message_id": "6b0d549b-6f03-475a-9600-a35a099950d8",
    "timestamp": "2026-01-28T10:00:00Z",
    "sequence_number": 6,
    "from_agent": {"agent_id": "alice", "agent_type": "architect"},
    "to_agent": {"agent_id": "bob", "agent_type": "developer"},
    "message_type": "acknowledgment",
    "payload": {},
    "reply_to": "x",
}
ACP: dict[str, Any] = {
    "id": "cmd-1",
    "timestamp": "2026-01-28T10:00:00Z",
    "version": "2.0",
    "from": "alice",
    "to": "bob",
    "priority": "low",
    "action": "EXECUTE",
    "parameters": {},
    "x_agentcanvas": {"kind": "task.assign"},
}
MESSAGES = {"mac": MAC, "spec022": SPEC022, "acp": ACP}


def a_key(algorithm: Algorithm = Algorithm.HMAC_SHA256, key_id: str = "k1") -> Key:
    return Key(owner="alice", id=key_id, algorithm=algorithm, material=new_material(algorithm))


def wire(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def signature_in(message: dict[str, Any]) -> str:
    text = message.get("signature") or message["x_agentcanvas"]["signature"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("algorithm", [Algorithm.HMAC_SHA256, Algorithm.ED25519])
@pytest.mark.parametrize("dialect", MESSAGES)
def test_a_signed_message_verifies_in_every_dialect(dialect: str, algorithm: Algorithm) -> None:
    key = a_key(algorithm)
    signed = sign(MESSAGES[dialect], key)
    verified = verify(wire(signed), Keyring([key]), now_ms=NOW)
    assert (verified.signer, verified.key_id, verified.algorithm) == ("alice", "k1", algorithm)
    assert (verified.dialect, verified.timestamp_ms) == (dialect, NOW)
    assert verified.message_id == MESSAGES[dialect].get("message_id", "cmd-1")
    assert signature_in(signed).startswith(f"{algorithm}:k1:")


@pytest.mark.parametrize("dialect", MESSAGES)
def test_signing_leaves_the_given_message_and_all_other_fields_alone(dialect: str) -> None:
    message = MESSAGES[dialect]
    before = json.dumps(message)
    signed = sign(message, a_key())
    assert json.dumps(message) == before
    if dialect == "mac":
        del signed["signature"]
    else:
        del signed["x_agentcanvas"]["signature"]
        if "x_agentcanvas" not in message:
            assert signed.pop("x_agentcanvas") == {}
    assert signed == message


@pytest.mark.parametrize("dialect", MESSAGES)
def test_signing_again_replaces_the_signature(dialect: str) -> None:
    first, second = a_key(key_id="k1"), a_key(key_id="k2")
    signed = sign(sign(MESSAGES[dialect], first), second)
    assert signed == sign(signed, second)
    assert verify(wire(signed), Keyring([second]), now_ms=NOW).key_id == "k2"


def test_another_agents_valid_key_does_not_sign_for_the_sender() -> None:
    bobs = Key(
        owner="bob",
        id="k1",
        algorithm=Algorithm.HMAC_SHA256,
        material=new_material(Algorithm.HMAC_SHA256),
    )
    with pytest.raises(UnknownKey):
        verify(wire(sign(MAC, bobs)), Keyring([bobs]), now_ms=NOW)
    with pytest.raises(BadSignature):
        verify(wire(sign(MAC, bobs)), Keyring([bobs, a_key()]), now_ms=NOW)


def test_the_verifier_needs_only_the_public_half() -> None:
    private = a_key(Algorithm.ED25519)
    public = Key(
        owner="alice",
        id="k1",
        algorithm=Algorithm.ED25519,
        material=public_material(private.public_bytes()),
    )
    assert verify(wire(sign(MAC, private)), Keyring([public]), now_ms=NOW).key_id == "k1"


def test_the_fingerprint_is_of_what_is_said_and_not_of_how_it_is_signed() -> None:
    hmac, ed25519 = a_key(key_id="a"), a_key(Algorithm.ED25519, "b")
    ring = Keyring([hmac, ed25519])
    prints = [
        verify(raw, ring, now_ms=NOW).fingerprint
        for raw in (
            wire(sign(MAC, hmac)),
            json.dumps(sign(MAC, ed25519), indent=3, sort_keys=True).encode(),
            wire(sign({**MAC, "to": "carol"}, hmac)),
        )
    ]
    assert prints[0] == prints[1] != prints[2]


def test_the_sentence_of_a_bad_signature_is_the_same_for_a_wrong_key_and_a_changed_message() -> (
    None
):
    key, other = a_key(), a_key()
    sentences = set()
    for raw, ring in (
        (wire(sign(MAC, other)), Keyring([key])),
        (wire({**sign(MAC, key), "to": "carol"}), Keyring([key])),
    ):
        with pytest.raises(BadSignature) as caught:
            verify(raw, ring, now_ms=NOW)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


@pytest.mark.req("W1")
def test_the_documents_example_signature_is_broken_but_understood_as_one() -> None:
    with pytest.raises(BadSignature, match="cannot be read"):
        verify(wire({**MAC, "signature": "SHA256:abc123..."}), Keyring([a_key()]), now_ms=NOW)


def test_a_signature_text_comes_apart_into_its_parts() -> None:
    parts = read_signature("SHA256:key.1:" + "A" * 43)
    assert (parts.head, parts.algorithm, parts.key_id) == ("SHA256:key.1:", "SHA256", "key.1")
    assert parts.value == bytes(32)
    assert read_signature("ED25519:" + "A" * 86).key_id is None


def test_every_bit_of_every_byte_counts() -> None:
    """A flipped bit either breaks the message or changes nothing but how it is typed."""
    key = a_key()
    ring = Keyring([key])
    raw = wire(sign(MAC, key))
    survivors = []
    for position in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[position] ^= 1 << bit
            try:
                verify(bytes(changed), ring, now_ms=NOW)
            except AgentCanvasError:
                continue
            survivors.append(bytes(changed))
    # Some change the case of a hexadecimal digit in an escape, or one blank into another.
    assert all(json.loads(survivor) == json.loads(raw) for survivor in survivors)
    assert len(survivors) < len(raw) / 10


def test_no_length_of_a_cut_message_verifies() -> None:
    key = a_key()
    raw = wire(sign(MAC, key))
    for length in range(len(raw)):
        with pytest.raises(ProtocolError):
            verify(raw[:length], Keyring([key]), now_ms=NOW)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"payload": {"n": 2**53}}, "/payload/n"),
        ({"payload": {"n": [0, float("nan")]}}, "/payload/n/1"),
        ({"payload": {"n": 1e300}}, "/payload/n"),
        ({"to": "\ud800"}, "/to"),
        ({"payload": {"raw": b"bytes"}}, "/payload/raw"),
        ({"payload": {1: 2}}, "/payload/1"),
        ({"payload": {"\udfff": 2}}, "/payload/?"),
    ],
)
def test_what_cannot_be_sealed_is_refused_by_name_before_it_is_signed(
    change: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(ProtocolError, match="cannot be sealed") as caught:
        sign({**MAC, **change}, a_key())
    assert caught.value.pointer == pointer
    str(caught.value).encode()


def test_depth_is_limited_and_a_bottomless_message_is_no_crash() -> None:
    def nested(levels: int) -> dict[str, Any]:
        inner: Any = []
        for _ in range(levels - 3):
            inner = [inner]
        return {**MAC, "payload": {"deep": inner}}

    key = a_key()
    assert verify(wire(sign(nested(64), key)), Keyring([key]), now_ms=NOW).key_id == "k1"
    with pytest.raises(ProtocolError, match="deeper than 64"):
        sign(nested(65), key)
    with pytest.raises(ProtocolError, match="deeper than 64"):
        verify(b'{"signature":' + b"[" * 200_000, Keyring([key]), now_ms=NOW)


def test_the_dialect_is_found_by_its_marks_or_has_to_be_named() -> None:
    key = a_key()
    both = {**MAC, "action": "EXECUTE", "id": "x"}
    with pytest.raises(UnknownDialect, match="mac and acp"):
        sign(both, key)
    signed = sign(both, key, dialect="mac")
    assert verify(wire(signed), Keyring([key]), now_ms=NOW, dialect="mac").dialect == "mac"
    with pytest.raises(UnknownDialect, match="none of: mac, spec022, acp"):
        sign({"hello": 1}, key)
    with pytest.raises(UnknownDialect, match="use one of"):
        sign(MAC, key, dialect="morse")


def test_an_extension_that_is_no_object_is_refused_when_signing() -> None:
    with pytest.raises(ProtocolError) as caught:
        sign({**ACP, "x_agentcanvas": []}, a_key())
    assert caught.value.pointer == "/x_agentcanvas"


@pytest.mark.parametrize("missing", ["from", "message_id", "timestamp"])
def test_a_signed_message_without_a_field_the_seal_needs_is_refused_by_name(missing: str) -> None:
    key = a_key()
    incomplete = {name: value for name, value in MAC.items() if name != missing}
    signed = sign(incomplete, key, dialect="mac")
    with pytest.raises(ProtocolError) as caught:
        verify(wire(signed), Keyring([key]), now_ms=NOW, dialect="mac")
    assert caught.value.pointer == f"/{missing}"
