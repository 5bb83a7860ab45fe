"""Who may come in: the right host, the right origin, the right token.

Doors for agents ask for a token of their own; here they are only held to host and origin.

A server on loopback is reachable by every page that the user's browser shows. The Host check stops
names that were made to point here, the Origin check stops other pages, also those of other local
servers, and the token stops everybody else. Every answer leaves with headers that say how little a
browser may do with it.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentCanvasError,
    NotFound,
    PermissionDenied,
    ProtocolError,
    Unauthenticated,
)
from agentcanvas.hub import frames
from agentcanvas.web.answers import is_api, refusal
from agentcanvas.web.passes import LASTS_S, Passes
from agentcanvas.web.socket_refusal import refuse_socket

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT = 80
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_TOKEN = "token"  # noqa: S105 - the name of a field
_BEARER = "bearer"

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class Guard:
    """Stands before an app and lets in whom it should.

    ``hosts`` are names by which it is reached beside those of loopback; with ``any_address`` also
    by any number. ``open_paths`` begin what has guards of its own, and ``socket`` is the door for
    WebSockets of agents, if there is one; ``sockets`` are those of people, by their paths.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        passes: Passes,
        clock: Clock,
        hosts: Collection[str] = (),
        any_address: bool = False,
        open_paths: tuple[str, ...] = (),
        socket: ASGIApp | None = None,
        sockets: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        self._app = app
        self._token = token
        self._passes = passes
        self._sockets = sockets or {}
        self._clock = clock
        self._names = (*_NAMES, *hosts)
        self._any_address = any_address
        self._open_paths = open_paths
        self._socket = socket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, redirect or pass on."""
        if scope["type"] == "websocket":
            await self._guard_socket(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        try:
            answer: ASGIApp = self._examined(request) or self._app
        except AgentCanvasError as error:
            answer = refusal(request, error, self._clock)
        await answer(scope, receive, send_guarded)

    async def _guard_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        of_agents = self._socket if scope["path"] == frames.PATH else None
        of_people = self._sockets.get(scope["path"])
        door = of_agents or of_people
        try:
            if door is None:
                raise NotFound(f"There is no WebSocket at {scope['path']}.")
            connection = HTTPConnection(scope)
            origin = self._check_source(connection)
            if of_people is not None:
                self._check_person(connection, origin)
        except AgentCanvasError as error:
            await refuse_socket(error, self._clock, scope, send)
        else:
            await door(scope, receive, send)

    def _check_source(self, connection: HTTPConnection) -> str | None:
        """Refuse a wrong host or origin; tell the origin, if one is named."""
        host = connection.headers.get("host", "").lower()
        if not self._is_ours(host, _port(connection)):
            raise PermissionDenied(
                f"This server answers to {', '.join(self._names[:2])} and {self._names[2]} on its "
                f"own port, not to {host or 'a request without a Host header'}."
            )
        origin = connection.headers.get("origin")
        if origin is not None and not self._is_from_here(origin, host, _port(connection)):
            raise PermissionDenied(f"Requests from {origin} are not accepted here.")
        return origin

    def _is_ours(self, host: str, port: int) -> bool:
        name, colon, said = host.rpartition(":")
        if not colon or said.endswith("]"):
            name, said = host, str(_HTTP_PORT)
        if said != str(port):
            return False
        return name in self._names or (self._any_address and _is_address(name))

    def _is_from_here(self, origin: str, host: str, port: int) -> bool:
        if origin == f"http://{host}":
            return True
        scheme, _, named = origin.partition("://")
        # A page may be open under one of our names while it asks under another.
        return scheme == "http" and not _is_remote(named) and self._is_ours(named, port)

    def _examined(self, request: Request) -> Response | None:
        """None to let it in; an answer to send somebody on with a cookie."""
        origin = self._check_source(request)
        if request.url.path == frames.PATH and self._socket is not None:
            raise ProtocolError(f"{frames.PATH} is for WebSockets; connect to it with one.")
        if request.url.path.startswith(self._open_paths) or self._has_bearer(request):
            return None
        if _TOKEN in request.query_params and not is_api(request):
            return self._welcome(request)
        self._check_pass(request)
        if origin is None and request.method not in _READING:
            raise PermissionDenied("A change must say where it comes from: send the Origin header.")
        return None

    def _check_pass(self, connection: HTTPConnection) -> None:
        if self._passes.accept(connection.cookies.get(_cookie(connection), "")):
            return
        if self._socket is not None and "authorization" in connection.headers:
            raise Unauthenticated(
                f"The token is not good for {connection.url.path}. That of an agent opens "
                f"{frames.PATH} and, below /api/v1, messages and blobs; all else is opened by that "
                "of server.json."
            )
        raise Unauthenticated(
            "The token is missing or not the right one. Open the link that `agentcanvas serve` "
            "prints, or send the token of .agentcanvas/server.json as `Authorization: Bearer`."
        )

    def _check_person(self, connection: HTTPConnection, origin: str | None) -> None:
        """A socket can change things, and a browser always says where a page comes from."""
        if self._has_bearer(connection):
            return
        self._check_pass(connection)
        if origin is None:
            raise PermissionDenied("A browser must say where it comes from.")

    def _has_bearer(self, request: HTTPConnection) -> bool:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == _BEARER and self._matches(shown.strip())

    def _matches(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), self._token.encode())

    def _welcome(self, request: Request) -> Response:
        """The token leaves the address bar, and with it the history, for a cookie."""
        if not self._matches(request.query_params[_TOKEN]):
            raise Unauthenticated(
                "This link is not valid any more. Open the one that `agentcanvas serve` prints."
            )
        rest = [
            (name, value) for name, value in request.query_params.multi_items() if name != _TOKEN
        ]
        # A path of two slashes would lead to another host.
        path = "/" + request.url.path.lstrip("/")
        answer = RedirectResponse(path + ("?" + urlencode(rest) if rest else ""), status_code=303)
        answer.set_cookie(
            _cookie(request),
            self._passes.issue(),
            max_age=LASTS_S,
            path="/",
            httponly=True,
            samesite="strict",
        )
        answer.headers["cache-control"] = "no-store"
        return answer


def _is_remote(host: str) -> bool:
    """Whether a host is a number that is not this machine's own."""
    name = host.rpartition(":")[0] or host
    return name not in _NAMES and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _cookie(request: HTTPConnection) -> str:
    """Cookies do not know ports, and two workspaces may be served at once."""
    return f"agentcanvas_{_port(request)}"


def _port(connection: HTTPConnection) -> int:
    server = connection.scope.get("server")
    return int(server[1]) if server and server[1] is not None else _HTTP_PORT
