"""Keys keep their secrets, do one job, and change without a gap."""

from __future__ import annotations

import base64
import copy
import pickle
import traceback

import msgspec
import pytest
from rich.pretty import pretty_repr

from agentcanvas.errors import UnknownKey, ValidationError
from agentcanvas.protocol.seal import (
    Algorithm,
    Key,
    Keyring,
    Secret,
    new_material,
    public_material,
    secret_material,
)

pytestmark = pytest.mark.req("H6", "D34", "D37")

SECRET = bytes(range(0x61, 0x81))
HMAC = Algorithm.HMAC_SHA256
NOW = 1_000_000


def a_key(
    key_id: str = "k1",
    algorithm: Algorithm = HMAC,
    *,
    owner: str = "alice",
    not_before_ms: int = 0,
    not_after_ms: int | None = None,
) -> Key:
    return Key(
        owner=owner,
        id=key_id,
        algorithm=algorithm,
        material=new_material(algorithm),
        not_before_ms=not_before_ms,
        not_after_ms=not_after_ms,
    )


def spellings(secret: bytes) -> list[str]:
    """Every way a careless line could show these bytes."""
    return [
        secret.hex(),
        secret.decode("latin-1"),
        repr(secret)[2:-1],
        base64.b64encode(secret).decode(),
        base64.urlsafe_b64encode(secret).decode().rstrip("="),
        str(list(secret))[1:-1],
    ]


@pytest.mark.parametrize("algorithm", Algorithm)
def test_no_way_of_printing_a_key_shows_its_secret(algorithm: Algorithm) -> None:
    key = Key(
        owner="alice", id="k1", algorithm=algorithm, material=secret_material(algorithm, SECRET)
    )
    ring = Keyring([key])
    shown = "\n".join(
        [
            *(form(thing) for thing in (key, key.material, ring) for form in (repr, str, format)),
            pretty_repr(key),
            pretty_repr([ring, vars(ring)]),
            f"{key}",
            f"{[key]}",
        ]
    )
    assert key.secret_bytes() == SECRET
    for spelling in spellings(SECRET):
        assert spelling not in shown


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_traceback_with_local_variables_does_not_show_the_secret(algorithm: Algorithm) -> None:
    key = Key(
        owner="alice", id="k1", algorithm=algorithm, material=secret_material(algorithm, SECRET)
    )
    lines: list[str] = []
    for misuse in (
        lambda: key.encrypt(b"", b"", b""),
        lambda: key.signature("text"),  # type: ignore[arg-type]  # the misuse under test
        lambda: key.verifies(b"", "text"),  # type: ignore[arg-type]  # the misuse under test
    ):
        try:
            misuse()
        except (ValidationError, ValueError, TypeError) as error:
            told = traceback.TracebackException.from_exception(error, capture_locals=True)
            lines += told.format()
    assert lines
    for spelling in spellings(SECRET):
        assert spelling not in "".join(lines)


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_key_cannot_be_encoded_or_pickled_by_accident(algorithm: Algorithm) -> None:
    key = a_key(algorithm=algorithm)
    with pytest.raises(TypeError):
        msgspec.json.encode(key)
    with pytest.raises(TypeError):
        msgspec.to_builtins(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_secret_is_compared_by_its_bytes_and_not_copied() -> None:
    assert Secret(SECRET) == Secret(SECRET)
    assert Secret(SECRET) != Secret(SECRET[::-1])
    assert Secret(SECRET) != SECRET
    assert len({Secret(SECRET), Secret(SECRET)}) == 1
    with pytest.raises(TypeError):
        copy.deepcopy(Secret(SECRET))


def test_keys_are_random() -> None:
    for algorithm in Algorithm:
        assert (
            a_key(algorithm=algorithm).secret_bytes() != a_key(algorithm=algorithm).secret_bytes()
        )


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_key_comes_back_from_its_kept_bytes(algorithm: Algorithm) -> None:
    key = a_key(algorithm=algorithm)
    again = msgspec.structs.replace(key, material=secret_material(algorithm, key.secret_bytes()))
    if algorithm is Algorithm.AES_256_GCM:
        sealed = key.encrypt(bytes(12), b"text", b"header")
        assert again.decrypt(bytes(12), sealed, b"header") == b"text"
    else:
        assert again.verifies(b"text", key.signature(b"text"))


def test_a_public_key_verifies_but_neither_signs_nor_has_a_secret() -> None:
    private = a_key(algorithm=Algorithm.ED25519)
    public = msgspec.structs.replace(private, material=public_material(private.public_bytes()))
    assert public.verifies(b"text", private.signature(b"text"))
    assert not public.can_seal
    with pytest.raises(ValidationError, match="cannot sign"):
        public.signature(b"text")
    with pytest.raises(ValidationError, match="has no secret"):
        public.secret_bytes()


def test_a_key_does_one_job() -> None:
    with pytest.raises(ValidationError, match="cannot encrypt"):
        a_key(algorithm=HMAC).encrypt(bytes(12), b"", b"")
    with pytest.raises(ValidationError, match="cannot sign"):
        a_key(algorithm=Algorithm.AES_256_GCM).signature(b"")
    with pytest.raises(ValidationError, match="public half"):
        a_key(algorithm=HMAC).public_bytes()


@pytest.mark.parametrize(
    ("algorithm", "secret", "sentence"),
    [
        (HMAC, bytes(31), "at least 32 bytes; this one has 31"),
        (HMAC, b"", "at least 32 bytes"),
        (Algorithm.AES_256_GCM, bytes(16), "exactly 32 bytes; this has 16"),
        (Algorithm.AES_256_GCM, bytes(33), "exactly 32 bytes"),
        (Algorithm.ED25519, bytes(31), "exactly 32 bytes"),
    ],
)
def test_a_secret_of_the_wrong_length_is_refused(
    algorithm: Algorithm, secret: bytes, sentence: str
) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Key(
            owner="alice", id="k1", algorithm=algorithm, material=secret_material(algorithm, secret)
        )


def test_material_of_another_algorithm_is_refused() -> None:
    with pytest.raises(ValidationError, match="Ed25519 material"):
        Key(owner="a", id="k", algorithm=Algorithm.ED25519, material=Secret(SECRET))
    with pytest.raises(ValidationError, match="needs secret bytes"):
        Key(owner="a", id="k", algorithm=HMAC, material=new_material(Algorithm.ED25519))
    with pytest.raises(ValidationError, match="public key has exactly 32"):
        public_material(b"short")


@pytest.mark.parametrize("key_id", ["", "a:b", "a b", "ä", "k" * 65, "k\n", "a/b"])
def test_a_key_id_that_could_not_be_written_is_refused(key_id: str) -> None:
    with pytest.raises(ValidationError, match="not valid"):
        a_key(key_id)


def test_a_key_needs_an_owner() -> None:
    with pytest.raises(ValidationError, match="owner"):
        a_key(owner="")


def test_after_a_rotation_the_new_key_seals_and_the_old_one_opens_until_its_end() -> None:
    old, new = a_key("old"), a_key("new")
    ring = Keyring([old])
    ring.rotate(new, accept_old_until_ms=NOW + 500)
    assert ring.sealing_key("alice", HMAC, now_ms=NOW).id == "new"
    assert [key.id for key in ring.opening_keys(("alice",), HMAC, "old", now_ms=NOW + 500)] == [
        "old"
    ]
    with pytest.raises(UnknownKey):
        ring.opening_keys(("alice",), HMAC, "old", now_ms=NOW + 501)
    assert ring.opening_keys(("alice",), HMAC, "new", now_ms=NOW + 501)


def test_a_rotation_never_prolongs_a_key_and_leaves_other_kinds_alone() -> None:
    ring = Keyring([a_key("old", not_after_ms=NOW), a_key("ed", Algorithm.ED25519)])
    ring.rotate(a_key("new"), accept_old_until_ms=NOW + 500)
    with pytest.raises(UnknownKey):
        ring.opening_keys(("alice",), HMAC, "old", now_ms=NOW + 1)
    assert ring.opening_keys(("alice",), Algorithm.ED25519, "ed", now_ms=NOW + 501)


def test_a_key_prepared_for_later_seals_once_its_time_has_come() -> None:
    ring = Keyring([a_key("later", not_before_ms=NOW), a_key("now")])
    assert ring.sealing_key("alice", HMAC, now_ms=NOW - 1).id == "now"
    assert ring.sealing_key("alice", HMAC, now_ms=NOW).id == "later"


def test_a_public_key_is_never_chosen_to_seal_with() -> None:
    private = a_key("mine", Algorithm.ED25519)
    public = Key(
        owner="alice",
        id="seen",
        algorithm=Algorithm.ED25519,
        material=public_material(private.public_bytes()),
        not_before_ms=NOW,
    )
    ring = Keyring([private, public])
    assert ring.sealing_key("alice", Algorithm.ED25519, now_ms=NOW).id == "mine"
    with pytest.raises(UnknownKey, match="no ED25519 key to seal with"):
        Keyring([public]).sealing_key("alice", Algorithm.ED25519, now_ms=NOW)


def test_unknown_expired_and_foreign_keys_are_refused_with_one_and_the_same_sentence() -> None:
    expired = Keyring([a_key("k1", not_after_ms=NOW - 1)])
    foreign = Keyring([a_key("k1", owner="bob")])
    sentences = set()
    for ring in (Keyring(), expired, foreign):
        with pytest.raises(UnknownKey) as caught:
            ring.opening_keys(("alice",), HMAC, "k1", now_ms=NOW)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


def test_without_a_key_id_every_accepted_key_of_the_owner_is_offered() -> None:
    ring = Keyring([a_key("a"), a_key("b"), a_key("c", not_after_ms=NOW - 1), a_key(owner="bob")])
    found = ring.opening_keys(("alice", "alice"), HMAC, None, now_ms=NOW)
    assert [key.id for key in found] == ["a", "b"]


def test_a_revoked_key_is_gone_at_once() -> None:
    ring = Keyring([a_key("a"), a_key("b"), a_key("a", Algorithm.AES_256_GCM)])
    ring.revoke("alice", "a")
    assert [key.id for key in ring.opening_keys(("alice",), HMAC, None, now_ms=NOW)] == ["b"]
    ring.revoke("alice")
    for algorithm in Algorithm:
        with pytest.raises(UnknownKey):
            ring.opening_keys(("alice",), algorithm, None, now_ms=NOW)
    ring.revoke("nobody")


def test_a_key_id_is_used_once() -> None:
    ring = Keyring([a_key("a")])
    with pytest.raises(ValidationError, match="already has a key"):
        ring.add(a_key("a"))
    with pytest.raises(ValidationError, match="already has a key"):
        ring.rotate(a_key("a"), accept_old_until_ms=NOW)
    assert ring.opening_keys(("alice",), HMAC, "a", now_ms=NOW * 2)
