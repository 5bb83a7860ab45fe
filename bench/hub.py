"""Mail in process: what durable delivery costs over a bare durable write, and at any depth.

A message counts when it was checked, kept, received and acknowledged, each on disk. The bare write
is an event of the same size; it is neither looked up nor delivered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agentcanvas.clock import SystemClock
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.broker import Receipt, Settlement
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.connecting import connect
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.events import posted
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub, Link
from agentcanvas.hub.transports.memory import dialing
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Kind, StatusQuery
from agentcanvas.store import Store
from bench.harness import Contender, Contest, Figure, times_better, times_worse

SENDERS = 512
TURNS = 2
MESSAGES = SENDERS * TURNS
SHALLOW, DEEP = 10, 10_000
SENDER = Principal("sender")
ASKERS = 64
PINGS = 200
FLOOD_AT_ONCE = 64
_CLOCK = SystemClock()


def message(priority: int = 5) -> Envelope:
    """Make a message of 830 bytes."""
    return Envelope(
        id=new_id(),
        kind=Kind.STATUS_QUERY,
        time="2026-01-28T10:00:00Z",
        sender=AgentRef(SENDER.id),
        recipient=AgentRef("receiver"),
        session="default",
        priority=priority,
        body=StatusQuery(query_type="x" * 590),
    )


@asynccontextmanager
async def bare_writes(folder: Path) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Append events one by one, each of many tasks waiting for its own."""
    body = posted(message())
    async with await Store.open(folder / "bare.db") as store:

        async def writer() -> None:
            for _ in range(TURNS):
                await store.append("session/default", "message", body)

        async def work() -> None:
            async with anyio.create_task_group() as group:
                for _ in range(SENDERS):
                    group.start_soon(writer)

        yield work


@asynccontextmanager
async def an_open_hub(folder: Path) -> AsyncIterator[tuple[Hub, Link]]:
    """Open a hub with one receiver."""
    clock = SystemClock()
    rules = DeliveryRules(inbox=2 * DEEP)
    async with (
        await Store.open(folder / "hub.db") as store,
        EmbeddedBroker.open(store, clock=clock, rules=rules) as broker,
        Hub.open(broker, store, clock=clock) as hub,
    ):
        await hub.sessions.open("default", members=["sender", "receiver"])
        yield hub, await hub.connect(Principal("receiver"), window=4 * SENDERS)


async def receive(link: Link, number: int) -> None:
    """Take and acknowledge so many, without waiting for one batch before the next."""
    async with anyio.create_task_group() as group:
        while number:
            parcels = await link.receive(min(number, 256))
            number -= len(parcels)
            numbers = [parcel.number for parcel in parcels]
            group.start_soon(link.settle, numbers, Settlement.TAKEN)


@asynccontextmanager
async def delivered(folder: Path) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Send one by one, each of many tasks waiting for its receipt, and receive beside it."""
    async with an_open_hub(folder) as (hub, link):

        async def sender() -> None:
            for _ in range(TURNS):
                await hub.send(SENDER, message())

        async def work() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(receive, link, MESSAGES)
                for _ in range(SENDERS):
                    group.start_soon(sender)

        yield work


@asynccontextmanager
async def batches(folder: Path, depth: int = 0) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Send in batches and receive beside it, while so many wait."""
    async with an_open_hub(folder) as (hub, link):

        async def send(number: int) -> None:
            for outcome in await hub.send_all(SENDER, [message() for _ in range(number)]):
                assert isinstance(outcome, Receipt), outcome

        async def work() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(receive, link, MESSAGES)
                for _ in range(MESSAGES // 256):
                    group.start_soon(send, 256)

        for start in range(0, depth, 1000):
            await send(min(1000, depth - start))
        yield work


@asynccontextmanager
async def tasks(folder: Path) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give an agent tasks through the SDK, and wait for their results, many at once."""
    agent = Agent("receiver", max_parallel=ASKERS)

    @agent.task("echo")
    async def echo(task: Task) -> object:
        return task.input

    async with (
        an_open_hub(folder) as (hub, link),
        agent.working(dialing(hub, Principal("receiver"), window=4 * ASKERS), _CLOCK),
        connect(dialing(hub, SENDER), SENDER.id, clock=_CLOCK) as client,
    ):
        del link  # the agent has taken its place

        async def ask() -> None:
            for _ in range(MESSAGES // ASKERS // 4):
                await client.request("receiver", "echo", "x" * 590)

        async def work() -> None:
            async with anyio.create_task_group() as group:
                for _ in range(ASKERS):
                    group.start_soon(ask)

        yield work


@asynccontextmanager
async def pings(folder: Path, *, flooded: bool) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Take the 99th percentile of the time from sending an urgent message to receiving it."""
    async with an_open_hub(folder) as (hub, link):
        arrived: dict[str, anyio.Event] = {}

        async def receive_all() -> None:
            async with anyio.create_task_group() as group:
                while True:
                    parcels = await link.receive(64)
                    for parcel in parcels:
                        if parcel.envelope.id in arrived:
                            arrived[parcel.envelope.id].set()
                    numbers = [parcel.number for parcel in parcels]
                    group.start_soon(link.settle, numbers, Settlement.TAKEN)

        async def flood() -> None:
            while True:
                await hub.send_all(SENDER, [message(priority=1) for _ in range(FLOOD_AT_ONCE)])

        async def work() -> float:
            times = []
            async with anyio.create_task_group() as group:
                group.start_soon(receive_all)
                if flooded:
                    group.start_soon(flood)
                for _ in range(PINGS):
                    ping = message(priority=9)
                    arrived[ping.id] = anyio.Event()
                    before = _CLOCK.monotonic()
                    await hub.send(SENDER, ping)
                    await arrived.pop(ping.id).wait()
                    times.append(_CLOCK.monotonic() - before)
                group.cancel_scope.cancel()
            return sorted(times)[PINGS * 99 // 100] * 1000

        yield work


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of the hub in process."""
    del quick
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        numbers = count()

        def place() -> Path:
            path = Path(name) / str(next(numbers))
            path.mkdir()
            return path

        bare, single, batched = place(), place(), place()
        yield Contest(
            name="a durable message, sent, received, acknowledged",
            baseline="bare store append",
            contenders=[
                Contender.opened(
                    "bare store append", lambda: bare_writes(bare), operations=MESSAGES
                ),
                Contender.opened(
                    "hub, 512 senders",
                    lambda: delivered(single),
                    operations=MESSAGES,
                    bar=times_better(0.25, than="bare store append"),
                ),
                Contender.opened(
                    "hub, batches of 256",
                    lambda: batches(batched),
                    operations=MESSAGES,
                    bar=times_better(0.4, than="bare store append"),
                ),
            ],
            note="830 bytes each; a message is two rows, two look-ups and an update more",
        )

        shallow, deep = place(), place()
        yield Contest(
            name="a durable message while others wait",
            baseline=f"{SHALLOW} waiting",
            contenders=[
                Contender.opened(
                    f"{SHALLOW} waiting", lambda: batches(shallow, SHALLOW), operations=MESSAGES
                ),
                Contender.opened(
                    f"{DEEP:,} waiting",
                    lambda: batches(deep, DEEP),
                    operations=MESSAGES,
                    bar=times_worse(1.3, than=f"{SHALLOW} waiting"),
                ),
            ],
        )

        asked = place()
        yield Contest(
            name="a task and its result, through the SDK",
            baseline="bare store append",
            contenders=[
                Contender.opened(
                    "bare store append", lambda: bare_writes(bare), operations=MESSAGES
                ),
                Contender.opened(
                    f"SDK, {ASKERS} at once",
                    lambda: tasks(asked),
                    operations=MESSAGES // 4,
                ),
            ],
            note="three durable messages (task, accept, result), each acknowledged",
        )

        quiet, loud = place(), place()
        yield Contest(
            name="an urgent message under a flood of others",
            baseline="nothing else",
            figure=Figure("ms, 99th percentile"),
            contenders=[
                Contender.opened("nothing else", lambda: pings(quiet, flooded=False)),
                Contender.opened(
                    "flood of low priority",
                    lambda: pings(loud, flooded=True),
                    bar=times_worse(5, than="nothing else"),
                ),
            ],
            note="nearly all of it is the wait for its own receipt: a batch that is being written "
            "when it comes, 64 messages here, and its own; from receipt to delivery it is 0.05 ms",
        )
