"""Every vector of ``vectors/`` holds here, and in a second implementation that shares no code."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.errors import AgentCanvasError, Repeated, Replayed
from agentcanvas.protocol.scan import parse
from agentcanvas.protocol.seal import (
    Algorithm,
    Key,
    Keyring,
    ReplayGuard,
    associated_data,
    canonical,
    decrypt_payload,
    encrypt_payload,
    public_material,
    secret_material,
    sign,
    signed_bytes,
    verify,
)

pytestmark = pytest.mark.req("H6", "C8", "D34")

VECTORS = Path(__file__).parent / "vectors"
PAGE = Path(__file__).parents[2] / "docs" / "seal.md"
NODE_18 = 18


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def named(cases: list[dict[str, Any]], which: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in cases if which in case]


def key_of(entry: dict[str, Any]) -> Key:
    algorithm = Algorithm(entry["algorithm"])
    return Key(
        owner=entry["owner"],
        id=entry["id"],
        algorithm=algorithm,
        material=secret_material(algorithm, bytes.fromhex(entry["secret_hex"])),
        not_before_ms=entry.get("not_before_ms", 0),
        not_after_ms=entry.get("not_after_ms"),
    )


def wire_of(case: dict[str, Any]) -> bytes:
    return bytes.fromhex(case["wire_hex"]) if "wire_hex" in case else case["wire"].encode()


KEYS = load("keys.json")
NOW_MS: int = KEYS["now_ms"]
RING = Keyring([key_of(entry) for entry in KEYS["keys"]])
BY_NAME = {(entry["owner"], entry["id"]): key_of(entry) for entry in KEYS["keys"]}
SIGNATURES = load("signatures.json")["cases"]
ENCRYPTED = load("encryption.json")["cases"]
CANONICAL = load("canonical.json")
REPLAY = load("replay.json")
ANCHORS = load("anchors.json")


@pytest.mark.parametrize("case", named(SIGNATURES, "expect"))
def test_a_signature_vector_verifies(case: dict[str, Any]) -> None:
    verified = verify(wire_of(case), RING, now_ms=NOW_MS, dialect=case["dialect"])
    assert {
        "signer": verified.signer,
        "key_id": verified.key_id,
        "algorithm": str(verified.algorithm),
        "message_id": verified.message_id,
        "timestamp_ms": verified.timestamp_ms,
        "fingerprint_hex": verified.fingerprint.hex(),
    } == case["expect"]
    assert verified.dialect == case["dialect"]


@pytest.mark.parametrize("case", named(SIGNATURES, "expect"))
def test_a_signature_vector_is_made_again_to_the_byte(case: dict[str, Any]) -> None:
    message = json.loads(wire_of(case))
    head, _, value = case["signature"].rpartition(":")
    key = BY_NAME[case["expect"]["signer"], case["expect"]["key_id"]]
    covered = signed_bytes(message, f"{head}:", dialect=case["dialect"])
    assert covered == case["signed_bytes"].encode()
    assert base64.urlsafe_b64encode(key.signature(covered)).rstrip(b"=").decode() == value
    if head.count(":") == 1:
        assert sign(message, key, dialect=case["dialect"]) == message


@pytest.mark.parametrize("case", named(SIGNATURES, "error"))
def test_a_signature_vector_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(AgentCanvasError) as caught:
        verify(wire_of(case), RING, now_ms=NOW_MS, dialect=case["dialect"])
    assert caught.value.code == case["error"]


@pytest.mark.parametrize("case", named(ENCRYPTED, "expect"))
def test_an_encryption_vector_opens(case: dict[str, Any]) -> None:
    assert decrypt_payload(wire_of(case), RING, now_ms=NOW_MS) == case["expect"]["payload"]


@pytest.mark.parametrize("case", named(ENCRYPTED, "expect"))
def test_an_encryption_vector_is_made_again_to_the_byte(case: dict[str, Any]) -> None:
    message = json.loads(wire_of(case))
    key = BY_NAME[case["key"]["owner"], case["key"]["id"]]
    nonce = bytes.fromhex(case["nonce_hex"])
    assert associated_data(message) == case["associated_data"].encode()
    sealed = key.encrypt(nonce, case["plaintext"].encode(), associated_data(message))
    assert sealed.hex() == case["ciphertext_hex"] + case["tag_hex"]
    assert base64.b64encode(nonce + sealed).decode() == message["payload"]


def test_our_own_encryption_gives_the_first_vector() -> None:
    case = ENCRYPTED[0]
    expected = json.loads(case["wire"])
    dropped = ("encrypted", "encryption_algorithm", "metadata", "payload")
    plain = {name: value for name, value in expected.items() if name not in dropped}
    plain["payload"] = case["expect"]["payload"]
    key = BY_NAME[case["key"]["owner"], case["key"]["id"]]
    assert encrypt_payload(plain, key, nonce=bytes.fromhex(case["nonce_hex"])) == expected


@pytest.mark.parametrize("case", named(ENCRYPTED, "error"))
def test_an_encryption_vector_stays_shut(case: dict[str, Any]) -> None:
    with pytest.raises(AgentCanvasError) as caught:
        decrypt_payload(wire_of(case), RING, now_ms=NOW_MS)
    assert caught.value.code == case["error"]


@pytest.mark.parametrize("case", named(CANONICAL["accepted"], "canonical"))
def test_a_value_has_the_canonical_text_of_its_vector(case: dict[str, Any]) -> None:
    assert canonical(parse(case["text"].encode())) == case["canonical"].encode()


@pytest.mark.parametrize("case", named(CANONICAL["refused"], "error"))
def test_a_value_that_cannot_be_sealed_is_refused_by_name(case: dict[str, Any]) -> None:
    with pytest.raises(AgentCanvasError) as caught:
        canonical(parse(case["text"].encode()))
    assert caught.value.code == case["error"]
    assert getattr(caught.value, "pointer", None) == case["pointer"]
    assert case["pointer"] in str(caught.value)


@pytest.mark.req("C9")
@pytest.mark.parametrize("case", named(REPLAY["cases"], "steps"))
def test_a_replay_vector_unfolds_as_written(case: dict[str, Any]) -> None:
    guard = ReplayGuard(window_ms=REPLAY["window_ms"])
    outcomes = []
    for step in case["steps"]:
        outcome = "admitted"
        try:
            guard.admit(
                step["sender"],
                step["message_id"],
                timestamp_ms=step["timestamp_ms"],
                fingerprint=bytes.fromhex(step["fingerprint_hex"]),
                now_ms=step["now_ms"],
            )
        except Repeated:
            outcome = "repeated"
        except Replayed:
            outcome = "replayed"
        outcomes.append(outcome)
    assert outcomes == [step["expect"] for step in case["steps"]]


def anchor_key(algorithm: Algorithm, secret_hex: str) -> Key:
    material = secret_material(algorithm, bytes.fromhex(secret_hex))
    return Key(owner="anchor", id="anchor", algorithm=algorithm, material=material)


@pytest.mark.parametrize("case", ANCHORS["hmac_sha256"], ids=lambda case: case["source"])
def test_hmac_agrees_with_the_published_vectors(case: dict[str, Any]) -> None:
    key = anchor_key(Algorithm.HMAC_SHA256, case["key_hex"])
    assert key.signature(bytes.fromhex(case["data_hex"])).hex() == case["mac_hex"]


@pytest.mark.parametrize("case", ANCHORS["ed25519"], ids=lambda case: case["source"])
def test_ed25519_agrees_with_the_published_vectors(case: dict[str, Any]) -> None:
    key = anchor_key(Algorithm.ED25519, case["seed_hex"])
    data, signature = bytes.fromhex(case["data_hex"]), bytes.fromhex(case["signature_hex"])
    assert key.signature(data) == signature
    assert key.public_bytes().hex() == case["public_hex"]
    public = Key(
        owner="anchor",
        id="anchor",
        algorithm=Algorithm.ED25519,
        material=public_material(bytes.fromhex(case["public_hex"])),
    )
    assert public.verifies(data, signature)
    assert not public.verifies(data + b"\0", signature)


@pytest.mark.parametrize("case", ANCHORS["aes_256_gcm"], ids=lambda case: case["source"])
def test_aes_gcm_agrees_with_the_published_vectors(case: dict[str, Any]) -> None:
    key = anchor_key(Algorithm.AES_256_GCM, case["key_hex"])
    nonce, associated = bytes.fromhex(case["nonce_hex"]), bytes.fromhex(case["associated_hex"])
    plaintext = bytes.fromhex(case["plaintext_hex"])
    sealed = key.encrypt(nonce, plaintext, associated)
    assert sealed.hex() == case["ciphertext_hex"] + case["tag_hex"]
    assert key.decrypt(nonce, sealed, associated) == plaintext


def test_the_vectors_cover_every_dialect_algorithm_and_refusal() -> None:
    assert {case["dialect"] for case in SIGNATURES if "expect" in case} == {"mac", "spec022", "acp"}
    assert {case["expect"]["algorithm"] for case in SIGNATURES if "expect" in case} == {
        "SHA256",
        "ED25519",
    }
    refusals = {case["error"] for case in SIGNATURES + ENCRYPTED if "error" in case}
    assert refusals == {"BAD_SIGNATURE", "UNKNOWN_KEY", "CANNOT_DECRYPT", "INVALID_MESSAGE_FORMAT"}


def test_a_second_implementation_agrees_on_every_vector() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the second implementation needs Node 18 or later; there is no node on PATH")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    major = re.match(r"v(\d+)", version)
    if major is None or int(major[1]) < NODE_18:
        pytest.skip(f"the second implementation needs Node 18 or later; this is {version.strip()}")
    checked = subprocess.run(
        [node, str(VECTORS / "check.mjs")], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "no difference" in checked.stdout


def test_the_page_shows_the_first_vector_and_code_that_runs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"```\n{SIGNATURES[0]['signed_bytes']}\n```" in page
    assert f"```\n{SIGNATURES[0]['signature']}\n```" in page
    for vectors in VECTORS.glob("*.json"):
        assert f"`{vectors.name}`" in page
    example = re.search(r"<!-- example -->\n```python\n(.*?)```", page, re.DOTALL)
    assert example is not None
    exec(compile(example[1], str(PAGE), "exec"), {})
