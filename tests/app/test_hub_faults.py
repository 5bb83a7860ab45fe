"""What goes wrong at the doors of a hub: full disks, slow readers, garbage, crowds, clocks."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.app.hub import OpenHub
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import Replaced
from agentcanvas.hub import frames
from agentcanvas.hub.client import Connection
from agentcanvas.hub.office import TokenOrder
from agentcanvas.hub.reconnecting import BackOff, Reconnecting
from agentcanvas.hub.transports import websocket
from tests.app.hub_process import hub_beside, ws
from tests.hub.helpers import message
from tests.web.sockets import Wire, mac, wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1", "H2")]

_MB = 1024 * 1024
_DAY_MS = 86_400_000


class Place:
    """A hub, and tokens for whoever is named."""

    def __init__(self, url: str, hub: OpenHub) -> None:
        self.url = url
        self.hub = hub
        self._tokens: dict[str, str] = {}

    async def token(self, agent: str) -> str:
        """The token of an agent."""
        if agent not in self._tokens:
            order = TokenOrder(name=agent)
            self._tokens[agent] = (await self.hub.keeper.new_token(order)).text
        return self._tokens[agent]

    @asynccontextmanager
    async def wire(self, agent: str, query: str = "") -> AsyncIterator[Wire]:
        """Connect as an agent."""
        async with wire(self.url, agent, await self.token(agent), query) as line:
            yield line

    async def raw(self, agent: str) -> socket.socket:
        """Connect as an agent that can do with its socket what it likes."""
        token = await self.token(agent)
        host, port = self.url.removeprefix("http://").split(":")
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(line, (host, int(port)))
        lines = [
            f"GET {frames.PATH}?agent_id={agent}&auth_token={token}&window=1024 HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Version: 13",
        ]
        await loop.sock_sendall(line, ("\r\n".join(lines) + "\r\n\r\n").encode())
        assert await loop.sock_recv(line, 12) == b"HTTP/1.1 101"
        return line


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with hub_beside(tmp_path) as (info, hub):
        place = Place(info.url, hub)
        for name in ("a", "b", "c"):
            await place.token(name)
        yield place


async def kept(line: Wire, *messages: dict[str, Any]) -> None:
    """Send messages, one after the other, and wait for their receipts."""
    for said in messages:
        await line.say(said)
        while "receipts" not in (frame := await line.hear()):
            assert "delivery" in frame, frame


async def taken(line: Wire, number: int) -> list[str]:
    """Take so many messages over; return their ids."""
    ids = []
    for _ in range(number):
        came = await line.hear_message()
        ids.append(came["message_id"])
        await line.say({"ack": [came["delivery"]["number"]]})
    return ids


async def test_a_full_disk_refuses_and_the_same_message_goes_through_later(place: Place) -> None:
    store = place.hub.store
    async with place.wire("a") as a, place.wire("b") as b:
        await kept(a, mac("a", "b", "m-0"))
        pages = await store.read(lambda look: look.query("PRAGMA page_count")[0][0])
        await store.transact(lambda tx: tx.execute(f"PRAGMA max_page_count = {pages}"))
        refused: list[str] = []
        for number in range(1, 40):
            await a.say(mac("a", "b", f"m-{number}", "x" * 50_000))
            frame = await a.hear()
            if "receipts" not in frame:
                assert frame["payload"]["error_type"] == "RESOURCE_ERROR", frame
                assert "Traceback" not in json.dumps(frame)
                refused.append(frame["payload"]["original_message_id"])
        assert refused
        await store.transact(lambda tx: tx.execute("PRAGMA max_page_count = 100000"))
        for id_ in refused:
            await kept(a, mac("a", "b", id_, "x" * 50_000))
        assert sorted(await taken(b, 40)) == sorted(f"m-{number}" for number in range(40))


async def test_who_does_not_read_is_held_little_and_holds_up_nobody(place: Place) -> None:
    slow = await place.raw("b")
    async with place.wire("a") as a, place.wire("c") as c:
        text = "x" * 20_000
        for number in range(500):
            await a.say(mac("a", "b", f"slow-{number}", text))
        receipts = 0
        while receipts < 500:
            receipts += len((await a.hear())["receipts"])
        await kept(a, mac("a", "c", "quick"))
        assert await taken(c, 1) == ["quick"]
        before = place.hub.broker.statistics().in_flight
        await kept(a, *(mac("a", "c", f"quick-{number}") for number in range(20)))
        assert len(await taken(c, 20)) == 20
        # Ten megabytes wait for it; in its hands is what the sockets took, and a little more.
        assert place.hub.broker.statistics().in_flight <= before + 64
        assert before < 300
    slow.close()


async def test_a_crowd_of_idle_connections_leaves_room_for_work(place: Place) -> None:
    async with AsyncExitStack() as stack:
        for number in range(300):
            await stack.enter_async_context(place.wire("c", f"&instance=i{number}"))
        assert place.hub.doors.connections["websocket"] == 300
        async with place.wire("a") as a, place.wire("b") as b:
            await kept(a, mac("a", "b", "m-1"))
            assert await taken(b, 1) == ["m-1"]
    async with place.wire("a") as a:
        await kept(a, mac("a", "b", "m-2"))


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x81",  # half a head
        b"\x81\xfe\x03",  # half a length
        b"\x81\x85\x00\x00\x00\x00he",  # half a message
        b"\x01\x82\x00\x00\x00\x00hi",  # the beginning of one in pieces
        b"\x83\x80\x00\x00\x00\x00",  # an opcode that is none
        b"\x81\x02hi",  # not masked
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(4),  # longer than there are numbers
        b"\x89\xfe\x00\xff" + bytes(4),  # a ping that is too long
        b"\xf1\x80\x00\x00\x00\x00",  # bits that nobody agreed on
        os.urandom(4096),
    ],
)
async def test_garbage_and_half_frames_end_one_connection_and_no_more(
    place: Place, garbage: bytes
) -> None:
    line = await place.raw("b")
    await asyncio.get_running_loop().sock_sendall(line, garbage)
    line.close()
    async with place.wire("a") as a, place.wire("c") as c:
        await kept(a, mac("a", "c", "m-1"))
        assert await taken(c, 1) == ["m-1"]


async def test_random_frames_are_each_answered_and_the_connection_goes_on(place: Place) -> None:
    chance = random.Random(5)
    words = ["ack", "nack", "type", "from", "to", "payload", "{", "}", "[", "]", ":", ",", '"', "1"]
    async with place.wire("a") as a:
        for _ in range(200):
            await a.say("".join(chance.choices(words, k=chance.randrange(1, 30))))
            assert (await a.hear_error())["error_type"] == "PROTOCOL_ERROR"
        await kept(a, mac("a", "b", "m-1"))


async def test_bursts_of_a_megabyte_are_kept_whole(place: Place) -> None:
    text = "x" * (_MB - 400)
    async with place.wire("a") as a, place.wire("b") as b:
        for number in range(12):
            await a.say(mac("a", "b", f"m-{number}", text))
        ids = []
        for _ in range(12):
            came = await b.hear_message()
            assert len(came["payload"]["query_type"]) == len(text)
            ids.append(came["message_id"])
            await b.say({"ack": [came["delivery"]["number"]]})
        assert ids == [f"m-{number}" for number in range(12)]


async def test_hundreds_of_reconnects_lose_nothing_and_leave_nothing_behind(place: Place) -> None:
    ids: list[str] = []
    async with place.wire("a") as a:
        for number in range(200):
            await kept(a, mac("a", "b", f"m-{number}"))
            async with place.wire("b") as b:
                came = await b.hear_message()
                ids.append(came["message_id"])
                await b.say({"ack": [came["delivery"]["number"]], "ref": number})
                while "settled" not in await b.hear():
                    pass
    assert ids == [f"m-{number}" for number in range(200)]
    assert place.hub.doors.connections["websocket"] <= 2
    assert place.hub.broker.statistics().inboxes <= 2


async def test_of_two_agents_with_one_id_the_later_stays_and_the_earlier_does_not_come_back(
    place: Place,
) -> None:
    dial = websocket.dialing(ws(place.url), "a", await place.token("a"))
    clock = SystemClock()

    async def line() -> Reconnecting:
        way = Reconnecting(dial, clock, back_off=BackOff(first_s=0.01))
        await way.open()
        return way

    first, second = await line(), await line()
    async with Connection.over(first, clock) as one, Connection.over(second, clock) as two:
        with pytest.raises(Replaced):
            await anext(one.receive())
        await two.send(message("a", "b"))
        assert (first.connections, second.connections) == (1, 1)


async def test_one_agent_may_use_the_ids_of_another(place: Place) -> None:
    async with place.wire("a") as a, place.wire("b") as b, place.wire("c") as c:
        await kept(a, mac("a", "c", "m-1", "from a"))
        await kept(b, mac("b", "c", "m-1", "from b"))
        first, second = await c.hear_message(), await c.hear_message()
        assert [first["from"], second["from"]] == ["a", "b"]
        await c.say({"ack": [second["delivery"]["number"]], "ref": 1})
        assert (await c.hear())["settled"] == [{"ref": 1, "news": 1}]
        (left,) = await place.hub.broker.waiting("c")
        assert left[1].sender.id == "a"
        await b.say({"ack": [first["delivery"]["number"]], "ref": 2})
        assert (await b.hear())["settled"] == [{"ref": 2, "news": 0}]


@pytest.mark.parametrize("jump", [lambda now: now - 30 * _DAY_MS, lambda now: now + 30 * _DAY_MS])
async def test_a_clock_that_is_set_expires_nothing_and_holds_nothing_back(
    tmp_path: Path, jump: Callable[[int], int]
) -> None:
    clock = VirtualClock(jumps=False)
    async with hub_beside(tmp_path, clock=clock) as (info, hub):
        place = Place(info.url, hub)
        await place.token("b")
        payload = {"task_id": "t", "task_type": "x", "input": "y", "timeout": 300}
        task = {"type": "TASK_REQUEST", "payload": payload}
        async with place.wire("a") as a:
            await kept(a, mac("a", "b", "m-1") | task)
            clock.set_wall(jump(clock.now_ms()))
            await kept(a, mac("a", "b", "m-2"))
            async with place.wire("b") as b:
                assert sorted(await taken(b, 2)) == ["m-1", "m-2"]
