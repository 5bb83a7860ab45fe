"""What is said over the network: one way, there and back, heartbeats, urgent, or nothing."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path

from agentcanvas.clock import SystemClock
from bench.network.plain_socket import PlainSocket, connected
from bench.network.servers import echo_server, hub_server, nats_server

PAIRS = 8
IN_FLIGHT = 64
SIZE = 830
PINGS = 100
PROGRESS = "STATUS_RESPONSE"
_PROGRESS: dict[str, object] = {"task_id": "t-1", "progress": 50, "estimated_remaining": 1}
_ID = b'"message_id":"'
_CLOCK = SystemClock()
_NOW = _CLOCK.now()
_ids = count(1)

Work = Callable[[], Awaitable[object]]


def message(
    sender: str, to: str, *, type_: str = "STATUS_QUERY", priority: int = 5, thread: str = ""
) -> bytes:
    """Write a message of 830 bytes, with an id of its own; an answer names its ``thread``."""
    payload = _PROGRESS if type_ == PROGRESS else {}
    name = "status" if payload else "query_type"
    said: dict[str, object] = {
        "message_id": f"{sender}-{next(_ids)}",
        "type": type_,
        "from": sender,
        "to": to,
        "timestamp": _NOW,
        "payload": {**payload, name: ""},
        "priority": priority,
    }
    if thread:
        said["metadata"] = {"correlation_id": thread}
    said["payload"] = {**payload, name: "x" * (SIZE - len(json.dumps(said)))}
    return json.dumps(said).encode()


class Countdown:
    """Waits until so many of something have happened."""

    def __init__(self, number: int) -> None:
        self._left = number
        self._done = asyncio.Event()

    def __call__(self, number: int = 1) -> None:
        self._left -= number
        if self._left <= 0:
            self._done.set()

    async def wait(self) -> None:
        """Wait for the last."""
        await self._done.wait()


class Sender:
    """Keeps a window of messages on their way; ``answered`` makes room for as many."""

    def __init__(self, line: PlainSocket, make: Callable[[], bytes], number: int) -> None:
        self._line, self._make, self._left = line, make, number

    def go(self, room: int) -> None:
        """Send as many as there is room for."""
        number = min(room, self._left)
        self._left -= number
        if number:
            self._line.send([self._make() for _ in range(number)])


@asynccontextmanager
async def echoed(number: int) -> AsyncIterator[Work]:
    """Send and hear again."""
    with echo_server() as url:
        lines = [await connected(url, "/") for _ in range(PAIRS)]

        async def work() -> None:
            heard = Countdown(number)
            for index, line in enumerate(lines):

                def make(index: int = index) -> bytes:
                    return message(f"s{index}", "r")

                sender = Sender(line, make, number // PAIRS)

                def hear(frames: list[bytes], sender: Sender = sender) -> None:
                    heard(len(frames))
                    sender.go(len(frames))

                line.heard = hear
                sender.go(IN_FLIGHT)
            await heard.wait()

        yield work
        for line in lines:
            line.close()


def _receipts(frames: list[bytes]) -> int:
    """How many messages frames of the hub say that it has kept."""
    kept = 0
    for frame in frames:
        assert frame.startswith(b'{"receipts":'), frame[:300]
        kept += frame.count(b'"id":')
    return kept


def _numbers(frames: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The numbers of the messages among frames, and the other frames."""
    numbers, others = [], []
    for frame in frames:
        at = frame.rfind(b'"delivery":{"number":')
        if at < 0:
            others.append(frame)
        else:
            numbers.append(frame[at + 21 : frame.index(b",", at)])
    return numbers, others


def _id_of(frame: bytes) -> str:
    """The id of a message that was delivered."""
    start = frame.index(_ID) + len(_ID)
    return frame[start : frame.index(b'"', start)].decode()


class Receiver:
    """Acknowledges what comes, a read at a time, and counts what is settled."""

    def __init__(self, line: PlainSocket, settled: Callable[[int], None]) -> None:
        self._line = line
        self.settled = settled
        self._refs: dict[int, int] = {}
        line.heard = self.hear

    def hear(self, frames: list[bytes]) -> None:
        """Acknowledge messages; note what is acknowledged for good."""
        numbers, others = _numbers(frames)
        for frame in others:
            word = json.loads(frame)
            assert "settled" in word, word
            for done in word["settled"]:
                self.settled(self._refs.pop(done["ref"]))
        if numbers:
            ref = next(_ids)
            self._refs[ref] = len(numbers)
            self._line.send([b'{"ack":[%b],"ref":%d}' % (b",".join(numbers), ref)])


@asynccontextmanager
async def one_way(
    folder: Path, number: int, depth: int = 0, *, type_: str = "STATUS_QUERY"
) -> AsyncIterator[Work]:
    """Send, keep, deliver, acknowledge; with ``depth`` messages that wait before all others."""
    names = [f"{kind}{index}" for kind in "sr" for index in range(PAIRS)]
    async with hub_server(folder, names) as hub:
        senders = [await hub.socket(f"s{index}") for index in range(PAIRS)]
        settled = Countdown(0)

        def note(number: int) -> None:
            settled(number)

        async def send(total: int) -> None:
            kept = Countdown(total)
            for index, line in enumerate(senders):

                def make(index: int = index) -> bytes:
                    return message(f"s{index}", f"r{index}", type_=type_)

                sender = Sender(line, make, total // PAIRS)

                def hear(frames: list[bytes], sender: Sender = sender) -> None:
                    number = _receipts(frames)
                    kept(number)
                    sender.go(number)

                line.heard = hear
                sender.go(IN_FLIGHT)
            await kept.wait()

        if depth:
            await send(depth * PAIRS)
        for index in range(PAIRS):
            Receiver(await hub.socket(f"r{index}", "&window=256"), note)

        async def work() -> None:
            nonlocal settled
            settled = Countdown(number)
            await send(number)
            await settled.wait()

        yield work


@asynccontextmanager
async def through_jetstream(folder: Path, number: int) -> AsyncIterator[Work]:
    """The same over nats-py: published with an answer, received, acknowledged with an answer."""
    nats = importlib.import_module("nats")  # of the group "bench" only
    with nats_server(folder) as url:
        lines = [await nats.connect(url, connect_timeout=10) for _ in range(2 * PAIRS)]
        await lines[0].jetstream().add_stream(name="bench", subjects=["bench.*"])
        heard = Countdown(0)

        async def take(received: object) -> None:
            await received.ack_sync(timeout=30)  # type: ignore[attr-defined]
            heard()

        for index in range(PAIRS):
            await (
                lines[PAIRS + index]
                .jetstream()
                .subscribe(f"bench.{index}", durable=f"d{index}", cb=_beside(take), manual_ack=True)
            )

        async def work() -> None:
            nonlocal heard
            heard = Countdown(number)

            async def send(index: int) -> None:
                stream = lines[index].jetstream()
                body = message(f"s{index}", f"r{index}")
                for _ in range(number // PAIRS // IN_FLIGHT):
                    await stream.publish(f"bench.{index}", body, timeout=60)

            await asyncio.gather(*(send(index) for index in range(PAIRS) for _ in range(IN_FLIGHT)))
            await heard.wait()

        yield work
        for line in lines:
            await line.close()


def _beside(take: Callable[[object], Awaitable[None]]) -> Callable[[object], Awaitable[None]]:
    """Handle messages at once, as the other contenders do, not one after the other."""
    tasks: set[asyncio.Future[None]] = set()

    async def begin(received: object) -> None:
        task = asyncio.ensure_future(take(received))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return begin


# -- there and back ------------------------------------------------------------------------------


@asynccontextmanager
async def asked(folder: Path, number: int) -> AsyncIterator[Work]:
    """Ask and be answered, both durable, both acknowledged."""
    names = [f"{kind}{index}" for kind in "sr" for index in range(PAIRS)]
    async with hub_server(folder, names) as hub:
        askers = [await hub.socket(f"s{index}", "&window=256") for index in range(PAIRS)]
        answerers = [await hub.socket(f"r{index}", "&window=256") for index in range(PAIRS)]

        def answer(frames: list[bytes], line: PlainSocket, index: int) -> None:
            numbers, others = _numbers(frames)
            if numbers:
                asked = [_id_of(frame) for frame in frames if frame not in others]
                answers = [message(f"r{index}", f"s{index}", thread=id_) for id_ in asked]
                line.send([b'{"ack":[%b]}' % b",".join(numbers), *answers])

        for index, line in enumerate(answerers):
            line.heard = partial(answer, line=line, index=index)

        async def work() -> None:
            done = Countdown(number)
            for index, line in enumerate(askers):

                def make(index: int = index) -> bytes:
                    return message(f"s{index}", f"r{index}")

                sender = Sender(line, make, number // PAIRS)

                def hear(
                    frames: list[bytes], sender: Sender = sender, line: PlainSocket = line
                ) -> None:
                    numbers, _ = _numbers(frames)
                    if numbers:
                        line.send([b'{"ack":[%b]}' % b",".join(numbers)])
                        done(len(numbers))
                        sender.go(len(numbers))

                line.heard = hear
                sender.go(IN_FLIGHT)
            await done.wait()

        yield work


@asynccontextmanager
async def beating(folder: Path, number: int) -> AsyncIterator[Work]:
    """Heartbeats, which nobody keeps, each with its receipt."""
    names = [f"s{index}" for index in range(PAIRS)]
    payload = {"status": "ACTIVE", "load": 0.5, "tasks_running": 1, "tasks_queued": 0}
    beat = {**payload, "capabilities": ["x" * 50] * 10}
    async with hub_server(folder, names) as hub:
        lines = [await hub.socket(name) for name in names]

        async def work() -> None:
            kept = Countdown(number)
            for name, line in zip(names, lines, strict=True):

                def make(name: str = name) -> bytes:
                    said = json.loads(message(name, "hub", type_="HEARTBEAT"))
                    return json.dumps(said | {"payload": beat}).encode()

                sender = Sender(line, make, number // PAIRS)

                def hear(frames: list[bytes], sender: Sender = sender) -> None:
                    number = _receipts(frames)
                    kept(number)
                    sender.go(number)

                line.heard = hear
                sender.go(IN_FLIGHT)
            await kept.wait()

        yield work


# -- urgency, memory -----------------------------------------------------------------------------


@asynccontextmanager
async def urgent(folder: Path, *, flooded: bool) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Take the 99th percentile of the way of an urgent message, maybe under a flood."""
    async with hub_server(folder, ["pinger", "flooder", "receiver"]) as hub:
        pinger, flooder = await hub.socket("pinger"), await hub.socket("flooder")
        line = await hub.socket("receiver", "&window=64")
        arrived: dict[bytes, asyncio.Event] = {}

        def hear(frames: list[bytes]) -> None:
            numbers, _ = _numbers(frames)
            for frame in frames:
                for id_, event in arrived.items():
                    if id_ in frame:
                        event.set()
            if numbers:
                line.send([b'{"ack":[%b]}' % b",".join(numbers)])

        line.heard = hear
        flood = Sender(flooder, lambda: message("flooder", "receiver", priority=1), 1 << 60)
        flooder.heard = lambda frames: flood.go(_receipts(frames))
        if flooded:
            flood.go(IN_FLIGHT)

        async def work() -> float:
            times = []
            for _ in range(PINGS):
                ping = message("pinger", "receiver", priority=9)
                id_ = json.loads(ping)["message_id"].encode() + b'"'
                arrived[id_] = asyncio.Event()
                before = _CLOCK.monotonic()
                pinger.send([ping])
                await arrived[id_].wait()
                times.append(_CLOCK.monotonic() - before)
                del arrived[id_]
            return sorted(times)[PINGS * 99 // 100] * 1000

        yield work


@asynccontextmanager
async def idle(folder: Path, number: int) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Take what a connection that says nothing costs the hub, in kB."""
    names = [f"a{index}" for index in range(number)]
    async with hub_server(folder, names) as hub:
        before = _resident_kb(hub.pid)  # once: what was given back is not given to the system

        async def work() -> float:
            lines = [await hub.socket(name) for name in names]
            after = _resident_kb(hub.pid)
            for line in lines:
                line.close()
            return (after - before) / number

        yield work


def _resident_kb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
