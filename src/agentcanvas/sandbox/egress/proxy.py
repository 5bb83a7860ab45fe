"""The door itself: opened for a turn, closed with it, and everything that came through it.

It listens where it is told to: on a listener handed out of a network namespace, or on the machine's
loopback, where anybody could knock; so whoever enters shows the token of the turn.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing

import anyio
from anyio.abc import TaskGroup

from agentcanvas.sandbox.confine import Places
from agentcanvas.sandbox.egress.addresses import Resolve, resolve
from agentcanvas.sandbox.egress.aims import Guide
from agentcanvas.sandbox.egress.exchange import Exchange, Terms
from agentcanvas.sandbox.egress.flow import Allowance
from agentcanvas.sandbox.egress.limits import EgressLimits
from agentcanvas.sandbox.egress.log import Request, Tell, defect_of
from agentcanvas.sandbox.egress.rules import Rules

_BACKLOG = 128
_PAUSE_S = 0.2


class Egress:
    """An open door; fulfils ``confine.Door``. Made by ``open_egress``."""

    def __init__(self, terms: Terms, tasks: TaskGroup) -> None:
        self._terms = terms
        self._tasks = tasks
        self._open = 0
        self._port = 0

    @property
    def token(self) -> str:
        """The word that opens it, and what an agent takes for its key."""
        return self._terms.guide.token

    def listen(self) -> int:
        """Listen on this machine's loopback; gives the port, the same each time."""
        if not self._port:
            listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
            self._port = int(listener.getsockname()[1])
            self.admit(listener)
        return self._port

    def admit(self, listener: socket.socket) -> None:
        """Serve a listener until the door closes."""
        listener.setblocking(False)  # noqa: FBT003 -- its signature
        self._tasks.start_soon(self._accept, listener)

    def model_url(self, places: Places, name: str) -> str:
        """Give the base URL under which a model is found inside."""
        return f"{places.proxy}/model/{name}"

    def hub_url(self, places: Places) -> str:
        """Give the base URL under which the hub is found inside."""
        return f"{places.proxy}/hub"

    async def _accept(self, listener: socket.socket) -> None:
        with closing(listener):
            while True:
                client = await self._next(listener)
                if self._open >= self._terms.limits.connections:
                    client.close()
                    self._tell("There are too many connections at one time")
                    continue
                self._open += 1
                self._tasks.start_soon(self._serve, client)

    async def _next(self, listener: socket.socket) -> socket.socket:
        """Take the next connection; while there are no descriptors for it, it waits outside."""
        is_told = False
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:
                if not is_told:
                    self._tell(f"A connection has to wait: {error.strerror or error}")
                is_told = True
                await anyio.sleep(_PAUSE_S)
            else:
                return client

    def _tell(self, reason: str) -> None:
        """Tell what is about no request."""
        self._terms.tell(Request(method="", host="", port=0, allowed=False, reason=reason))

    async def _serve(self, client: socket.socket) -> None:
        try:
            # Unasked, the kernel holds back the end of an answer for 40 ms, hoping for more.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = await asyncio.open_connection(sock=client, limit=self._terms.limits.head_bytes)
            try:
                await Exchange(self._terms, stream).serve()
            finally:
                stream[1].close()
        except OSError:
            client.close()
        except Exception as error:  # noqa: BLE001 -- what ends a connection must not end the door
            client.close()
            self._tell(str(defect_of(error)))
        finally:
            self._open -= 1


@asynccontextmanager
async def open_egress(
    rules: Rules,
    tell: Tell,
    *,
    keys: Mapping[str, str] | None = None,
    limits: EgressLimits | None = None,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Egress]:
    """Open a door; put it into a view as its ``door``. ``keys`` are the host's variables."""
    limits = limits or EgressLimits()
    terms = Terms(
        guide=Guide(rules, secrets.token_urlsafe(32), os.environ if keys is None else keys),
        tell=tell,
        limits=limits,
        allowance=Allowance(limits),
        resolve=resolve,
        tls=tls or ssl.create_default_context(),
    )
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield Egress(terms, tasks)
        except Exception as error:  # noqa: BLE001 -- raised again below, outside the task group
            raised = error
        finally:
            tasks.cancel_scope.cancel()
    if raised:
        raise raised
