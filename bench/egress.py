"""The egress proxy: what it adds to a request, what it leaves of the speed, what its door costs.

The reference is the same conversation on a direct connection over loopback; for the door, a plain
process. Each figure is taken in pairs, one after the other, so that noise hits both alike.
"""

from __future__ import annotations

import asyncio
import base64
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio

from agentcanvas.errors import NoConfinement
from agentcanvas.sandbox.confine import Confinement, Network, View
from agentcanvas.sandbox.egress.proxy import Egress, open_egress
from agentcanvas.sandbox.egress.rules import Endpoint, Host, Rules
from agentcanvas.sandbox.pick import pick
from bench.harness import Contender, Contest, Figure, at_most
from bench.sandbox import heard_confined, heard_plain, timed

REQUESTS = 50
STARTS = 5
MEGABYTES = 64

MILLISECONDS = Figure("ms", better="lower")
RATIO = Figure("of a direct connection", better="lower")

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def contests(*, quick: bool) -> Iterator[Contest]:
    """Hold the contests; nothing is kept open between them."""
    yield Contest(
        name="a request of 1 kB to a model, beyond a direct one",
        figure=MILLISECONDS,
        contenders=[Contender("with the key put in", added_ms, bar=at_most(2))],
        note=f"median of {REQUESTS} pairs, each on a connection that is kept; no TLS on either",
    )
    yield Contest(
        name=f"{8 if quick else MEGABYTES} MB through a tunnel",
        figure=RATIO,
        contenders=[Contender("time", partial(tunnel_ratio, 8 if quick else MEGABYTES))],
    )
    yield from entering()


def rules(port: int) -> Rules:
    """Name the server."""
    loopback = ("127.0.0.0/8",)
    url = f"http://127.0.0.1:{port}"
    model = Endpoint(name="m", url=url, key_from="KEY", header="x-api-key", within=loopback)
    return Rules(hosts=(Host(name="127.0.0.1", ports=(port,)),), models=(model,))


@asynccontextmanager
async def set_up(megabytes: int = 0) -> AsyncIterator[tuple[int, Egress]]:
    """Have a server that answers 1 kB to each request, or sends megabytes and hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        piece = b"x" * 1024 * 1024
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b"x" * 1000)
                for _ in range(megabytes):
                    writer.write(piece)
                    await writer.drain()
                if megabytes:
                    break
        except (OSError, EOFError):
            pass
        writer.close()
        ended.set()

    ended = anyio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    async with open_egress(rules(port), lambda _: None, keys={"KEY": "k" * 40}) as door:
        yield port, door
    server.close()
    await ended.wait()


async def asked(stream: Stream, path: str, token: str) -> float:
    """Ask once; gives the seconds until the whole answer is there."""
    begun = time.perf_counter()
    stream[1].write(f"GET {path} HTTP/1.1\r\nx-api-key: {token}\r\n\r\n".encode())
    await stream[0].readuntil(b"\r\n\r\n")
    await stream[0].readexactly(1000)
    return time.perf_counter() - begun


async def added_ms() -> float:
    """Ask directly and through the proxy, by turns."""
    async with set_up() as (port, door):
        direct = await asyncio.open_connection("127.0.0.1", port)
        through = await asyncio.open_connection("127.0.0.1", door.listen())
        added = []
        for _ in range(REQUESTS):
            plain = await asked(direct, "/v1", door.token)
            added.append(await asked(through, "/model/m/v1", door.token) - plain)
        for _, writer in (direct, through):
            writer.close()
            await writer.wait_closed()
    return statistics.median(added) * 1000


async def tunnel_ratio(megabytes: int) -> float:
    """Fetch directly and through a tunnel; gives the ratio of the times."""
    async with set_up(megabytes) as (port, door):
        direct = await fetched(await asyncio.open_connection("127.0.0.1", port))
        tunnel = await asyncio.open_connection("127.0.0.1", door.listen())
        shown = base64.b64encode(f"agent:{door.token}".encode()).decode()
        head = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nproxy-authorization: Basic {shown}\r\n\r\n"
        tunnel[1].write(head.encode())
        await tunnel[0].readuntil(b"\r\n\r\n")
        return await fetched(tunnel) / direct


async def fetched(stream: Stream) -> float:
    """Read until the end; gives the seconds."""
    begun = time.perf_counter()
    stream[1].write(b"GET / HTTP/1.1\r\n\r\n")
    while await stream[0].read(1024 * 1024):
        pass
    stream[1].close()
    return time.perf_counter() - begun


def entering() -> Iterator[Contest]:
    """Time the start of a process behind a door."""
    with tempfile.TemporaryDirectory(prefix="bench-egress-") as name:
        folder = Path(name)
        for part in ("workspace", "tree", "home", "tmp"):
            (folder / part).mkdir()
        view = View(folder / "workspace", folder / "tree", folder / "home", folder / "tmp")
        contenders = []
        for kind in ("bubblewrap", "landlock"):
            try:
                picked = anyio.run(partial(pick, only=kind))
            except NoConfinement:
                continue
            contenders.append(Contender(kind, partial(behind_a_door, picked.confinement, view)))
        if contenders:
            yield Contest(
                name="entering a confinement with a door, beyond a plain process",
                figure=MILLISECONDS,
                contenders=contenders,
                note="bubblewrap: an interpreter inside opens the door, and is gone",
            )


async def behind_a_door(confinement: Confinement, view: View) -> float:
    """Give what confining adds to a start."""
    async with open_egress(Rules(), lambda _: None) as door:
        closed = replace(view, network=Network.MODEL, door=door)
        plain, confined = [], []
        for _ in range(STARTS):
            plain.append(await timed(heard_plain))
            confined.append(await timed(partial(heard_confined, confinement, closed)))
    return (statistics.median(confined) - statistics.median(plain)) * 1000
