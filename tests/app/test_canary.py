"""A known secret in every field of every message, by every door: nobody finds it afterwards (D37).

What a hub is told may be in its memory for a moment. It must be in no file, no answer, no log, no
command's output and no call to others.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agentcanvas.cli import app
from agentcanvas.errors import AgentCanvasError
from agentcanvas.protocol.dialects import DIALECTS
from agentcanvas.protocol.kinds import Kind
from tests.app.hub_process import hub_beside, tokens_for
from tests.hub.test_redaction import CANARY, SPELLINGS, canary_message
from tests.web.sockets import wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("D37", "H6")]

EXAMPLES = Path(__file__).parents[1] / "protocol" / "examples"
MESSAGES = ("mac_*.json", "s22_*.json", "acp_*.json", "invalid_mac_*.json")
COMMANDS = (
    "agents",
    "token list --all",
    "tail --no-follow -n 1000",
    "tail --no-follow -n 1000 --json",
    "deadletters --json",
    "audit export",
)


def planted(value: Any) -> Iterator[Any]:
    """Copies of JSON, each with the secret in one place: a text or the name of a member."""
    for path in list(_texts(value)):
        changed = copy.deepcopy(value)
        *way, last = path
        place = changed
        for step in way:
            place = place[step]
        place[last] = f"in {CANARY} between"
        yield changed
        if isinstance(last, str):
            place[CANARY] = place.pop(last)
            yield copy.deepcopy(changed)


def _texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str) and path:
        yield path
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, (*path, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _texts(each, (*path, number))


def messages() -> list[bytes]:
    """Every example of the documents with the secret in each place, and each kind full of it."""
    found = []
    for pattern in MESSAGES:
        for file in sorted(EXAMPLES.glob(pattern)):
            example = json.loads(file.read_bytes())
            for side in ("from", "to"):
                if side in example:
                    example[side] = "a" if side == "from" else "b"
                elif f"{side}_agent" in example:
                    example[f"{side}_agent"]["agent_id"] = "a" if side == "from" else "b"
            found += [json.dumps(each, ensure_ascii=False).encode() for each in planted(example)]
    for kind in Kind:
        for dialect in DIALECTS.values():
            with suppress(AgentCanvasError):
                found.append(dialect.encode(canary_message(kind)))
    garbage = [f'{{"type": "{CANARY}"'.encode(), CANARY.encode(), f'["{CANARY}"]'.encode()]
    return found + garbage


def found_in(text: bytes) -> list[bytes]:
    return [spelling for spelling in SPELLINGS if spelling in text]


async def test_a_known_secret_is_nowhere_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for noisy in ("httpx", "httpcore", "websockets.client"):  # the test's own side
        logging.getLogger(noisy).setLevel(logging.ERROR)
    folder = tmp_path / "hub"
    tokens = await tokens_for(folder, "a", "b")
    told: list[bytes] = []
    async with hub_beside(folder) as (info, hub):
        hub.hub.redactor.know("API_KEY", CANARY)
        admin = {"authorization": f"Bearer {info.token}"}
        async with httpx.AsyncClient(base_url=f"{info.url}/api/v1", timeout=30) as client:
            await _by_websocket(info.url, tokens["a"], told)
            await _by_http(client, tokens["a"], told)
            await _by_the_office(client, admin, told)
            for agent in ("a", "b"):
                headers = {"authorization": f"Bearer {tokens[agent]}"}
                said = await client.get("/messages", params={"limit": 1000}, headers=headers)
                assert said.status_code == 200
                told.append(said.content)
            told.append((await client.get(f"{info.url}/metrics", headers=admin)).content)
        for command in COMMANDS:
            words = (*command.split(), "--data", str(folder))
            told.append(await anyio.to_thread.run_sync(_said_by, words))
    everything = b"\n".join(told)
    assert b"[redacted:API_KEY]" in everything, "it was taken in, and its name stands there"
    assert [each for each in told if found_in(each)] == []
    assert not found_in(caplog.text.encode())
    for file in folder.rglob("*"):
        if file.is_file():
            assert not found_in(file.read_bytes()), file.name


def _said_by(words: tuple[str, ...]) -> bytes:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output.encode()


async def _by_websocket(url: str, token: str, told: list[bytes]) -> None:
    for query in (f"&instance={CANARY}", f"&dialect={CANARY}", f"&capabilities={CANARY}"):
        with suppress(ConnectionClosed, InvalidStatus):
            async with wire(url, "a", token, query) as socket:
                await socket.say(f'{{"ack": ["{CANARY}"], "ref": 1}}')
                told.append(json.dumps(await socket.hear()).encode())
    with suppress(ConnectionClosed, InvalidStatus):
        async with wire(url, CANARY, token) as socket:
            told.append(json.dumps(await socket.hear()).encode())
    async with wire(url, "a", token) as socket:
        for message in messages():
            await socket.say(message.decode())
        await socket.say('{"ack": [], "ref": 7}')
        while "settled" not in (frame := await socket.hear()):
            told.append(json.dumps(frame, ensure_ascii=False).encode())


async def _by_http(client: httpx.AsyncClient, token: str, told: list[bytes]) -> None:
    headers = {"authorization": f"Bearer {token}"}
    every = messages()
    whole = [message for message in every if message.startswith(b"{") and message.endswith(b"}")]
    for start in range(0, len(whole), 500):
        batch = b"[" + b",".join(whole[start : start + 500]) + b"]"
        told.append((await client.post("/messages", content=batch, headers=headers)).content)
    for message in every[::25] + every[-3:]:
        told.append((await client.post("/messages", content=message, headers=headers)).content)
        told.append((await client.post("/messages/ack", content=message, headers=headers)).content)
    for query in ("since", "agent_id", "dialect", "wait", CANARY):
        answer = await client.get("/messages", params={query: CANARY}, headers=headers)
        told.append(answer.content)


async def _by_the_office(
    client: httpx.AsyncClient, headers: dict[str, str], told: list[bytes]
) -> None:
    for message in messages()[::10]:
        answer = await client.post("/hub/messages", content=message, headers=headers)
        told.append(answer.content)
    order = {"to": "b", "taskType": CANARY, "input": CANARY, "callbackUrl": f"http://x/{CANARY}"}
    asked: list[tuple[str, str, object]] = [
        ("POST", "/hub/tasks", order),
        ("POST", "/hub/tasks", {**order, "to": CANARY}),
        ("POST", "/hub/tasks", {**order, "session": CANARY}),
        ("POST", "/hub/tasks", {**order, "person": CANARY}),
        ("POST", "/hub/tasks", {CANARY: 1}),
        ("POST", "/hub/tokens", {"name": "c", "permissions": [CANARY]}),
        ("POST", "/hub/tokens", {"name": CANARY}),
        ("POST", "/hub/tokens", {"name": f"{CANARY}\n"}),
        ("POST", "/hub/tokens", {"name": "door:c", "scopes": [CANARY]}),
        ("GET", f"/hub/threads/{CANARY}", None),
        ("GET", f"/hub/deadletters/{CANARY}", None),
        ("GET", f"/hub/record?kind={CANARY}&most={CANARY}", None),
        ("DELETE", f"/hub/tokens/{CANARY}", None),
        ("GET", f"/{CANARY}", None),
        ("PATCH", f"/hub/tokens/{CANARY}", None),
    ]
    for method, path, body in asked:
        answer = await client.request(method, path, json=body, headers=headers)
        told.append(answer.content)
