"""One connection for each agent, however many runs it takes part in (D36).

Runs of one workspace may have members of the same name. They are one agent to the hub; what comes
for it is passed on to the host of the run that it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from agentcanvas.errors import Disconnected
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.transports.memory import connect
from agentcanvas.protocol.envelope import Envelope

Mail = tuple[MemoryObjectSendStream[Delivery], MemoryObjectReceiveStream[Delivery]]


class Extension:
    """What one run sees of an agent's connection (``agents.host.Mailroom``)."""

    def __init__(self, connection: Connection, mail: MemoryObjectReceiveStream[Delivery]) -> None:
        self.connection = connection
        self._mail = mail

    async def receive(self) -> AsyncIterator[Delivery]:
        """Iterate over the messages of this run as they come."""
        async for delivery in self._mail:
            yield delivery

    async def send(self, envelope: Envelope) -> object:
        """Send a message; it is safe when this returns."""
        return await self.connection.send(envelope)


class _Line:
    """An agent's connection, for as long as some run needs it."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.users = 0
        self.ready = anyio.Event()
        self.gone = anyio.Event()
        self.scope = anyio.CancelScope()
        self.connection: Connection | None = None
        self._mail: dict[str, Mail] = {}

    async def serve(self, hub: Hub) -> None:
        """Connect, and pass on what comes."""
        try:
            with self.scope:
                async with connect(hub, Principal(self.agent), capabilities=()) as connection:
                    self.connection = connection
                    self.ready.set()
                    await self._pass_on(connection)
        except Disconnected:
            pass
        finally:
            self.ready.set()
            self.gone.set()
            for sending, _ in self._mail.values():
                sending.close()

    async def _pass_on(self, connection: Connection) -> None:
        async for delivery in connection.receive():
            sending, _ = self.mail_of(delivery.session)
            sending.send_nowait(delivery)

    def mail_of(self, session: str) -> Mail:
        """What has come for a run; there may be mail before its host is there."""
        if session not in self._mail:
            self._mail[session] = anyio.create_memory_object_stream[Delivery](math.inf)
        return self._mail[session]

    def forget(self, session: str) -> None:
        """Drop what came for a run that is over."""
        for end in self._mail.pop(session, ()):
            end.close()


class Lines:
    """The connections of all agents: ``async with Lines.open(hub) as lines``."""

    def __init__(self, hub: Hub, tasks: anyio.abc.TaskGroup) -> None:
        self._hub = hub
        self._tasks = tasks
        self._lines: dict[str, _Line] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, hub: Hub) -> AsyncIterator[Lines]:
        """Have lines until the block ends."""
        raised: Exception | None = None
        async with anyio.create_task_group() as tasks:
            try:
                yield cls(hub, tasks)
            except Exception as error:  # noqa: BLE001 - raised again below, outside the task group
                raised = error
            finally:
                tasks.cancel_scope.cancel()
        if raised is not None:
            raise raised

    def know(self, secrets: Mapping[str, str]) -> None:
        """Have values kept out of whatever is said in the hub from now on (D37)."""
        for name, value in secrets.items():
            self._hub.redactor.know(name, value)

    async def wait_for(self, agents: Iterable[str]) -> None:
        """Wait until all of them are connected, however they come (D40)."""
        for agent in agents:
            await self._hub.wait_for(agent)

    @asynccontextmanager
    async def extension(self, agent: str, session: str) -> AsyncIterator[Extension]:
        """The line of an agent, as one run sees it."""
        line = self._lines.get(agent)
        if line is None or line.gone.is_set():
            line = self._lines[agent] = _Line(agent)
            self._tasks.start_soon(line.serve, self._hub)
        line.users += 1
        try:
            await line.ready.wait()
            if line.connection is None:
                raise Disconnected(f"The agent {agent} could not be connected.")
            yield Extension(line.connection, line.mail_of(session)[1])
        finally:
            line.users -= 1
            line.forget(session)
            if not line.users:
                if self._lines.get(agent) is line:
                    del self._lines[agent]
                line.scope.cancel()
                with anyio.CancelScope(shield=True):
                    await line.gone.wait()
