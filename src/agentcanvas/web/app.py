"""The server's ASGI app: guard, API, feed and page put together."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import (
    AgentCanvasError,
    MethodNotAllowed,
    NotFound,
    PermissionDenied,
    ProtocolError,
)
from agentcanvas.hub.office import HubOffice
from agentcanvas.runs.office import Office
from agentcanvas.store import Store
from agentcanvas.web import collaboration
from agentcanvas.web import views as v
from agentcanvas.web.agent_socket import AgentSocket
from agentcanvas.web.answers import refusal
from agentcanvas.web.api import Api, server_view
from agentcanvas.web.blobs import BlobsApi
from agentcanvas.web.collaboration import CollaborationSocket
from agentcanvas.web.descriptions import PREFIX, DescriptionsApi
from agentcanvas.web.doors import Doors
from agentcanvas.web.feed import Feed
from agentcanvas.web.following import Following
from agentcanvas.web.guard import Guard
from agentcanvas.web.hub_api import HubApi
from agentcanvas.web.messages import MessagesApi
from agentcanvas.web.metrics import PATH as METRICS
from agentcanvas.web.metrics import MetricsApi
from agentcanvas.web.operation import Operation, operation
from agentcanvas.web.page import page_route
from agentcanvas.web.passes import Passes
from agentcanvas.web.planning import Planner, PlanningApi
from agentcanvas.web.use import Use

__all__ = ["PREFIX", "WebApp", "build_app", "build_hub_app"]

OPEN_PATHS = (
    f"{PREFIX}/messages",
    f"{PREFIX}/blobs/",
    f"{PREFIX}/openapi.json",
    f"{PREFIX}/asyncapi.json",
    METRICS,
)
"""What has guards of its own, or needs none."""

_NOT_ALLOWED = 405


class WebApp:
    """An ASGI app whose open streams can be told to end, so that no server waits for them."""

    def __init__(self, guarded: Guard, ending: asyncio.Event, use: Use) -> None:
        self._guarded = guarded
        self._ending = ending
        self._use = use

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        with self._use.request():
            await self._guarded(scope, receive, send)

    def end_streams(self) -> None:
        """Let every stream end at once; those who read them will come back."""
        self._ending.set()


def build_app(
    office: Office,
    store: Store,
    *,
    token: str,
    root: Path,
    version: str,
    static: Path | None,
    clock: Clock | None = None,
    use: Use | None = None,
    hub_office: HubOffice | None = None,
    doors: Doors | None = None,
    browser_key: bytes | None = None,
    planner: Planner | None = None,
) -> WebApp:
    """A workspace's server; ``static`` is the folder of the built interface, if any.

    With ``doors`` agents of other processes may join. ``browser_key`` is what browsers are let in
    with after a restart; without one they need a new link.
    """
    clock = clock or SystemClock()
    ending = asyncio.Event()
    feed = Feed(store)
    routes = Api(office, feed, clock=clock, ending=ending, root=root, version=version).routes()
    if planner is not None:
        routes += PlanningApi(planner).routes()
    if hub_office is not None:
        routes += HubApi(hub_office, Following(feed, clock=clock, ending=ending)).routes()
    if doors is not None:
        routes += door_routes(doors, feed)
    return _guarded(
        [Mount(PREFIX, routes=routes), page_route(static, office, root)],
        store,
        token=token,
        clock=clock,
        ending=ending,
        use=use,
        doors=doors,
        browser_key=browser_key,
        sockets={collaboration.PATH: CollaborationSocket(office, feed, ending)},
    )


def build_hub_app(
    hub_office: HubOffice,
    doors: Doors,
    store: Store,
    *,
    token: str,
    root: Path,
    version: str,
    clock: Clock,
    hosts: Collection[str] = (),
    any_address: bool = False,
) -> WebApp:
    """A hub's own server: its doors, its office, and who answers here."""
    ending = asyncio.Event()
    feed = Feed(store)

    async def server() -> v.ServerView:
        """Who answers here."""
        return await server_view(feed, root, version)

    routes = HubApi(hub_office, Following(feed, clock=clock, ending=ending)).routes()
    routes += door_routes(doors, feed)
    return _guarded(
        [Mount(PREFIX, routes=[operation("GET", "/server", server), *routes])],
        store,
        token=token,
        clock=clock,
        ending=ending,
        doors=doors,
        hosts=hosts,
        any_address=any_address,
    )


def door_routes(doors: Doors, feed: Feed) -> list[Operation]:
    """What agents do over HTTP."""
    return [
        *MessagesApi(doors, feed).routes(),
        *BlobsApi(doors, doors.blobs).routes(),
        *DescriptionsApi().routes(),
    ]


def _guarded(
    routes: Sequence[BaseRoute],
    store: Store,
    *,
    token: str,
    clock: Clock,
    ending: asyncio.Event,
    use: Use | None = None,
    doors: Doors | None = None,
    hosts: Collection[str] = (),
    any_address: bool = False,
    browser_key: bytes | None = None,
    sockets: Mapping[str, ASGIApp] | None = None,
) -> WebApp:
    quietly = doors.hub.redactor.quietly if doors is not None else bytes

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == _NOT_ALLOWED:
            methods = _methods_at(request.url.path, routes)
            error = HTTPException(_NOT_ALLOWED, headers={"Allow": methods or "GET"})
        answer = refusal(request, _ours(request, error), clock, quietly)
        if isinstance(error, HTTPException) and error.headers:
            answer.headers.update(error.headers)
        return answer

    if doors is not None:
        routes = [*MetricsApi(doors, store, token).routes(), *routes]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: refuse, AgentCanvasError: refuse, Exception: refuse},
    )
    guard = Guard(
        app,
        token=token,
        passes=Passes(browser_key or secrets.token_bytes(32), clock),
        sockets=sockets,
        clock=clock,
        hosts=hosts,
        any_address=any_address,
        open_paths=OPEN_PATHS if doors is not None else (),
        socket=AgentSocket(doors) if doors is not None else None,
    )
    return WebApp(guard, ending, use or Use(clock))


def _methods_at(path: str, routes: Sequence[BaseRoute]) -> str:
    """What an address of the API is used with; each of its methods has a route of its own."""
    below = path.removeprefix(PREFIX)
    api = [each for route in routes if isinstance(route, Mount) for each in route.routes]
    found = [each for each in api if isinstance(each, Operation) and each.path_regex.match(below)]
    return ", ".join(sorted({method for each in found for method in each.methods or ()}))


def _ours(request: Request, error: Exception) -> AgentCanvasError:
    """Starlette's refusals in our words; anything unforeseen without a word about its insides."""
    path = request.url.path
    match error:
        case AgentCanvasError():
            return error
        case HTTPException(status_code=404):
            return NotFound(f"There is nothing at {path}.")
        case HTTPException(status_code=405):
            allowed = (error.headers or {}).get("Allow", "GET")
            return MethodNotAllowed(f"{path} is not used with {request.method}, but: {allowed}.")
        case HTTPException(status_code=403):
            return PermissionDenied(f"{path} is not given out.")
        case HTTPException():
            return ProtocolError(f"The request cannot be understood: {error.detail}.")
        case _:
            return AgentCanvasError(
                "Something failed inside the server; nothing was lost. Its log has the details."
            )
