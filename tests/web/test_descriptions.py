"""What tools are told about this server is what it does (M1, H1)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import msgspec
import pytest

from agentcanvas.app.hub import open_hub
from agentcanvas.app.server import serve_beside
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.hub.guard import Scope
from agentcanvas.hub.office import TokenOrder
from agentcanvas.protocol.limits import Limits
from agentcanvas.web.descriptions import documents
from tests.app.hub_process import hub_beside
from tests.web.office import FakeOffice
from tests.web.sockets import mac, wire

pytestmark = [pytest.mark.anyio]

STREAMS = "/events$|/record/live$"
"""They end when the asker has enough, which is never."""


class Served(NamedTuple):
    """A workspace's server, and two tokens for it."""

    url: str
    token: str
    agent: str


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    folder = tmp_path / ".agentcanvas"
    await anyio.Path(folder).mkdir()
    # Its time passes at once, so that nobody waits for a long poll.
    clock = VirtualClock()
    path = folder / "agentcanvas.db"
    async with open_hub(path, clock=clock, limits=Limits(), calls_back=False) as hub:
        agent = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        office = FakeOffice(hub.store)
        async with serve_beside(
            office, hub.store, tmp_path, port=0, static=None, clock=SystemClock(), hub=hub
        ) as info:
            yield Served(info.url, info.token, agent)


async def probed(served: Served, token: str, *choice: str) -> str:
    """Have schemathesis try whatever the document allows, and more; return what it says."""
    done = await anyio.run_process(
        [
            sys.executable,
            "-c",
            "from schemathesis.cli import schemathesis; schemathesis()",
            "run",
            f"{served.url}/api/v1/openapi.json",
            f"--url={served.url}",
            f"--header=Authorization: Bearer {token}",
            "--checks=not_a_server_error",
            "--phases=examples,fuzzing",
            "--max-examples=6",
            "--mode=all",
            "--seed=1",
            "--generation-deterministic",
            "--request-timeout=20",
            "--suppress-health-check=all",
            *choice,
        ],
        check=False,
    )
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0, said[-6000:]
    return said


@pytest.mark.req("M3", "H1", "H11")
async def test_whatever_is_sent_to_the_door_of_agents_the_server_does_not_fail(
    served: Served,
) -> None:
    said = await probed(served, served.agent, "--include-path-regex=^/api/v1/(messages|blobs)")
    assert "Server error" not in said


@pytest.mark.req("M3", "H11", "D26")
async def test_whatever_is_sent_to_the_office_the_server_does_not_fail(served: Served) -> None:
    choice = (f"--exclude-path-regex={STREAMS}|^/api/v1/(messages|blobs)",)
    said = await probed(served, served.token, *choice)
    assert "Server error" not in said


async def test_the_documents_are_given_out_as_they_are_exported(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        for name, document in documents().items():
            answer = await client.get(f"/api/v1/{name}")
            assert answer.content == msgspec.json.encode(document)


def test_every_operation_has_a_name_of_its_own_and_a_sentence() -> None:
    operations: list[dict[str, Any]] = [
        operation
        for path in documents()["openapi.json"]["paths"].values()
        for operation in path.values()
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(operation["summary"].endswith((".", ":")) for operation in operations)


@pytest.mark.req("D26")
async def test_metrics_count_messages_and_connections(tmp_path: Path) -> None:
    async with hub_beside(tmp_path) as (info, hub):
        agent = (await hub.keeper.new_token(TokenOrder(name="a"))).text
        door = TokenOrder(name="door:monitor", scopes=(Scope.READ,))
        reader = (await hub.keeper.new_token(door)).text
        async with (
            wire(info.url, "a", agent) as a,
            httpx.AsyncClient(base_url=info.url, trust_env=False) as client,
        ):
            for message in (mac("a", "a", "m-1"), mac("a", "a", "m-1"), mac("b", "a", "m-2")):
                await a.say(message)
                while "delivery" in await a.hear():
                    pass
            answer, refused = [
                await client.get("/metrics", headers={"authorization": f"Bearer {token}"})
                for token in (reader, agent)
            ]
    assert refused.status_code == 403
    assert answer.headers["content-type"].startswith("text/plain")
    lines = set(answer.text.splitlines())
    for line in (
        'agentcanvas_messages_total{outcome="kept"} 1.0',
        'agentcanvas_messages_total{outcome="repeated"} 1.0',
        "agentcanvas_queue_depth 1.0",
        'agentcanvas_inbox_depth{agent="a"} 1.0',
        'agentcanvas_connections{door="websocket"} 1.0',
        'agentcanvas_agents{state="present"} 1.0',
        "agentcanvas_dead_letters_total 0.0",
    ):
        assert line in lines, answer.text
    assert "agentcanvas_hand_in_seconds_count 3.0" in lines
