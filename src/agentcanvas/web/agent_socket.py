"""The WebSocket door: ``/agent/ws``, a raw ASGI application, since every message goes through it.

Who may come in is decided here; what is said from then on is ``socket_session``'s.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import parse_qsl

from msgspec import Meta, Struct
from starlette.types import Receive, Scope, Send

from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Link
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.web.doors import Credentials, Doors
from agentcanvas.web.framing import MANY
from agentcanvas.web.operation import converted
from agentcanvas.web.socket_refusal import refuse_socket
from agentcanvas.web.socket_session import SocketSession

SUBPROTOCOL = "agentcanvas"
_TOKEN_PREFIX = "token."  # noqa: S105 - how a sub-protocol that holds one begins


class ConnectQuery(Struct, frozen=True):
    """How an agent connects; ``capabilities`` are separated by commas.

    Messages come in ``dialect``, by default in the one that the agent spoke last. With ``ack=auto``
    each counts as taken over once it was sent.
    """

    agent_id: str | None = None
    auth_token: str | None = None
    instance: Annotated[str, Meta(max_length=200)] = ""
    dialect: DialectName | None = None
    capabilities: Annotated[str, Meta(max_length=10_000)] = ""
    window: Annotated[int, Meta(ge=1, le=1024)] = 64
    ack: Literal["explicit", "auto"] = "explicit"


class AgentSocket:
    """Lets agents in and works for each until it leaves."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await receive()
        try:
            query, shown = _read(scope)
            principal = await self._doors.recognise(shown)
            with self._doors.room():
                link = await self._connect(query, shown, principal)
                await self._serve(query, link, scope, receive, send)
        except AgentCanvasError as refusal:  # before it was accepted; later nothing is raised
            await refuse_socket(refusal, self._doors.clock, scope, send)

    async def _serve(
        self, query: ConnectQuery, link: Link, scope: Scope, receive: Receive, send: Send
    ) -> None:
        many_at_once = MANY in scope.get("extensions", {})
        session = SocketSession(
            self._doors,
            link,
            send,
            dialect=query.dialect,
            acks_by_itself=query.ack == "auto",
            many_at_once=many_at_once,
        )
        goodbye = False
        try:
            chosen = SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
            await send({"type": "websocket.accept", "subprotocol": chosen, MANY: many_at_once})
            goodbye = await session.serve(receive)
        finally:
            session.end()
            with suppress(AgentCanvasError):  # a full disk, most likely: it counts as gone
                await link.close(goodbye=goodbye)

    async def _connect(self, query: ConnectQuery, shown: Credentials, principal: Principal) -> Link:
        link = await self._doors.hub.connect(
            principal,
            instance=query.instance,
            capabilities=[each for each in query.capabilities.split(",") if each],
            window=query.window,
        )
        try:  # its token may have been revoked meanwhile, before there was a connection to end
            self._doors.check(shown)
        except AgentCanvasError:
            await link.close(goodbye=False)
            raise
        return link


def _read(scope: Scope) -> tuple[ConnectQuery, Credentials]:
    asked = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    query: ConnectQuery = converted(asked, ConnectQuery, "query")
    return query, _credentials(asked, scope)


def _credentials(asked: dict[str, str], scope: Scope) -> Credentials:
    """Read what is shown; a sub-protocol is the way of browsers, which cannot set headers."""
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    authorization = headers.get("authorization", "")
    shown = Credentials.of(asked.get("agent_id"), asked.get("auth_token"), authorization)
    if authorization:
        return shown
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(_TOKEN_PREFIX):
            return Credentials(shown.agent, offered.removeprefix(_TOKEN_PREFIX))
    return shown
