"""Who may come in: the right host, the right origin, the right token.

A server on loopback is reachable by every page that the user's browser shows. The Host check stops
names that were made to point here, the Origin check stops other pages, also those of other local
servers, and the token stops everybody else. Every answer leaves with headers that say how little a
browser may do with it.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, PermissionDenied, Unauthenticated
from agentcanvas.web.answers import is_api, refusal

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT = 80
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_TOKEN = "token"  # noqa: S105 - the name of a field
_BEARER = "bearer"

_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
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
    """Stands before an app and lets in whom it should."""

    def __init__(self, app: ASGIApp, *, token: str, clock: Clock) -> None:
        self._app = app
        self._token = token
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, redirect or pass on."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "not offered"})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        try:
            answer: ASGIApp = self._examined(request) or self._app
        except AgentCanvasError as error:
            answer = refusal(request, error, self._clock)
        await answer(scope, receive, send_guarded)

    def _examined(self, request: Request) -> Response | None:
        """None to let it in; an answer to send somebody on with a cookie."""
        here = self._hosts(request)
        _check_host(request, here)
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in here}:
            raise PermissionDenied(f"Requests from {origin} are not accepted here.")
        if self._has_bearer(request):
            return None
        if _TOKEN in request.query_params and not is_api(request):
            return self._welcome(request)
        if not self._matches(request.cookies.get(_cookie(request), "")):
            raise Unauthenticated(
                "The token is missing or not the right one. Open the link that `agentcanvas serve` "
                "prints, or send the token of .agentcanvas/server.json as `Authorization: Bearer`."
            )
        if origin is None and request.method not in _READING:
            raise PermissionDenied("A change must say where it comes from: send the Origin header.")
        return None

    def _hosts(self, connection: HTTPConnection) -> set[str]:
        port = _port(connection)
        bare = set(_NAMES) if port == _HTTP_PORT else set()
        return bare | {f"{name}:{port}" for name in _NAMES}

    def _has_bearer(self, request: Request) -> bool:
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
        answer.set_cookie(_cookie(request), self._token, path="/", httponly=True, samesite="strict")
        answer.headers["cache-control"] = "no-store"
        return answer


def _check_host(request: Request, here: set[str]) -> None:
    host = request.headers.get("host", "").lower()
    if host not in here:
        raise PermissionDenied(
            f"This server answers to 127.0.0.1, localhost and [::1] on its own port, not to "
            f"{host or 'a request without a Host header'}."
        )


def _cookie(request: Request) -> str:
    """Cookies do not know ports, and two workspaces may be served at once."""
    return f"agentcanvas_{_port(request)}"


def _port(connection: HTTPConnection) -> int:
    server = connection.scope.get("server")
    return int(server[1]) if server and server[1] is not None else _HTTP_PORT
