"""A hub that is killed again and again while agents of this process talk through it."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread

from agentcanvas.app.hub_server import serve_hub
from agentcanvas.clock import SystemClock
from agentcanvas.hub.client import Connection
from agentcanvas.hub.reconnecting import BackOff, Reconnecting
from agentcanvas.hub.transports import http, websocket
from tests.app.hub_process import tokens_for, ws
from tests.hub.helpers import message, text_of

SENDERS = 4
_LONG_S = 60.0
_CLOCK = SystemClock()
_SOON = BackOff(first_s=0.02, most_s=0.2)
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["tests.app.killing"])


@dataclass
class Account:
    """What was said and heard, by the texts of messages."""

    sent: list[str] = field(default_factory=list)
    """Those whose receipt came."""

    delivered: list[str] = field(default_factory=list)
    """Each time that the receiver's handler saw one."""

    flagged: int = 0

    @property
    def repeated(self) -> int:
        """How many the handler saw more than once."""
        return len(self.delivered) - len(set(self.delivered))

    @property
    def lost(self) -> set[str]:
        """Those that were acknowledged to their sender and never arrived."""
        return set(self.sent) - set(self.delivered)

    def lanes(self) -> dict[str, list[int]]:
        """The numbers of each sender's messages, in the order they arrived."""
        found: dict[str, list[int]] = {}
        for text in self.delivered:
            sender, number = text.split("/")
            found.setdefault(sender, []).append(int(number))
        return found


def _serve(folder: Path, port: int, ready: Event) -> None:
    async def main() -> None:
        async with serve_hub(folder, port=port):
            ready.set()
            await anyio.sleep_forever()

    anyio.run(main)


class Victim:
    """A hub in a process of its own, at the same address in each of its lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._process: ForkServerProcess | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}"

    async def live(self) -> None:
        """Begin, and return when it can be reached."""
        ready = _forking.Event()
        self._process = _forking.Process(target=_serve, args=(self._folder, self._port, ready))
        self._process.start()
        assert await anyio.to_thread.run_sync(ready.wait, _LONG_S), "the hub did not begin"

    async def die(self) -> None:
        """End without a word."""
        if self._process is not None:
            self._process.kill()
            await anyio.to_thread.run_sync(self._process.join)


@asynccontextmanager
async def _connection(dial: Callable[[], Awaitable[object]]) -> AsyncIterator[Connection]:
    way = Reconnecting(dial, _CLOCK, back_off=_SOON)  # type: ignore[arg-type]
    await way.open()
    async with Connection.over(way, _CLOCK) as connection:
        yield connection


class _Talk:
    """Senders that never rest and a receiver that takes whatever comes."""

    def __init__(self) -> None:
        self.account = Account()
        self._stopped = False
        self._heard = anyio.Event()

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True

    async def send(self, name: str, connection: Connection) -> None:
        """Send numbered messages, each when the last is safe."""
        number = 0
        while not self._stopped:
            text = f"{name}/{number}"
            await connection.send(message(name, "receiver", text, id=text))
            self.account.sent.append(text)
            number += 1

    async def receive(self, connection: Connection) -> None:
        """Take messages over, one at a time."""
        async for delivery in connection.receive():
            self.account.delivered.append(text_of(delivery.envelope))
            self.account.flagged += delivery.redelivered
            self._heard.set()
            self._heard = anyio.Event()
            await delivery.ack()

    async def hear(self, number: int) -> None:
        """Wait until so many more were delivered."""
        goal = len(self.account.delivered) + number
        while len(self.account.delivered) < goal:
            await self._heard.wait()

    async def hear_all(self) -> None:
        """Wait until nothing is missing."""
        with anyio.fail_after(_LONG_S):
            while self.account.lost:
                await self._heard.wait()


async def talk_while_it_dies(
    folder: Path, seed: int, *, kills: int, over: str = "websocket"
) -> Account:
    """Send from several agents to one, kill the hub so often, and hear all there is to hear."""
    chance, talk = Random(seed), _Talk()
    names = [f"s{index}" for index in range(SENDERS)]
    tokens = await tokens_for(folder, "receiver", *names)
    victim = Victim(folder)
    await victim.live()

    def dial(name: str) -> Callable[[], Awaitable[object]]:
        if over == "http":
            return http.dialing(victim.url, name, tokens[name])
        return websocket.dialing(ws(victim.url), name, tokens[name])

    try:
        async with AsyncExitStack() as stack:
            lines = {
                name: await stack.enter_async_context(_connection(dial(name)))
                for name in ("receiver", *names)
            }
            async with anyio.create_task_group() as group:
                group.start_soon(talk.receive, lines["receiver"])
                async with anyio.create_task_group() as sending:
                    for name in names:
                        sending.start_soon(talk.send, name, lines[name])
                    for _ in range(kills):
                        await talk.hear(chance.randrange(1, 40))
                        await victim.die()
                        await victim.live()
                    talk.stop()
                await talk.hear_all()
                group.cancel_scope.cancel()
    finally:
        await victim.die()
    return talk.account
