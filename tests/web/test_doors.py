"""Every door of one server: nobody without a token, nobody from elsewhere, and who belongs gets in.

One table for pages, the stream of events, changes and both WebSockets, so that a door which forgets
a check is seen; what each check is in detail is tested in ``test_guard.py``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from agentcanvas.app.hub import open_hub
from agentcanvas.app.server import ServerInfo, serve_beside
from agentcanvas.clock import SystemClock
from agentcanvas.hub import frames
from agentcanvas.hub.office import TokenOrder
from agentcanvas.protocol.limits import Limits
from agentcanvas.web import collaboration
from tests.web.office import FakeOffice

pytestmark = [pytest.mark.anyio, pytest.mark.req("D1", "D39", "H6")]

AGENT = "a"
SOCKET = "WebSocket"
ORDER = {"flow": "f", "flowText": "name: f", "request": "fix it"}
DOORS = {
    "the page": ("GET", "/"),
    "its files": ("GET", "/assets/index.js"),
    "the API": ("GET", "/api/v1/runs"),
    "the stream of events": ("GET", "/api/v1/events"),
    "a change": ("POST", "/api/v1/runs"),
    "the WebSocket of people": (SOCKET, collaboration.PATH),
    "the WebSocket of agents": (SOCKET, frames.PATH),
}
FOREIGN_HOSTS = ["evil.test:{port}", "localhost.evil.test:{port}", "127.0.0.1:1"]
FOREIGN_ORIGINS = ["http://evil.test", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "null"]


@dataclass(frozen=True)
class House:
    """A server with all its doors, and the token of an agent that may join."""

    info: ServerInfo
    office: FakeOffice
    agent_token: str

    @property
    def port(self) -> int:
        port = urlsplit(self.info.url).port
        assert port
        return port

    async def knock(
        self,
        door: tuple[str, str],
        *,
        host: str | None = None,
        origin: str | None = None,
        known: bool = True,
    ) -> tuple[int, str]:
        """The status at a door, and the code of the refusal if it is one."""
        method, path = door
        headers = {} if origin is None else {"origin": origin.format(port=self.port)}
        named = (host or "127.0.0.1:{port}").format(port=self.port)
        if known and path != frames.PATH:
            headers["authorization"] = f"Bearer {self.info.token}"
        if method == SOCKET:
            if path == frames.PATH:
                path += f"?agent_id={AGENT}" + (f"&auth_token={self.agent_token}" if known else "")
            return await self._connect(f"ws://{named}{path}", headers)
        return await self._request(method, path, {**headers, "host": named})

    async def _connect(self, address: str, headers: dict[str, str]) -> tuple[int, str]:
        try:
            async with connect(
                address,
                host="127.0.0.1",
                port=self.port,
                proxy=None,
                additional_headers=headers,
            ):
                return 101, ""
        except InvalidStatus as refused:
            return refused.response.status_code, _code(refused.response.body)

    async def _request(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        async with (
            httpx.AsyncClient(base_url=self.info.url, trust_env=False) as somebody,
            somebody.stream(
                method, path, headers=headers, json=ORDER if method == "POST" else None
            ) as answer,
        ):
            is_refused = answer.status_code >= 400
            return answer.status_code, _code(await answer.aread()) if is_refused else ""


def _code(body: bytes | bytearray) -> str:
    code: str = json.loads(body)["payload"]["error_code"]
    return code


@pytest.fixture
async def house(root: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    static = tmp_path_factory.mktemp("ui")
    (static / "assets").mkdir()
    (static / "index.html").write_text("<!doctype html><title>AgentCanvas</title>")
    (static / "assets" / "index.js").write_text("export {}")
    path = root / ".agentcanvas" / "agentcanvas.db"
    async with open_hub(path, clock=SystemClock(), limits=Limits(), calls_back=False) as hub:
        token = await hub.keeper.new_token(TokenOrder(name=AGENT))
        office = FakeOffice(hub.store)
        async with serve_beside(office, hub.store, root, port=0, static=static, hub=hub) as info:
            yield House(info, office, token.text)


async def test_every_door_opens_for_who_has_a_token_and_comes_from_here(house: House) -> None:
    for name, door in DOORS.items():
        for origin in (None, "http://127.0.0.1:{port}"):
            status, _ = await house.knock(door, origin=origin)
            assert status < 300, (name, origin)


async def test_no_door_opens_without_a_token(house: House) -> None:
    for name, door in DOORS.items():
        assert await house.knock(door, known=False) == (401, "UNAUTHENTICATED"), name
    assert not house.office.calls


async def test_no_door_opens_under_a_foreign_host_even_with_a_token(house: House) -> None:
    for name, door in DOORS.items():
        for host in FOREIGN_HOSTS:
            refused = await house.knock(door, host=host)
            assert refused == (403, "PERMISSION_DENIED"), (name, host)
    assert not house.office.calls


async def test_no_door_opens_for_a_foreign_page_even_with_a_token(house: House) -> None:
    for name, door in DOORS.items():
        for origin in FOREIGN_ORIGINS:
            refused = await house.knock(door, origin=origin)
            assert refused == (403, "PERMISSION_DENIED"), (name, origin)
    assert not house.office.calls
