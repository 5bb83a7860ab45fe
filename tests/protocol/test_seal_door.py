"""The hub's door: the policy decides who must sign, the guard that it counts once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcanvas.errors import (
    AgentCanvasError,
    BadSignature,
    ErrorCategory,
    ProtocolError,
    Repeated,
    Replayed,
    UnknownDialect,
    UnknownKey,
)
from agentcanvas.protocol.seal import (
    Algorithm,
    Demand,
    Key,
    Keyring,
    ReplayGuard,
    SealPolicy,
    Unverified,
    Verified,
    new_material,
    open_sealed,
    sign,
)

pytestmark = pytest.mark.req("H6", "C8", "C9", "D34")

NOW = 1_769_594_400_000
MAC: dict[str, Any] = {
    "message_id": "5a0c7c1e-7d3c-4b7e-9b39-0b7b4b7f6d11",
    "type": "HEARTBEAT",
    "from": "alice",
    "to": "hub",
    "timestamp": "2026-01-28T10:00:00Z",
    "payload": {"status": "ACTIVE", "load": 0.0},
}
KEY = Key(
    owner="alice",
    id="k1",
    algorithm=Algorithm.HMAC_SHA256,
    material=new_material(Algorithm.HMAC_SHA256),
)
REQUIRE = SealPolicy(default=Demand.REQUIRE)


def wire(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def at_the_door(
    raw: bytes,
    *,
    sender: str = "alice",
    policy: SealPolicy | None = None,
    guard: ReplayGuard | None = None,
    now_ms: int = NOW,
    dialect: str | None = None,
) -> Verified | Unverified:
    return open_sealed(
        raw,
        sender=sender,
        policy=policy or SealPolicy(),
        keyring=Keyring([KEY]),
        guard=guard or ReplayGuard(),
        now_ms=now_ms,
        dialect=dialect,
    )


@pytest.mark.parametrize("demand", [Demand.ACCEPT, Demand.REQUIRE])
def test_a_good_signature_says_who_with_which_key(demand: Demand) -> None:
    result = at_the_door(wire(sign(MAC, KEY)), policy=SealPolicy(default=demand))
    assert isinstance(result, Verified)
    assert (result.signer, result.key_id, result.algorithm) == ("alice", "k1", "SHA256")


@pytest.mark.parametrize("demand", [Demand.ACCEPT, Demand.REQUIRE])
def test_a_bad_signature_is_refused_also_where_none_is_required(demand: Demand) -> None:
    with pytest.raises(BadSignature):
        at_the_door(wire({**sign(MAC, KEY), "to": "bob"}), policy=SealPolicy(default=demand))


def test_an_unsigned_message_is_let_in_unless_signing_is_required() -> None:
    assert at_the_door(wire(MAC)) == Unverified()
    with pytest.raises(BadSignature, match="'alice' has to sign"):
        at_the_door(wire(MAC), policy=REQUIRE)


def test_where_signatures_are_off_they_are_not_looked_at() -> None:
    off = SealPolicy(default=Demand.OFF)
    assert at_the_door(wire({**MAC, "signature": "SHA256:abc123..."}), policy=off) == Unverified()


def test_the_policy_of_one_agent_goes_before_the_default() -> None:
    policy = SealPolicy(default=Demand.REQUIRE, agents={"alice": Demand.ACCEPT})
    assert at_the_door(wire(MAC), policy=policy) == Unverified()
    assert policy.demand_on("bob") is Demand.REQUIRE


def test_a_null_signature_is_not_a_missing_one() -> None:
    with pytest.raises(BadSignature):
        at_the_door(wire({**MAC, "signature": None}))


def test_an_agent_cannot_hand_in_what_another_one_signed() -> None:
    with pytest.raises(BadSignature, match="signed by 'alice' but was handed in by 'mallory'"):
        at_the_door(wire(sign(MAC, KEY)), sender="mallory")


def test_a_signed_message_counts_once_and_a_resend_is_known_as_such() -> None:
    guard = ReplayGuard()
    at_the_door(wire(sign(MAC, KEY)), guard=guard)
    with pytest.raises(Repeated):
        at_the_door(json.dumps(sign(MAC, KEY), indent=1).encode(), guard=guard)
    with pytest.raises(Replayed) as caught:
        at_the_door(wire(sign({**MAC, "to": "bob"}, KEY)), guard=guard)
    assert not isinstance(caught.value, Repeated)


def test_skew_refuses_a_signed_message_and_only_remarks_on_an_unsigned_one() -> None:
    late = NOW + 301_000
    with pytest.raises(Replayed, match=r"301\.000 s behind"):
        at_the_door(wire(sign(MAC, KEY)), now_ms=late)
    result = at_the_door(wire(MAC), now_ms=late)
    assert result == Unverified("timestamp is 301.000 s behind the receiver's clock")


def test_a_forger_cannot_use_up_an_id() -> None:
    guard = ReplayGuard()
    signed = sign(MAC, KEY)
    for forged in ({**signed, "to": "bob"}, {**signed, "signature": "SHA256:k1:" + "A" * 43}):
        with pytest.raises(BadSignature):
            at_the_door(wire(forged), guard=guard)
    with pytest.raises(BadSignature):
        at_the_door(wire(signed), sender="mallory", guard=guard)
    assert isinstance(at_the_door(wire(signed), guard=guard), Verified)


def test_an_unsigned_message_is_not_held_to_what_can_be_signed() -> None:
    raw = wire(MAC).replace(b"0.0", b"18446744073709551615").replace(b'"to"', b'"to":1,"to"')
    assert at_the_door(raw) == Unverified()
    with pytest.raises(ProtocolError, match="cannot be sealed"):
        at_the_door(wire(sign(MAC, KEY)).replace(b"0.0", b"18446744073709551615"))


@pytest.mark.parametrize("timestamp", [None, 7, "yesterday"])
def test_an_unreadable_time_is_judged_elsewhere_when_unsigned(timestamp: object) -> None:
    assert at_the_door(wire({**MAC, "timestamp": timestamp})) == Unverified()


def test_a_signature_hidden_behind_an_escape_is_still_seen() -> None:
    raw = wire(sign(MAC, KEY)).replace(b'"signature"', b'"\\u0073ignature"')
    assert isinstance(at_the_door(raw), Verified)


def test_an_agent_without_a_key_cannot_sign() -> None:
    with pytest.raises(UnknownKey):
        at_the_door(wire(sign({**MAC, "from": "bob"}, KEY)), sender="bob")


@pytest.mark.parametrize(
    "raw",
    [b"", b"nonsense", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b'{"a":"\\ud800"}', b"{}"],
)
def test_what_is_no_message_gets_one_typed_error(raw: bytes) -> None:
    with pytest.raises((ProtocolError, UnknownDialect)) as caught:
        at_the_door(raw)
    assert caught.value.category is ErrorCategory.USER


def test_a_refusal_is_a_permission_error_with_a_code_for_the_wire() -> None:
    for raw, code in (
        (wire({**MAC, "signature": "SHA256:abc123..."}), "BAD_SIGNATURE"),
        (wire({**MAC, "signature": "SHA256:k9:" + "A" * 43}), "UNKNOWN_KEY"),
        (wire(sign({**MAC, "timestamp": "2026-01-28T09:00:00Z"}, KEY)), "REPLAYED"),
    ):
        with pytest.raises(AgentCanvasError) as caught:
            at_the_door(raw)
        assert (caught.value.code, caught.value.category) == (code, ErrorCategory.PERMISSION)
        assert KEY.secret_bytes().hex() not in str(caught.value)


def test_the_dialect_can_be_named_where_the_marks_leave_it_open() -> None:
    both = {**MAC, "action": "EXECUTE"}
    with pytest.raises(UnknownDialect):
        at_the_door(wire(both))
    assert at_the_door(wire(both), dialect="mac") == Unverified()
    signed = wire(sign(both, KEY, dialect="mac"))
    assert isinstance(at_the_door(signed, dialect="mac"), Verified)
