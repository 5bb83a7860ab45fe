"""What a door asks of bytes: size before parsing, seals on the bytes as they came, language."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcanvas.errors import (
    BadSignature,
    MessageTooLarge,
    ProtocolError,
    Replayed,
    SealError,
    UnknownDialect,
)
from agentcanvas.hub.doors import VERIFIED_BY_HUB, Admitted, SealDoor, admit, check_size
from agentcanvas.protocol.dialects import decode
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.limits import MessageLimits
from agentcanvas.protocol.seal import (
    Algorithm,
    Demand,
    Key,
    Keyring,
    ReplayGuard,
    SealPolicy,
    encrypt_payload,
    new_material,
    sign,
)
from agentcanvas.protocol.timestamps import parse_ms

pytestmark = pytest.mark.req("H6", "C8", "C9", "L1")

TIME = "2026-01-28T10:00:00Z"
NOW_MS = parse_ms(TIME)
LIMITS = MessageLimits()


def a_key(algorithm: Algorithm = Algorithm.HMAC_SHA256, owner: str = "a") -> Key:
    return Key(owner=owner, id="k1", algorithm=algorithm, material=new_material(algorithm))


def request(**fields: Any) -> dict[str, Any]:
    return {
        "message_id": "5a0c7c1e-7d3c-4b7e-9b39-0b7b4b7f6d11",
        "type": "TASK_REQUEST",
        "from": "a",
        "to": "b",
        "timestamp": TIME,
        "priority": 5,
        "payload": {"task_id": "t1", "task_type": "review", "input": "x"},
        **fields,
    }


def packed(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def let_in(raw: bytes, door: SealDoor, **more: Any) -> Admitted:
    return admit(
        raw, sender="a", decode=decode, seal=door, limits=LIMITS, **{"now_ms": NOW_MS, **more}
    )


def a_door(*keys: Key, **policies: Any) -> SealDoor:
    return SealDoor(Keyring(keys), ReplayGuard(), **policies)


def test_what_is_too_large_is_refused_before_anybody_looks_at_it() -> None:
    def never(_: bytes) -> Any:
        raise AssertionError("it was parsed")

    with pytest.raises(MessageTooLarge, match="1048577 bytes"):
        admit(
            b"x" * 1_048_577, sender="a", decode=never, seal=a_door(), limits=LIMITS, now_ms=NOW_MS
        )
    check_size(1_048_576, LIMITS)


def test_garbage_is_told_as_what_it_is() -> None:
    for raw in (b"", b"\xff\xfe", b"[]", b"{", b'"text"', b"{}"):
        with pytest.raises((ProtocolError, UnknownDialect)):
            let_in(raw, a_door())


def test_a_signature_is_off_accepted_or_required_for_each_agent() -> None:
    key = a_key()
    plain, signed = packed(request()), packed(sign(request(), key))
    spoilt = packed({**sign(request(), key), "priority": 9})
    for demand, takes_plain, takes_spoilt in (
        (Demand.OFF, True, True),
        (Demand.ACCEPT, True, False),
        (Demand.REQUIRE, False, False),
    ):
        policy = SealPolicy(default=Demand.OFF, agents={"a": demand})
        for raw, taken in ((plain, takes_plain), (spoilt, takes_spoilt), (signed, True)):
            door = a_door(key, signatures=policy)
            if taken:
                assert let_in(raw, door).envelope.kind is Kind.TASK_ASSIGN
            else:
                with pytest.raises(BadSignature):
                    let_in(raw, door)


def test_what_was_verified_says_so_and_nobody_else_can_say_it() -> None:
    key = a_key()
    admitted = let_in(packed(sign(request(), key)), a_door(key))
    assert (admitted.signer, admitted.envelope.verified_by) == ("a", VERIFIED_BY_HUB)
    assert let_in(packed(request()), a_door(key)).signer is None
    forged = request(metadata={"x_agentcanvas": {"verified_by": "hub"}})
    with pytest.raises(ProtocolError, match="Only the hub says"):
        let_in(packed(forged), a_door(key))


def test_somebody_elses_signature_is_not_ours() -> None:
    key = a_key(owner="z")
    with pytest.raises(BadSignature, match="handed in by"):
        let_in(packed(sign(request(**{"from": "z"}), key)), a_door(key))


def test_a_resend_is_let_in_again_and_a_replay_is_not() -> None:
    key = a_key()
    door = a_door(key)
    raw = packed(sign(request(), key))
    assert let_in(raw, door) == let_in(raw, door)
    other = packed(sign(request(priority=9), key))
    with pytest.raises(Replayed, match="used before"):
        let_in(other, door)
    with pytest.raises(Replayed, match="signed message is accepted within"):
        let_in(raw, door, now_ms=NOW_MS + 301_000)


def test_a_clock_that_is_off_is_noted_on_what_is_not_signed() -> None:
    admitted = let_in(packed(request()), a_door(), now_ms=NOW_MS + 3_600_000)
    assert any("behind the receiver's clock" in breach for breach in admitted.breaches)


def test_encryption_is_off_accepted_or_required_for_each_agent() -> None:
    key = a_key(Algorithm.AES_256_GCM)
    plain, sealed = packed(request()), packed(encrypt_payload(request(), key))
    beat = packed(request(type="HEARTBEAT", payload={"status": "ACTIVE"}))
    for demand, taken, refused in (
        (Demand.OFF, [plain, beat], [sealed]),
        (Demand.ACCEPT, [plain, sealed, beat], []),
        (Demand.REQUIRE, [sealed, beat], [plain]),
    ):
        door = a_door(key, encryption=SealPolicy(default=demand))
        for raw in taken:
            let_in(raw, door)
        for raw in refused:
            with pytest.raises(SealError, match="encrypt its payloads"):
                let_in(raw, door)


@pytest.mark.req("M3")
def test_breaches_that_are_let_pass_are_handed_on() -> None:
    admitted = let_in(packed(request(message_id="msg-001-abc123", type="TASK_REQUEST")), a_door())
    assert admitted.envelope.id == "msg-001-abc123"
