"""What an open hub asks of agents: seals, consent, no secrets, rates of edges (H6, D37, I5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from agentcanvas.app.hub import Sealed
from agentcanvas.app.hub_server import serve_hub
from agentcanvas.app.secrets import secrets_in
from agentcanvas.clock import SystemClock
from agentcanvas.hub.office import TokenOrder
from agentcanvas.hub.tokens import signing_key
from agentcanvas.protocol.seal import sign
from tests.web.sockets import Wire, mac, wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("H6")]

SECRET = "s3cr3t-value-nobody-else-has"


def task(sender: str, to: str, id_: str, **fields: Any) -> dict[str, Any]:
    """Write a MAC task."""
    payload = {"task_id": id_, "task_type": "deploy", "input": "now"}
    return mac(sender, to, id_, **fields) | {"type": "TASK_REQUEST", "payload": payload}


async def told(one: Wire, message: dict[str, Any]) -> dict[str, Any]:
    """Send a message and return the frame that answers it."""
    await one.say(message)
    while "delivery" in (frame := await one.hear()):
        pass
    return frame


async def test_who_has_to_sign_is_refused_unsigned_and_known_by_its_tokens_key(
    tmp_path: Path,
) -> None:
    async with serve_hub(tmp_path, sealed=Sealed(signing=["a"])) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        other = (await hub.keeper.new_token(TokenOrder(name="b"))).text
        async with wire(info.url, "a", token) as a, wire(info.url, "b", other) as b:
            refused = await told(a, mac("a", "b", "m-1"))
            assert refused["payload"]["error_code"] == "BAD_SIGNATURE"
            fresh = mac("a", "b", "m-2", timestamp=SystemClock().now())
            signed = sign(fresh, signing_key(token, "a"))
            assert "receipts" in await told(a, signed)
            forged = {**signed, "priority": 9}
            assert (await told(a, forged))["payload"]["error_code"] == "BAD_SIGNATURE"
            came = await b.hear_message()
            assert came["metadata"]["x_agentcanvas"]["verified_by"] == "verified_by_hub"
            assert "receipts" in await told(b, mac("b", "a", "m-3"))


async def test_the_key_of_a_revoked_token_signs_nothing_any_more(tmp_path: Path) -> None:
    async with serve_hub(tmp_path) as (info, hub):
        old = await hub.keeper.new_token(TokenOrder(name="a"))
        new = await hub.keeper.new_token(TokenOrder(name="a"))
        key = signing_key(old.text, "a")

        def signed(id_: str) -> dict[str, Any]:
            return sign(mac("a", "a", id_, timestamp=SystemClock().now()), key)

        async with wire(info.url, "a", old.text) as a:
            assert "receipts" in await told(a, signed("m-1"))
        await hub.keeper.revoke(old.id)
        async with wire(info.url, "a", new.text) as a:
            refused = await told(a, signed("m-2"))
            assert refused["payload"]["error_code"] == "UNKNOWN_KEY"


async def test_who_has_to_encrypt_is_refused_in_the_clear(tmp_path: Path) -> None:
    async with serve_hub(tmp_path, sealed=Sealed(encrypting=["a"])) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        async with wire(info.url, "a", token) as a:
            refused = await told(a, mac("a", "a", "m-1"))
            assert "has to encrypt" in refused["payload"]["error_message"]


@pytest.mark.req("C5", "D24")
async def test_an_urgent_task_waits_for_the_person_who_was_named(tmp_path: Path) -> None:
    async with serve_hub(tmp_path, person="you") as (info, hub):
        tokens = {
            name: (await hub.keeper.new_token(TokenOrder(name=name))).text
            for name in ("a", "b", "person:you")
        }
        async with (
            wire(info.url, "a", tokens["a"]) as a,
            wire(info.url, "b", tokens["b"]) as b,
            wire(info.url, "person:you", tokens["person:you"]) as you,
        ):
            (receipt,) = (await told(a, task("a", "b", "m-1", priority=8)))["receipts"]
            assert receipt["held"] is True
            asked = await you.hear_message()
            answer = mac(
                "person:you", "hub", "yes-1", metadata={"parent_message_id": asked["message_id"]}
            )
            answer |= {
                "type": "TASK_COMPLETE",
                "payload": {
                    "task_id": asked["payload"]["task_id"],
                    "status": "SUCCESS",
                    "output": {"content": {"decision": "approve"}, "person": "you"},
                },
            }
            await you.say(answer)
            assert (await b.hear_message())["message_id"] == "m-1"


@pytest.mark.req("C5")
async def test_what_asks_for_consent_is_refused_where_nobody_can_be_asked(tmp_path: Path) -> None:
    async with serve_hub(tmp_path) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        command = {
            "id": "c-1",
            "timestamp": "2026-01-28T10:00:00Z",
            "version": "2.0",
            "from": "a",
            "to": "a",
            "priority": "low",
            "action": "EXECUTE",
            "parameters": {},
            "security": {"permissions": [], "requireApproval": True},
        }
        async with wire(info.url, "a", token) as a:
            refused = await told(a, command)
            assert refused["payload"]["error_code"] == "NOT_APPROVED"
            assert "nobody to ask" in refused["payload"]["error_message"]
            assert "receipts" in await told(a, task("a", "a", "m-1", priority=9))


@pytest.mark.req("D37")
async def test_a_secret_of_the_environment_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    async with serve_hub(tmp_path) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        async with wire(info.url, "a", token) as a:
            heard = []
            for id_, text in (("m-1", SECRET), ("m-2", token), ("m-3", info.token)):
                await a.say(mac("a", "a", id_, f"the secret is {text}."))
                both = [await a.hear(), await a.hear()]  # the receipt and the message, as they come
                heard += [json.dumps(frame) for frame in both if "delivery" in frame]
                assert any("receipts" in frame for frame in both)
            await a.say(mac("b", "a", "m-4", SECRET))
            heard.append(json.dumps(await a.hear_error()))
    assert "[redacted:SOME_API_KEY]" in heard[0]
    kept = await anyio.to_thread.run_sync(_everything_in, tmp_path)
    for text in (SECRET, token, info.token):
        assert text not in "".join(heard)
        assert text.encode() not in kept


def _everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_secrets_are_known_by_the_names_people_give_them() -> None:
    environ = {
        "OPENAI_API_KEY": "1",
        "GH_TOKEN": "2",
        "PGPASSWORD": "3",
        "HOME": "4",
        "KEYMAP": "5",
    }
    assert secrets_in(environ).keys() == {"OPENAI_API_KEY", "GH_TOKEN", "PGPASSWORD"}


@pytest.mark.req("I5", "L1")
async def test_an_edge_that_is_used_too_often_is_told_when_to_go_on(tmp_path: Path) -> None:
    async with serve_hub(tmp_path) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        await hub.hub.sessions.open("s", members=["a"])
        hub.hub.rates.install("s", {("a", "a"): 2})
        async with wire(info.url, "a", token) as a:
            frames = [
                await told(a, mac("a", "a", f"m-{number}", metadata={"session_id": "s"}))
                for number in range(3)
            ]
        assert ["receipts" in frame for frame in frames] == [True, True, False]
        assert frames[2]["payload"]["error_code"] == "RATE_LIMITED"


async def test_a_message_says_nothing_of_who_verified_it(tmp_path: Path) -> None:
    async with serve_hub(tmp_path) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        metadata = {"x_agentcanvas": {"verified_by": "verified_by_hub"}}
        async with wire(info.url, "a", token) as a:
            refused = await told(a, mac("a", "a", "m-1", metadata=metadata))
            assert "Only the hub says" in refused["payload"]["error_message"]


async def test_a_revoked_token_ends_its_connections(tmp_path: Path) -> None:
    async with serve_hub(tmp_path) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        async with wire(info.url, "a", token) as a:
            await hub.keeper.revoke("a")
            code, _ = await a.ended()
            assert code == 1001


async def test_a_door_has_no_inbox(tmp_path: Path) -> None:
    async with serve_hub(tmp_path) as (info, hub):
        token = (await hub.keeper.new_token(TokenOrder(name="door:ide"))).text
        with pytest.raises(Exception, match="403"):
            async with wire(info.url, "door:ide", token):
                pass
