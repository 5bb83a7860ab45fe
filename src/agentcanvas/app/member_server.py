"""The tools of members over MCP, for agents that are programs: one small server for a crew.

It listens on loopback. Each member has a seat with a token of its own, and finds its own tools
there as long as a turn of its lasts. Who reaches the server at all is decided by the sandbox (D11).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from agentcanvas import _version
from agentcanvas.agents.tools import Tools, Used
from agentcanvas.app.quiet_server import QuietServer

NAME = "agentcanvas"
PATH = "/mcp"
_TOKEN_BYTES = 32
_UNAUTHORIZED = -32001

INSTRUCTIONS = (
    "You are a member of a team. Use these tools to ask other members, to say how you get on, and "
    "to share what others should know."
)


class Seat:
    """One member's place at the server."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.tools: Tools | None = None

    @contextmanager
    def taken(self, tools: Tools) -> Iterator[None]:
        """Have the member find these tools until the block ends."""
        self.tools = tools
        try:
            yield
        finally:
            self.tools = None


class MemberServer:
    """Serves the tools; made by ``open_member_server``."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._seats: list[Seat] = []
        self.server: Server[Any] = Server(
            NAME,
            version=_version.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    def seat(self) -> Seat:
        """Make room for one more member."""
        seat = Seat()
        self._seats.append(seat)
        return seat

    async def _list(self, context: ServerRequestContext[Any], _: object) -> types.ListToolsResult:
        tools = [
            types.Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
            for tool in self._tools(context).offered
        ]
        return types.ListToolsResult(tools=tools)

    async def _call(
        self, context: ServerRequestContext[Any], asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = msgspec.json.encode(asked.arguments or {})
        used: Used = await self._tools(context).use(asked.name, arguments)
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=used.output)]
        return types.CallToolResult(content=content, is_error=used.failed)

    def _tools(self, context: ServerRequestContext[Any]) -> Tools:
        said = context.request.headers.get("authorization", "") if context.request else ""
        token = said.removeprefix("Bearer ").encode()
        for seat in self._seats:
            if seat.tools is not None and hmac.compare_digest(seat.token.encode(), token):
                return seat.tools
        raise MCPError(_UNAUTHORIZED, "This token is good for a turn of its member only.")


@asynccontextmanager
async def open_member_server() -> AsyncIterator[MemberServer]:
    """Serve on a free port of loopback until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    members = MemberServer(listener.getsockname()[1])
    app = members.server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True
    )
    web = QuietServer(app, ws="none")
    raised: Exception | None = None
    async with members.server.session_manager.run():
        serving = asyncio.create_task(web.serve([listener]), name="agentcanvas member tools")
        try:
            yield members
        except Exception as error:  # noqa: BLE001 - raised again below, outside their task group
            raised = error
        finally:
            web.end()
            with anyio.CancelScope(shield=True):
                await serving
    if raised is not None:
        raise raised
