"""An agent in a few lines of Python (H3, H8).

    agent = Agent("worker-1", capabilities=["code_review"])

    @agent.task("code_review")
    async def review(task: Task) -> object:
        await task.progress(50, "reading")
        return {"findings": []}

    await agent.serve("ws://127.0.0.1:7718", token="…")

Accepting, heartbeats, progress of long tasks, answers to status queries, cancellation, time limits,
reconnecting and the one message that ends every task come by themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import anyio
from msgspec import UNSET

from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import ValidationError
from agentcanvas.hub.background import beside
from agentcanvas.hub.caching import CACHEABLE
from agentcanvas.hub.client import Connection
from agentcanvas.hub.reconnecting import BackOff, Dial, Reconnecting
from agentcanvas.hub.shift import Handler, Listener, Shift
from agentcanvas.hub.tasks import Task
from agentcanvas.hub.ways import way_to
from agentcanvas.protocol.kinds import Kind, RejectReason, TaskAssign
from agentcanvas.protocol.limits import Limits

__all__ = ["Agent", "Handler", "Listener", "RejectReason", "Shift", "Task"]

H = TypeVar("H", bound=Handler)
L = TypeVar("L", bound=Listener)

_DEFAULT_LIMITS = Limits()
_DEFAULT_BACK_OFF = BackOff()


class Agent:
    """Somebody who does tasks; ``max_parallel`` at a time, the others wait."""

    def __init__(
        self,
        name: str,
        *,
        capabilities: Iterable[str] = (),
        max_parallel: int = _DEFAULT_LIMITS.acp.performance.max_parallel,
        limits: Limits = _DEFAULT_LIMITS,
    ) -> None:
        self.name = name
        self.limits = limits
        self._capabilities = tuple(capabilities)
        self._cacheable: set[str] = set()
        self.max_parallel = max_parallel
        self._handlers: dict[str | None, Handler] = {}
        self._listeners: dict[Kind, Listener] = {}

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it says it can do: what it was told, and every task it has a handler for."""
        named = [name for name in self._handlers if name is not None]
        marks = [CACHEABLE + name for name in sorted(self._cacheable)]
        return tuple(dict.fromkeys((*self._capabilities, *named, *marks)))

    def task(self, task_type: str | None = None, *, cacheable: bool = False) -> Callable[[H], H]:
        """Handle tasks of a type, or without one all that no other handler is for.

        ``cacheable`` declares that the same input gives the same answer for an hour.
        """

        def register(handler: H) -> H:
            if task_type in self._handlers:
                raise ValidationError(f"{self.name} has a handler for {task_type!r} already.")
            self._handlers[task_type] = handler
            if cacheable and task_type is not None:
                self._cacheable.add(task_type)
            return handler

        return register

    def on(self, kind: Kind) -> Callable[[L], L]:
        """Listen to messages of a kind that are no task, such as broadcasts and feedback."""

        def register(listener: L) -> L:
            self._listeners[kind] = listener
            return listener

        return register

    def run(self, hub: str, *, token: str | None = None) -> None:
        """Work until Ctrl-C; for programs without an event loop of their own."""
        with suppress(KeyboardInterrupt):
            anyio.run(partial(self.serve, hub, token=token))

    async def serve(
        self,
        hub: Dial | str,
        clock: Clock | None = None,
        *,
        token: str | None = None,
        back_off: BackOff = _DEFAULT_BACK_OFF,
        ready: Callable[[], object] | None = None,
    ) -> None:
        """Work until cancelled, or until another connection takes this one's place.

        ``hub`` is an address such as ``ws://127.0.0.1:7718``, with a token, or a ``Dial``.
        """
        async with self.working(hub, clock, token=token, back_off=back_off) as shift:
            if ready is not None:
                ready()
            await shift.over()

    @asynccontextmanager
    async def working(
        self,
        hub: Dial | str,
        clock: Clock | None = None,
        *,
        token: str | None = None,
        back_off: BackOff = _DEFAULT_BACK_OFF,
    ) -> AsyncIterator[Shift]:
        """Work beside the block; when it ends, what is begun is ended as cancelled."""
        clock = clock or SystemClock()
        dial = way_to(hub, self.name, token, self.capabilities)
        way = Reconnecting(dial, clock, back_off=back_off)
        await way.open()
        async with Connection.over(way, clock) as connection:
            shift = Shift(self, connection, clock)
            async with beside(shift.work):
                yield shift

    def handler_for(self, assignment: TaskAssign) -> Handler | None:
        """Find who does a task: by its type, else by its verb, else whoever does anything."""
        for name in (assignment.task_type, assignment.action):
            if name is not UNSET and name in self._handlers:
                return self._handlers[name]
        return self._handlers.get(None)

    def listener_for(self, kind: Kind) -> Listener | None:
        """Find who listens to a kind of message."""
        return self._listeners.get(kind)
