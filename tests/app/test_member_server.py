"""Members' tools over MCP, with the SDK's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from agentcanvas.agents.tools import Form, Tools, Used
from agentcanvas.app.member_server import PATH, MemberServer, open_member_server


class Echo(Form, frozen=True, kw_only=True):
    """Say it again."""

    text: str


async def echo(given: Echo) -> Used:
    return Used(given.text.upper(), failed=given.text == "bad")


TOOLS = Tools({"echo": (Echo, echo)})


@asynccontextmanager
async def client(server: MemberServer, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as web:
        transport = streamable_http_client(server.url + PATH, http_client=web)
        async with Client(transport, mode=mode) as connected:
            yield connected


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_member_finds_and_uses_its_tools(mode: str) -> None:
    async with open_member_server() as server:
        seat = server.seat()
        with seat.taken(TOOLS):
            async with client(server, seat.token, mode) as member:
                listed = await member.list_tools()
                good = await member.call_tool("echo", {"text": "a"})
                bad = await member.call_tool("echo", {"text": "bad"})
                wrong = await member.call_tool("echo", {"text": 3})
                unknown = await member.call_tool("nothing", {})
    assert [tool.name for tool in listed.tools] == ["echo"]
    assert good.content[0].text == "A"  # type: ignore[union-attr]
    assert [each.is_error for each in (good, bad, wrong, unknown)] == [False, True, True, True]


async def test_each_member_sees_its_own_tools_and_only_during_a_turn() -> None:
    async with open_member_server() as server:
        ann, bob = server.seat(), server.seat()
        other = Tools({"other": (Echo, echo)})
        with ann.taken(TOOLS), bob.taken(other):
            async with client(server, bob.token) as member:
                assert [t.name for t in (await member.list_tools()).tools] == ["other"]
        with ann.taken(TOOLS):
            for token in (bob.token, "guess"):
                async with client(server, token, "legacy") as member:
                    with pytest.raises(MCPError, match="good for a turn"):
                        await member.list_tools()


async def test_a_page_of_somewhere_else_is_not_answered() -> None:
    async with open_member_server() as server, httpx2.AsyncClient() as web:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
            answer = await web.post(server.url + PATH, json=body, headers=headers)
            assert answer.status_code in {400, 403, 421}
