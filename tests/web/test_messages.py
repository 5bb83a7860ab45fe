"""The HTTP door: send, read, take, acknowledge; refusals are MAC ERROR messages (H1, D36, M3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from agentcanvas.hub.office import TokenOrder
from tests.app.hub_process import hub_beside
from tests.web.sockets import mac

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1")]

NAMES = ("a", "b")


class Caller:
    """An agent that speaks HTTP by hand, as with curl."""

    def __init__(self, client: httpx.AsyncClient, name: str, token: str) -> None:
        self.client = client
        self.name = name
        self.headers = {"authorization": f"Bearer {token}"}

    async def post(self, message: Any, path: str = "") -> httpx.Response:
        content = message if isinstance(message, bytes) else None
        return await self.client.post(
            f"/api/v1/messages{path}",
            content=content,
            json=None if content is not None else message,
            headers=self.headers,
        )

    async def get(self, **query: Any) -> dict[str, Any]:
        answer = await self.client.get(
            "/api/v1/messages", params={"agent_id": self.name, **query}, headers=self.headers
        )
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
async def callers(tmp_path: Path) -> AsyncIterator[tuple[Caller, Caller]]:
    async with (
        hub_beside(tmp_path) as (info, opened),
        httpx.AsyncClient(base_url=info.url, trust_env=False) as client,
    ):
        a, b = [
            Caller(client, name, (await opened.keeper.new_token(TokenOrder(name=name))).text)
            for name in NAMES
        ]
        yield a, b


def ids(answer: dict[str, Any]) -> list[str]:
    return [message["message_id"] for message in answer["messages"]]


async def test_a_message_is_sent_read_and_acknowledged(callers: tuple[Caller, Caller]) -> None:
    a, b = callers
    answer = await a.post(mac("a", "b", "m-1"))
    assert answer.status_code == 201
    receipt = answer.json()
    assert receipt["id"] == "m-1"
    (message,) = (await b.get())["messages"]
    assert message.pop("delivery") == {"number": receipt["numbers"][0], "session": "default"}
    assert message == mac("a", "b", "m-1")
    assert (await b.post({"ack": ["m-1"]}, "/ack")).json() == {"news": 1}
    assert (await b.post({"ack": receipt["numbers"]}, "/ack")).json() == {"news": 0}


@pytest.mark.req("D36")
async def test_reading_never_consumes_and_a_cursor_goes_on(callers: tuple[Caller, Caller]) -> None:
    a, b = callers
    for number in range(3):
        await a.post(mac("a", "b", f"m-{number}"))
    first = await b.get(limit=2)
    assert ids(first) == ["m-0", "m-1"]
    assert ids(await b.get(limit=2)) == ["m-0", "m-1"]
    rest = await b.get(since=first["cursor"])
    assert ids(rest) == ["m-2"]
    nothing = await b.get(since=rest["cursor"])
    assert nothing == {"messages": [], "cursor": rest["cursor"]}
    await b.post({"ack": ["m-1"]}, "/ack")
    assert ids(await b.get()) == ["m-0", "m-1", "m-2"]
    assert ids(await b.get(waiting="true")) == ["m-0", "m-2"]
    assert ids(await b.get(since="2026-01-28T10:00:00Z")) == ["m-0", "m-1", "m-2"]
    assert ids(await b.get(since="2126-01-28T10:00:00Z")) == []


async def test_a_long_poll_ends_when_something_comes(callers: tuple[Caller, Caller]) -> None:
    a, b = callers
    found: dict[str, Any] = {}

    async def poll() -> None:
        found.update(await b.get(wait=30))

    async with anyio.create_task_group() as group:
        group.start_soon(poll)
        await anyio.wait_all_tasks_blocked()
        await a.post(mac("a", "b", "m-1"))
    assert ids(found) == ["m-1"]


async def test_a_long_poll_without_mail_ends_in_time(callers: tuple[Caller, Caller]) -> None:
    _, b = callers
    assert ids(await b.get(wait=0.01)) == []


async def test_a_batch_is_answered_message_by_message(callers: tuple[Caller, Caller]) -> None:
    a, b = callers
    answer = await a.post(
        [mac("a", "b", "m-1"), {"type": "TASK_REQUEST"}, mac("b", "a", "m-2"), mac("a", "b", "m-3")]
    )
    assert answer.status_code == 201
    outcomes = answer.json()["outcomes"]
    assert [outcome.keys() for outcome in outcomes] == [
        {"receipt"},
        {"error"},
        {"error"},
        {"receipt"},
    ]
    assert outcomes[2]["error"]["payload"]["original_message_id"] == "m-2"
    assert ids(await b.get()) == ["m-1", "m-3"]


async def test_taken_messages_come_by_priority_and_again_when_given_back(
    callers: tuple[Caller, Caller],
) -> None:
    a, b = callers
    for number, priority in enumerate((1, 5, 9)):
        await a.post(mac("a", "b", f"m-{number}", priority=priority))
    taken = (await b.post({"most": 10}, "/take")).json()
    assert ids(taken) == ["m-2", "m-1", "m-0"]
    assert (await b.post({"ack": ["m-1"], "nack": ["m-2"]}, "/ack")).json() == {"news": 2}
    again = (await b.post({"wait": 30}, "/take")).json()
    assert ids(again) == ["m-2"]
    assert again["messages"][0]["delivery"]["tries"] == 1
    await b.client.delete("/api/v1/messages/take", headers=b.headers)
    once_more = (await b.post({}, "/take")).json()
    assert sorted(ids(once_more)) == ["m-0", "m-2"]


async def test_only_what_was_taken_can_be_given_back(callers: tuple[Caller, Caller]) -> None:
    a, b = callers
    await a.post(mac("a", "b", "m-1"))
    answer = await b.post({"nack": ["m-1"]}, "/ack")
    assert answer.status_code == 409
    assert "Only messages that were taken" in answer.json()["payload"]["error_message"]


@pytest.mark.req("M3", "H11")
@pytest.mark.parametrize(
    ("message", "status", "code", "about"),
    [
        (b"no JSON", 400, "INVALID_MESSAGE_FORMAT", "unknown"),
        (b"[1, 2", 400, "INVALID_MESSAGE_FORMAT", "unknown"),
        (b"\xff", 400, "INVALID_MESSAGE_FORMAT", "unknown"),
        (mac("b", "a", "m-1"), 403, "PERMISSION_DENIED", "m-1"),
        (mac("a", "nobody", "m-1"), 404, "AGENT_NOT_FOUND", "m-1"),
        (mac("a", "b", "m-1", "x" * 1_048_576), 413, "MESSAGE_TOO_LARGE", "unknown"),
        (mac("a", "b", "m-1", metadata={"session_id": "none"}), 422, "VALIDATION_FAILED", "m-1"),
    ],
)
async def test_a_refusal_is_a_mac_error_with_the_right_status(
    callers: tuple[Caller, Caller], message: Any, status: int, code: str, about: str
) -> None:
    answer = await callers[0].post(message)
    error = answer.json()
    assert (answer.status_code, error["payload"]["error_code"]) == (status, code)
    assert error["type"] == "ERROR"
    assert error["payload"]["original_message_id"] == about
    assert "Traceback" not in answer.text


async def test_without_a_token_nothing_is_said(callers: tuple[Caller, Caller]) -> None:
    a, b = callers
    for headers in ({}, {"authorization": "Bearer wrong"}):
        answer = await a.client.get("/api/v1/messages?agent_id=a", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    answer = await a.client.get("/api/v1/messages?agent_id=b", headers=a.headers)
    assert answer.status_code == 401
    shown = b.headers["authorization"].removeprefix("Bearer ")
    answer = await a.client.get(f"/api/v1/messages?agent_id=b&auth_token={shown}")
    assert answer.status_code == 200


async def test_an_agents_token_does_not_open_the_office(callers: tuple[Caller, Caller]) -> None:
    answer = await callers[0].client.get("/api/v1/hub/tokens", headers=callers[0].headers)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/api/v1/message", 401, "opens /agent/ws and, below /api/v1, messages and blobs"),
        ("GET", "/agent/ws", 400, "/agent/ws is for WebSockets"),
        ("PATCH", "/api/v1/messages", 405, "but: GET, HEAD, POST."),
        ("GET", "/api/v1/messages/take", 405, "but: DELETE, POST."),
        ("POST", "/api/v1/blobs/x", 405, "but: DELETE, GET, HEAD, PUT."),
    ],
)
async def test_an_agent_at_a_wrong_address_is_told_where_to_go(
    callers: tuple[Caller, Caller], method: str, path: str, status: int, says: str
) -> None:
    a, _ = callers
    answer = await a.client.request(method, path, headers=a.headers)
    assert answer.status_code == status
    assert says in answer.json()["payload"]["error_message"]


@pytest.mark.parametrize("cursor", ["0123456789ab-7", "{ours}-²", "{ours}-99999999999999999999"])
async def test_a_cursor_of_another_hub_is_refused(
    callers: tuple[Caller, Caller], cursor: str
) -> None:
    a, _ = callers
    ours, _, _ = (await a.get())["cursor"].rpartition("-")
    answer = await a.client.get(
        "/api/v1/messages", params={"since": cursor.format(ours=ours)}, headers=a.headers
    )
    assert answer.status_code == 422
    assert "nor a cursor of this hub" in answer.text


async def test_with_a_new_token_mail_is_taken_at_once(tmp_path: Path) -> None:
    async with (
        hub_beside(tmp_path) as (info, opened),
        httpx.AsyncClient(base_url=info.url, trust_env=False) as client,
    ):
        for _ in range(2):
            token = (await opened.keeper.new_token(TokenOrder(name="a"))).text
            answer = await Caller(client, "a", token).post({"wait": 0}, "/take")
            assert answer.status_code == 200, answer.text
            await opened.keeper.revoke("a")
