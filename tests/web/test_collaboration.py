"""The four collaboration messages over one WebSocket, as a client that knows only them sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agentcanvas.app.server import ServerInfo
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs.report import markdown
from tests.web.office import FakeOffice, noted, started

pytestmark = [pytest.mark.anyio, pytest.mark.req("V5")]

DISPATCH = e.TaskDispatched(
    actor="orchestrator",
    provenance=e.Provenance.ORCHESTRATOR_TO_WORKER,
    payload=e.Dispatch("task-1", "custom:coder-1", "Refactor src/api.ts"),
)


@asynccontextmanager
async def socket(
    server: ServerInfo, query: str = "", **headers: str
) -> AsyncIterator[ClientConnection]:
    address = server.url.replace("http", "ws", 1) + "/api/v1/ws" + query
    said = headers or {"authorization": f"Bearer {server.token}"}
    async with connect(address, additional_headers=said, proxy=None) as connection:
        yield connection


async def told(connection: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = msgspec.json.decode(await connection.recv())
    return message


async def asked(connection: ClientConnection, kind: str, **payload: Any) -> dict[str, Any]:
    request = {"type": kind, "payload": payload, "requestId": "7"}
    await connection.send(msgspec.json.encode(request).decode())
    answer = await told(connection)
    assert answer["requestId"] == "7"
    return answer


async def test_each_event_of_the_cards_is_told_as_it_happens(
    server: ServerInfo, office: FakeOffice
) -> None:
    await office.write("run_1", started())
    async with socket(server) as connection:
        await asked(connection, "GET_COLLAB_LOG", runId="run_1")  # it is there now
        await office.write("run_1", noted("no card"), DISPATCH)
        event = await told(connection)
        assert event["type"] == "COLLAB_EVENT"
        payload = event["payload"]
        assert {name: payload[name] for name in ("event", "actor", "provenance", "data")} == {
            "event": "task_dispatched",
            "actor": "orchestrator",
            "provenance": "orchestrator_to_worker",
            "data": {
                "taskId": "task-1",
                "workerId": "custom:coder-1",
                "instruction": "Refactor src/api.ts",
            },
        }
        assert payload["runId"] == "run_1"
        place = payload["id"]
    await office.write("run_1", DISPATCH)
    async with socket(server, f"?last_event_id={place}") as connection:
        assert (await told(connection))["payload"]["id"] > place


async def test_the_log_and_the_report_of_a_run_can_be_asked_for(
    server: ServerInfo, office: FakeOffice
) -> None:
    await office.write("run_1", started(), noted("no card"), DISPATCH)
    async with socket(server) as connection:
        log = await asked(connection, "GET_COLLAB_LOG", runId="run_1")
        assert [line["event"] for line in log["payload"]["events"]] == ["task_dispatched"]
        report = await asked(connection, "GET_COLLAB_REPORT_MD", runId="run_1")
        recorded = [entry async for entry in office.events("run_1", follow=False)]
        assert report["payload"] == {"runId": "run_1", "markdown": markdown(recorded)}


async def test_a_verdict_reaches_the_ask_of_its_task(
    server: ServerInfo, office: FakeOffice
) -> None:
    await office.write("run_1", started())
    office.open_asks = [
        PersonAsk(
            ask_id=f"ask-{task}",
            person="you",
            run_id="run_1",
            agent_id="engine",
            scope=f"review:{task}",
            text="Apply?",
        )
        for task in ("task-1", "task-2")
    ]
    async with socket(server) as connection:
        verdict = {"runId": "run_1", "taskId": "task-2", "decision": "revise"}
        refused = await asked(connection, "MANUAL_REVIEW", **verdict)
        assert "needs a reason" in refused["payload"]["error_message"]
        answer = await asked(connection, "MANUAL_REVIEW", **verdict, reason="Add a test")
        assert answer["payload"] == verdict
    said = PersonAnswer({"decision": "revise", "reason": "Add a test"}, "you")
    assert ("answer", "ask-task-2", said) in office.calls


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "INVALID_MESSAGE_FORMAT"),
        ("[]", "VALIDATION_FAILED"),
        ('{"type": "DANCE"}', "INVALID_MESSAGE_FORMAT"),
        ('{"type": "GET_COLLAB_LOG", "payload": {}}', "VALIDATION_FAILED"),
        ('{"type": "GET_COLLAB_LOG", "payload": {"runId": "none"}}', "NOT_FOUND"),
        (
            '{"type": "MANUAL_REVIEW", "payload": '
            '{"runId": "run_1", "taskId": "t", "decision": "maybe"}}',
            "VALIDATION_FAILED",
        ),
        (
            '{"type": "MANUAL_REVIEW", "payload": '
            '{"runId": "run_1", "taskId": "t", "decision": "apply"}}',
            "NOT_FOUND",
        ),
        ("[" * 5000, "INVALID_MESSAGE_FORMAT"),
    ],
)
async def test_what_cannot_be_understood_is_answered_and_the_connection_stays(
    server: ServerInfo, office: FakeOffice, message: str, code: str
) -> None:
    await office.write("run_1", started())
    async with socket(server) as connection:
        await connection.send(message)
        answer = await told(connection)
        assert answer["type"] == "ERROR"
        assert answer["payload"]["error_code"] == code, answer
        assert (await asked(connection, "GET_COLLAB_LOG", runId="run_1"))[
            "type"
        ] == "GET_COLLAB_LOG"


async def test_only_who_is_let_in_and_comes_from_here_can_connect(server: ServerInfo) -> None:
    async with httpx.AsyncClient(trust_env=False) as browser:
        await browser.get(server.link)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    async with socket(server, cookie=cookie, origin=server.url) as connection:
        assert (await asked(connection, "GET_COLLAB_LOG", runId="x"))["type"] == "ERROR"
    wrong: list[dict[str, str]] = [
        {"x-nothing": "at all"},
        {"cookie": cookie},
        {"cookie": cookie, "origin": "http://evil.test"},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Bearer {server.token}", "host": "evil.test"},
    ]
    for headers in wrong:
        with pytest.raises((InvalidStatus, ConnectionClosed)):
            async with socket(server, **headers):
                pass
