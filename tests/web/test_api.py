"""The API over a real server: what it gives, and how it refuses."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import httpx
import pytest

from agentcanvas.app.server import ServerInfo
from agentcanvas.errors import ApplyConflict
from agentcanvas.protocol.dialects import decode
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.shown import Side
from tests.e2e import story
from tests.web.office import FILES, FLOW, PATCH, FakeOffice, ended, noted, started

pytestmark = [pytest.mark.anyio, pytest.mark.req("D39")]

ORDER = {"flow": "f", "flowText": "name: f", "request": "fix it"}


async def test_a_run_is_listed_told_and_read_event_by_event(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    last = await office.write("r1", started(), noted("one"), ended())
    listed = (await client.get("/api/v1/runs")).json()
    assert [run["runId"] for run in listed["runs"]] == ["r1"]
    told = (await client.get("/api/v1/runs/r1")).json()
    assert told["state"]["status"] == "done"
    epoch, _, head = told["head"].partition("-")
    assert int(head) == last
    read = (await client.get("/api/v1/runs/r1/events")).json()
    assert [event["event"] for event in read["events"]] == ["run_started", "noted", "run_ended"]
    assert read["events"][1]["payload"] == {"entry": "one"}
    assert read["events"][1]["runId"] == "r1"
    assert read["head"] == f"{epoch}-{last}"
    later = (await client.get("/api/v1/runs/r1/events?after=2")).json()
    assert [event["seq"] for event in later["events"]] == [3]


@pytest.mark.req("V6")
async def test_a_report_comes_in_the_form_that_was_asked_for(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    await office.write("r1", started(), ended())
    answer = await client.get("/api/v1/runs/r1/report")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith(f"# Run Report: {FLOW} / r1")
    told = (await client.get("/api/v1/runs/r1/report?format=json")).json()
    assert told["run"]["id"] == "r1"
    page = await client.get("/api/v1/runs/r1/report?format=html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "r1" in page.text
    assert "sandbox" in page.headers["content-security-policy"]
    refused = await client.get("/api/v1/runs/r1/report?format=pdf")
    assert refused.status_code == 422
    assert "format" in refused.json()["payload"]["error_message"]


async def test_a_patch_comes_byte_for_byte_also_for_a_task_with_slashes_in_its_name(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    await office.write("r1", started())
    assert (await client.get("/api/v1/runs/r1/tasks/a%2Fb:1/patch")).content == PATCH
    assert office.calls == [("patch", "r1", "a/b:1", None)]


async def test_a_transcript_is_that_of_one_agent_or_of_all(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    await office.write("r1", started())
    office.say(1, "a1", "hello")
    office.say(2, "a2", "hi")
    everyone = (await client.get("/api/v1/runs/r1/transcript")).json()
    assert [entry["agent"] for entry in everyone["entries"]] == ["a1", "a2"]
    one = (await client.get("/api/v1/runs/r1/transcript?agent=a2")).json()
    assert [entry["event"]["text"] for entry in one["entries"]] == ["hi"]


async def test_a_run_is_started_stopped_resumed_retried_and_undone(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    answer = await client.post("/api/v1/runs", json={**ORDER, "maxParallel": 2})
    assert answer.status_code == 201
    run = answer.json()["runId"]
    assert (await client.post(f"/api/v1/runs/{run}/stop", json={"reason": "enough"})).is_success
    assert (await client.post(f"/api/v1/runs/{run}/stop")).status_code == 204
    assert (await client.post(f"/api/v1/runs/{run}/resume")).status_code == 204
    assert (await client.post(f"/api/v1/runs/{run}/retry")).json() == {"runId": f"{run}_again"}
    undone = (await client.post(f"/api/v1/runs/{run}/undo", json={"taskId": "t7"})).json()
    assert undone == {
        "undone": [
            {"taskId": "t7", "files": ["x.py"]},
            {"taskId": "t0", "problem": "It was edited."},
        ]
    }
    order = RunOrder(flow="f", flow_text="name: f", request="fix it", max_parallel=2)
    assert office.calls == [
        ("start", order),
        ("stop", run, "enough"),
        ("stop", run, "stopped by you"),
        ("resume", run),
        ("retry", run),
        ("undo", run, "t7"),
    ]


async def test_what_waits_for_a_person_is_shown_and_answered(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    for run in ("r1", "r2"):
        ask = PersonAsk(
            ask_id=f"{run}/round:1/ask", person="you", run_id=run, agent_id="a1", scope="", text="?"
        )
        office.open_asks.append(ask)
    shown = (await client.get("/api/v1/asks?run=r2")).json()
    assert [ask["ask_id"] for ask in shown["asks"]] == ["r2/round:1/ask"]
    body = {"content": {"decision": "apply"}, "person": "you"}
    answer = await client.post("/api/v1/asks/r2%2Fround:1%2Fask/answer", json=body)
    assert answer.status_code == 204
    assert office.calls == [
        ("answer", "r2/round:1/ask", PersonAnswer({"decision": "apply"}, "you"))
    ]


@pytest.mark.req("M3", "H11")
@pytest.mark.parametrize(
    "refused",
    [
        ("GET", "/runs/nope", b"", 404, "NOT_FOUND", "no run nope"),
        ("GET", "/runs/nope/events?follow=true", b"", 404, "NOT_FOUND", "no run nope"),
        ("GET", "/events?run=nope", b"", 404, "NOT_FOUND", "no run nope"),
        ("GET", "/nothing", b"", 404, "NOT_FOUND", "/api/v1/nothing"),
        ("POST", "/asks/nope/answer", b'{"content": 1}', 404, "NOT_FOUND", "under nope"),
        ("POST", "/runs", b"{", 400, "INVALID_MESSAGE_FORMAT", "not JSON"),
        ("POST", "/runs", b'"\xff"', 400, "INVALID_MESSAGE_FORMAT", "UTF-8"),
        ("POST", "/runs", b"[" * 9000, 400, "INVALID_MESSAGE_FORMAT", "Nested deeper"),
        ("POST", "/runs", b"[]", 422, "VALIDATION_FAILED", "The body"),
        ("POST", "/runs", b"", 422, "VALIDATION_FAILED", "`flow`"),
        ("POST", "/runs", b'{"flow": 1}', 422, "VALIDATION_FAILED", "The field flow of the body"),
        ("GET", "/runs/r1/events?after=x", b"", 422, "VALIDATION_FAILED", "field after of the qu"),
        ("GET", "/runs/r1/events?after=-1", b"", 422, "VALIDATION_FAILED", "field after of the qu"),
        ("POST", "/runs/r1/stop", b'{"reason": []}', 422, "VALIDATION_FAILED", "field reason"),
        ("POST", "/runs", b" " * 1_048_577, 413, "MESSAGE_TOO_LARGE", "1,048,577 bytes"),
        ("DELETE", "/runs", b"", 405, "METHOD_NOT_ALLOWED", "GET"),
        ("PUT", "/runs/r1", b"", 405, "METHOD_NOT_ALLOWED", "not used with PUT"),
        ("PUT", "/runs", b"", 405, "METHOD_NOT_ALLOWED", "but: GET, HEAD, POST."),
    ],
)
async def test_a_bad_request_is_answered_with_one_error_message(
    client: httpx.AsyncClient, refused: tuple[str, str, bytes, int, str, str]
) -> None:
    method, path, body, status, code, words = refused
    answer = await client.request(method, f"/api/v1{path}", content=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    payload = answer.json()["payload"]
    assert payload["error_code"] == code
    assert words in payload["error_message"]
    reading = decode(answer.content)
    assert reading.envelope.kind is Kind.ERROR
    assert not reading.breaches


@pytest.mark.req("L1")
@pytest.mark.parametrize(
    ("size", "body"),
    [
        ("content-length: 1048577", b""),
        ("content-length: 99999999999", b""),
        ("transfer-encoding: chunked", b"10001\r\n%s\r\n" % (b" " * 65537) * 16),
    ],
    ids=["just over", "far over", "unsaid"],
)
async def test_what_is_too_large_is_refused_before_the_rest_of_it_arrives(
    server: ServerInfo, size: str, body: bytes
) -> None:
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"POST /api/v1/runs HTTP/1.1\r\nhost: {address.netloc}\r\n{size}\r\n"
    writer.write(f"{head}authorization: Bearer {server.token}\r\n\r\n".encode() + body)
    assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()
    await writer.wait_closed()


async def test_a_conflict_of_the_office_keeps_its_status_and_its_details(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    office.failure = ApplyConflict("x.py was edited.", conflicts={"x.py": "line 3 differs"})
    answer = await client.get("/api/v1/runs/r1")
    assert answer.status_code == 409
    assert answer.json()["metadata"]["details"] == {"conflicts": {"x.py": "line 3 differs"}}


@pytest.mark.req("H11")
async def test_a_defect_tells_nothing_about_the_inside(
    client: httpx.AsyncClient, office: FakeOffice, caplog: pytest.LogCaptureFixture
) -> None:
    office.failure = RuntimeError("secret inside")
    answer = await client.get("/api/v1/runs/r1")
    assert answer.status_code == 500
    assert json.loads(answer.content)["payload"]["error_code"] == "INTERNAL_ERROR"
    assert b"secret inside" not in answer.content
    assert "secret inside" in caplog.text


@pytest.mark.req("D13")
async def test_a_proposal_is_given_in_full_also_an_earlier_attempt(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    await office.write("r1", started())
    shown = (await client.get("/api/v1/runs/r1/tasks/t1/proposal")).json()
    assert (shown["proposalId"], shown["status"], shown["attempt"]) == ("t1.r0", "waiting", 1)
    assert (await client.get("/api/v1/runs/r1/tasks/a%2Fb/proposal?attempt=2")).is_success
    assert (await client.get("/api/v1/runs/r1/tasks/t1/patch?attempt=1")).is_success
    refused = await client.get("/api/v1/runs/r1/tasks/t1/proposal?attempt=0")
    assert refused.status_code == 422
    assert office.calls == [
        ("proposal", "r1", "t1", None),
        ("proposal", "r1", "a/b", 2),
        ("patch", "r1", "t1", 1),
    ]


@pytest.mark.req("U2")
async def test_the_trail_of_a_task_is_what_is_on_record_about_it_and_nothing_else(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    about = [story.dispatch(task, "Write it") for task in ("t1", "t2")]
    about += [story.progress("t1", "edits a.py"), story.proposal("t1", "Written")]
    await office.write("r1", started(), *about, noted("nothing of it"))
    told = (await client.get("/api/v1/runs/r1/tasks/t1/trail")).json()["events"]
    assert [event["event"] for event in told] == ["task_dispatched", "proposal_submitted"]
    assert {event["payload"]["taskId"] for event in told} == {"t1"}
    missing = await client.get("/api/v1/runs/r1/tasks/t9/trail")
    assert missing.status_code == 404
    assert "r1 has no task t9" in missing.json()["payload"]["error_message"]


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("name", "media"),
    [
        ("dot.png", "image/png"),
        ("photo.jpg", "image/jpeg"),
        ("old.gif", "image/gif"),
        ("new.webp", "image/webp"),
        ("page.html", "application/octet-stream"),
        ("drawing.svg", "application/octet-stream"),
        ("x", "application/octet-stream"),
    ],
)
async def test_a_file_of_an_agent_is_a_picture_or_data_and_never_a_page(
    client: httpx.AsyncClient, office: FakeOffice, name: str, media: str
) -> None:
    await office.write("r1", started())
    answer = await client.get(f"/api/v1/runs/r1/tasks/t1/file?path={name}&side=before")
    assert (answer.content, answer.headers["content-type"]) == (FILES[name], media)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert office.calls == [("file", "r1", "t1", name, Side.BEFORE, None)]
    assert (await client.get("/api/v1/runs/r1/tasks/t1/file?side=x")).status_code == 422
