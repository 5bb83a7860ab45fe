"""A hub that is served by a thread of the test, so that commands find it as they find any other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from agentcanvas.app.hub import OpenHub, open_hub
from agentcanvas.app.server import serve_beside
from agentcanvas.clock import SystemClock
from agentcanvas.hub.agent import Agent
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.transports.memory import dialing
from agentcanvas.protocol.limits import Limits
from tests.web.office import FakeOffice

T = TypeVar("T")


class ServedHub:
    """The hub, and a way to do something in its thread."""

    def __init__(self, hub: OpenHub, portal: BlockingPortal) -> None:
        self.hub = hub
        self._portal = portal

    def do(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Do something where the hub works."""
        return self._portal.call(function, *arguments)


@contextmanager
def served(root: Path, *agents: Agent, person: str | None = None) -> Iterator[ServedHub]:
    """Serve the hub of a workspace, with agents at work, for as long as the block lasts."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_serving(root, agents, person)) as hub,
    ):
        yield ServedHub(hub, portal)


@asynccontextmanager
async def _serving(
    root: Path, agents: tuple[Agent, ...], person: str | None
) -> AsyncIterator[OpenHub]:
    path = root / ".agentcanvas" / "agentcanvas.db"
    path.parent.mkdir(exist_ok=True)  # nobody waits yet
    async with (
        open_hub(path, clock=SystemClock(), limits=Limits(), person=person) as hub,
        serve_beside(FakeOffice(hub.store), hub.store, root, port=0, static=None, hub=hub),
        AsyncExitStack() as stack,
    ):
        for agent in agents:
            await hub.hub.sessions.join("default", agent.name)
            dial = dialing(hub.hub, Principal(agent.name))
            await stack.enter_async_context(agent.working(dial))
        yield hub
