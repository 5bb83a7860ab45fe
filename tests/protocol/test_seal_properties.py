"""What holds for every message, not only for those somebody thought of."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentcanvas.errors import AgentCanvasError, CannotDecrypt, UnknownKey
from agentcanvas.protocol.seal import (
    Algorithm,
    Demand,
    Key,
    Keyring,
    ReplayGuard,
    SealPolicy,
    canonical,
    decrypt_payload,
    encrypt_payload,
    new_material,
    open_sealed,
    sign,
    verify,
)

pytestmark = pytest.mark.req("H6", "C8", "D34")

NOW = 1_769_594_400_000
MAX_NUMBER = 2**53 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.one_of(
    st.integers(-MAX_NUMBER, MAX_NUMBER),
    st.floats(-MAX_NUMBER, MAX_NUMBER),
    st.floats(-1e-3, 1e-3),
    st.floats(-10, 10).map(lambda number: round(number, 2)),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)

HEADERS: dict[str, dict[str, Any]] = {
    "mac": {"message_id": "m1", "type": "TASK_REQUEST", "from": "alice", "to": "bob"},
    "spec022": {
        "message_id": "m1",
        "message_type": "feedback",
        "from_agent": {"agent_id": "alice"},
    },
    "acp": {"id": "m1", "version": "2.0", "action": "TEST", "from": "alice", "to": "bob"},
}


@st.composite
def messages(draw: st.DrawFn, dialect: str | None = None) -> dict[str, Any]:
    chosen = dialect or draw(st.sampled_from(sorted(HEADERS)))
    message = {
        **HEADERS[chosen],
        "timestamp": "2026-01-28T10:00:00Z",
        "payload": draw(objects),
        "metadata": draw(objects),
    }
    if chosen != "mac" and draw(st.booleans()):
        extension = draw(objects)
        extension.pop("signature", None)
        message["x_agentcanvas"] = extension
    return message


def a_key(algorithm: Algorithm, owner: str = "alice") -> Key:
    return Key(owner=owner, id="k1", algorithm=algorithm, material=new_material(algorithm))


SIGNERS = [a_key(Algorithm.HMAC_SHA256), a_key(Algorithm.ED25519)]
CIPHER = a_key(Algorithm.AES_256_GCM, "bob")
RING = Keyring([*SIGNERS, CIPHER])
signers = st.sampled_from(SIGNERS)


def shuffled(value: Any, random: Any) -> Any:
    """The same JSON with its members in another order."""
    if isinstance(value, dict):
        members = [(key, shuffled(item, random)) for key, item in value.items()]
        random.shuffle(members)
        return dict(members)
    if isinstance(value, list):
        return [shuffled(item, random) for item in value]
    return value


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value but the root."""
    steps: list[Any] = []
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, list):
        steps = list(range(len(value)))
    found = []
    for step in steps:
        found.append((*path, step))
        found += paths_of(value[step], (*path, step))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    copied = json.loads(json.dumps(value))
    holder = copied
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = new
    return copied


@given(value=values)
@example(value=[0.0, -0.0, 1e-7, 1e-6, 1e-5, 1e-4, 0.00012, 5e-324, 2.5, 1e15, 0.1 + 0.2])
@example(value={"\U0001f600": 1, "\ufb33": 2, "a": 3, "\u20ac": 4, "": 5})
@example(value=['\x00\x1f\x7f\x80\u2028\uffff\U0010ffff"\\/'])
def test_the_canonical_text_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(value=values)
def test_the_canonical_text_is_the_canonical_text_of_itself(value: Any) -> None:
    text = canonical(value)
    assert canonical(json.loads(text)) == text


def test_every_character_is_written_as_rfc_8785_writes_it() -> None:
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert canonical(everything) == rfc8785.dumps(everything)


@given(message=messages(), key=signers)
def test_what_was_signed_verifies(message: dict[str, Any], key: Key) -> None:
    raw = json.dumps(sign(message, key)).encode()
    assert verify(raw, RING, now_ms=NOW).algorithm is key.algorithm


@given(
    message=messages(),
    key=signers,
    random=st.randoms(use_true_random=False),
    indent=st.sampled_from([None, 0, 3, "\t"]),
    ascii_only=st.booleans(),
)
def test_order_white_space_and_escapes_of_the_wire_do_not_matter(
    message: dict[str, Any], key: Key, random: Any, indent: int | str | None, ascii_only: bool
) -> None:
    signed = sign(message, key)
    plain = verify(json.dumps(signed).encode(), RING, now_ms=NOW)
    text = json.dumps(shuffled(signed, random), indent=indent, ensure_ascii=ascii_only)
    assert verify(text.encode(), RING, now_ms=NOW) == plain


@given(message=messages(), key=signers, data=st.data())
def test_a_change_of_any_field_breaks_the_signature(
    message: dict[str, Any], key: Key, data: st.DataObject
) -> None:
    signed = sign(message, key)
    path = data.draw(st.sampled_from(paths_of(signed)))
    changed = replaced(signed, path, data.draw(values))
    assume(canonical(changed) != canonical(signed))
    with pytest.raises(AgentCanvasError):
        verify(json.dumps(changed).encode(), RING, now_ms=NOW)


@given(message=messages(), key=signers, name=texts, value=values, data=st.data())
def test_a_member_added_or_removed_anywhere_breaks_the_signature(
    message: dict[str, Any], key: Key, name: str, value: Any, data: st.DataObject
) -> None:
    signed = sign(message, key)
    holders = [()] + [path for path in paths_of(signed) if isinstance(_at(signed, path), dict)]
    path = data.draw(st.sampled_from(holders))
    changed = json.loads(json.dumps(signed))
    holder = _at(changed, path)
    if holder and data.draw(st.booleans()):
        del holder[data.draw(st.sampled_from(sorted(holder)))]
    else:
        assume(name not in holder)
        holder[name] = value
    with pytest.raises(AgentCanvasError):
        verify(json.dumps(changed).encode(), RING, now_ms=NOW)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(message=messages(dialect="mac"))
def test_what_was_encrypted_decrypts_to_the_same_payload(message: dict[str, Any]) -> None:
    raw = json.dumps(encrypt_payload(message, CIPHER)).encode()
    assert decrypt_payload(raw, RING, now_ms=NOW) == message["payload"]


@given(message=messages(dialect="mac"), data=st.data())
def test_a_change_of_any_field_shuts_the_payload(
    message: dict[str, Any], data: st.DataObject
) -> None:
    sealed = encrypt_payload(message, CIPHER)
    path = data.draw(st.sampled_from(paths_of(sealed)))
    changed = replaced(sealed, path, data.draw(values))
    assume(canonical(changed) != canonical(sealed))
    with pytest.raises((AgentCanvasError, CannotDecrypt, UnknownKey)):
        decrypt_payload(json.dumps(changed).encode(), RING, now_ms=NOW)


@given(
    value=st.one_of(
        st.integers(min_value=2**53),
        st.integers(max_value=-(2**53)),
        st.floats().filter(lambda number: not abs(number) <= MAX_NUMBER),
    )
)
@example(value=math.nan)
@example(value=math.inf)
def test_a_number_beyond_the_common_range_is_never_signed(value: float) -> None:
    with pytest.raises(AgentCanvasError, match="/payload/n cannot be sealed"):
        sign({**HEADERS["mac"], "payload": {"n": value}}, SIGNERS[0])


@given(raw=st.one_of(st.binary(), values.map(lambda value: json.dumps(value).encode())))
@example(raw=b'{"type":1,"from":2,"signature":"SHA256:k1:AAAA"}')
@example(raw=b'{"type":1,"from":"alice","signature":"SHA256:k1:\xc3\xa4"}')
@example(raw=b'{"encrypted":true,"encryption_algorithm":"AES-256-GCM","from":"a","to":"b"}')
def test_no_bytes_at_all_lead_to_anything_but_a_typed_error(raw: bytes) -> None:
    for opening in (
        lambda: verify(raw, RING, now_ms=NOW),
        lambda: decrypt_payload(raw, RING, now_ms=NOW),
        lambda: open_sealed(
            raw,
            sender="alice",
            policy=SealPolicy(default=Demand.REQUIRE),
            keyring=RING,
            guard=ReplayGuard(),
            now_ms=NOW,
        ),
    ):
        with pytest.raises(AgentCanvasError):
            opening()
