"""The live feed: nothing lost, nothing twice, and nobody in anybody's way."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from agentcanvas.app.server import ServerInfo, serve_beside
from agentcanvas.clock import VirtualClock
from agentcanvas.store import Store, backup, restore
from agentcanvas.web.feed import Feed
from agentcanvas.web.sse import Frame
from tests.web.office import FakeOffice, ended, noted, parked, started
from tests.web.streams import Wire, stream, take

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2", "D39")]

FAR = 60


def seqs(frames: list[Frame]) -> list[int]:
    return [int(frame.id.rpartition("-")[2]) for frame in frames]


async def start_of(store: Store) -> str:
    return await Feed(store).place(0)


async def test_an_event_arrives_with_its_place_and_as_in_the_log(
    client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    async with stream(client) as frames:
        seq = await office.write("r1", started())
        (frame,) = await take(frames, 1)
    assert frame.id == await Feed(store).place(seq)
    assert frame.event == ""
    data = json.loads(frame.data)
    assert data["event"] == "run_started"
    assert (data["seq"], data["runId"], data["actor"]) == (seq, "r1", "user")
    assert set(data) == {"seq", "ts", "runId", "event", "actor", "provenance", "payload"}


async def test_a_stream_begins_with_how_soon_to_come_back(client: httpx.AsyncClient) -> None:
    async with client.stream("GET", "/api/v1/events") as answer:
        assert await anext(answer.aiter_bytes()) == b"retry: 1000\n\n"


async def test_a_silent_stream_is_kept_alive_every_fifteen_seconds(
    client: httpx.AsyncClient, clock: VirtualClock
) -> None:
    async with client.stream("GET", "/api/v1/events") as answer:
        chunks = answer.aiter_bytes()
        await anext(chunks)
        for _ in range(2):
            await clock.advance(15)
            assert await anext(chunks) == b": ping\n\n"


async def test_a_reader_that_comes_back_misses_nothing_and_hears_nothing_twice(
    client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    await office.write("r1", started())
    heard: list[int] = []
    place = await start_of(store)
    async with anyio.create_task_group() as group:

        async def work() -> None:
            for number in range(200):
                await office.write("r1", noted(str(number)))
                await store.append("session/r1", "message", b"{}")

        group.start_soon(work)
        while len(heard) < 201:
            # By header, as a browser that lost its connection; it breaks off after a few.
            async with stream(client, headers={"last-event-id": place}) as frames:
                for frame in await take(frames, min(17, 201 - len(heard))):
                    heard += seqs([frame])
                    place = frame.id
    rows = await store.events()
    assert heard == [row.seq for row in rows if row.kind != "message"]


async def test_a_reloaded_page_names_its_place_in_the_address_and_a_header_is_newer(
    client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    feed = Feed(store)
    await office.write("r1", started(), noted("one"), noted("two"))
    async with stream(client, last_event_id=await feed.place(1)) as frames:
        assert seqs(await take(frames, 2)) == [2, 3]
    newer = {"last-event-id": await feed.place(2)}
    async with stream(client, last_event_id=await feed.place(1), headers=newer) as frames:
        assert seqs(await take(frames, 1)) == [3]


async def test_the_feed_of_one_run_leaves_the_others_out(
    client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    await office.write("r1", started())
    await office.write("r2", started())
    async with stream(client, run="r2", last_event_id=await start_of(store)) as frames:
        await office.write("r1", noted("not this"))
        await office.write("r2", noted("this"))
        assert seqs(await take(frames, 2)) == [2, 4]


@pytest.mark.parametrize(
    "place",
    ["0123456789ab-1", "nonsense", "-", "{epoch}-x", "{epoch}-99999", "{epoch}-" + "9" * 5000],
)
async def test_a_place_of_another_history_is_reset_and_the_feed_goes_on_from_now(
    client: httpx.AsyncClient, office: FakeOffice, store: Store, place: str
) -> None:
    feed = Feed(store)
    await office.write("r1", started(), noted("before"))
    named = place.format(epoch=await feed.epoch())
    async with stream(client, last_event_id=named) as frames:
        (reset,) = await take(frames, 1)
        assert (reset.event, reset.id) == ("reset", await feed.place(2))
        assert json.loads(reset.data) == {"head": await feed.place(2)}
        await office.write("r1", noted("after"))
        assert seqs(await take(frames, 1)) == [3]


async def test_a_place_whose_next_event_was_forgotten_is_reset(
    client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    await office.write("r1", started(), noted("one"), noted("two"))
    await store.transact(lambda unit: unit.execute("DELETE FROM events WHERE seq <= 2"))
    async with stream(client, last_event_id=await Feed(store).place(1)) as frames:
        assert (await take(frames, 1))[0].event == "reset"
    async with stream(client, last_event_id=await Feed(store).place(2)) as frames:
        assert seqs(await take(frames, 1)) == [3]


async def test_a_store_that_was_brought_back_is_another_history(root: Path) -> None:
    path, copy = root / ".agentcanvas" / "agentcanvas.db", root / "copy.db"
    async with await Store.open(path) as store:
        office = FakeOffice(store)
        await office.write("r1", started(), noted("one"))
        backup(path, copy)
        old = await Feed(store).head()
    restore(copy, path)
    async with await Store.open(path) as store:
        office = FakeOffice(store)
        async with (
            serve_beside(office, store, root, port=0) as info,
            httpx.AsyncClient(
                base_url=info.url,
                headers={"authorization": f"Bearer {info.token}"},
                trust_env=False,
            ) as client,
            stream(client, last_event_id=old) as frames,
        ):
            (reset,) = await take(frames, 1)
            assert reset.event == "reset"
            assert reset.id != old


class HeldFeed(Feed):
    """A feed whose looks at the store wait until the test lets them go."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.looks = 0
        self.looked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def _read(self, after: int) -> Any:
        self.looks += 1
        self.looked.set()
        await self.let_go.wait()
        return await super()._read(after)


async def test_readers_at_the_same_place_share_a_look_and_none_takes_it_from_the_others(
    office: FakeOffice, store: Store
) -> None:
    feed = HeldFeed(store)
    place = await feed.place(0)
    await office.write("r1", started())

    async def first_frame() -> bytes:
        async with aclosing(feed.frames(place)) as frames:
            return await anext(frames)

    readers = [asyncio.create_task(first_frame()) for _ in range(3)]
    await feed.looked.wait()
    readers[0].cancel()
    await asyncio.wait(readers[:1])
    feed.let_go.set()
    heard = await asyncio.gather(*readers[1:])
    assert heard[0] == heard[1]
    assert b"run_started" in heard[0]
    assert feed.looks == 1


async def test_a_reader_that_leaves_in_the_middle_takes_nothing_from_the_others(
    client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    await office.write("r1", started())
    place = await start_of(store)
    async with stream(client, last_event_id=place) as staying:
        for number in range(20):
            async with stream(client, last_event_id=place) as leaving:
                await office.write("r1", noted(str(number)))
                await take(leaving, 1)
        assert seqs(await take(staying, 21)) == list(range(1, 22))


async def test_a_reader_that_does_not_read_holds_up_nobody(
    server: ServerInfo, client: httpx.AsyncClient, office: FakeOffice, store: Store
) -> None:
    await office.write("r1", started())
    address = urlsplit(server.url)
    with socket.socket() as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.connect((address.hostname, address.port))
        stuck.sendall(
            f"GET /api/v1/events?last_event_id={await start_of(store)} HTTP/1.1\r\n"
            f"host: {address.netloc}\r\nauthorization: Bearer {server.token}\r\n\r\n".encode()
        )
        async with stream(client, last_event_id=await start_of(store)) as frames:
            await take(frames, 1)
            for _ in range(16):
                await office.write("r1", *[noted("x" * 65536) for _ in range(16)])
                await take(frames, 16)


@pytest.mark.req("D1")
async def test_ending_the_server_ends_open_streams_in_good_order(
    office: FakeOffice, store: Store, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await office.write("r1", started())
    async with httpx.AsyncClient(trust_env=False) as client:
        async with serve_beside(office, store, root, port=0) as info:
            client.base_url = httpx.URL(info.url)
            client.headers["authorization"] = f"Bearer {info.token}"
            feed = client.stream("GET", "/api/v1/events")
            run = client.stream("GET", "/api/v1/runs/r1/events?follow=true")
            first, second = await feed.__aenter__(), await run.__aenter__()
        # Not torn: httpx would complain about a body without its end.
        assert (await first.aread()).startswith(b"retry:")
        assert (await second.aread()).startswith(b"retry:")
        await feed.__aexit__(None, None, None)
        await run.__aexit__(None, None, None)
    assert "graceful shutdown exceeded" not in caplog.text


async def test_following_a_run_ends_with_it(client: httpx.AsyncClient, office: FakeOffice) -> None:
    await office.write("r1", started())
    path = "/api/v1/runs/r1/events"
    async with stream(client, path, follow="true") as frames:
        assert seqs(await take(frames, 1)) == [1]
        await office.write("r1", noted("one"), ended())
        assert seqs(await take(frames, 2)) == [2, 3]
        assert [frame.event async for frame in frames] == ["end"]


async def test_following_a_parked_run_ends_too(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    await office.write("r1", started(), parked())
    async with stream(client, "/api/v1/runs/r1/events", follow="true", after="1") as frames:
        assert [frame.event or "message" async for frame in frames] == ["message", "end"]


async def test_a_store_that_fails_under_a_stream_is_told_in_it(
    client: httpx.AsyncClient, office: FakeOffice
) -> None:
    await office.write("r1", started())
    async with stream(client, "/api/v1/runs/r1/events", follow="true") as frames:
        await take(frames, 1)
        await office.store.append("team-alpha/r1", "noted", b'{"event": "noted"}')
        (problem,) = [frame async for frame in frames]
    assert problem.event == "problem"
    assert json.loads(problem.data)["payload"]["error_code"] == "STORE_DAMAGED"


async def test_a_cable_that_breaks_ends_the_stream_at_the_server_too(
    server: ServerInfo, office: FakeOffice
) -> None:
    before = asyncio.all_tasks()
    wire = Wire(server)
    async with (
        wire.plugged_in() as info,
        httpx.AsyncClient(
            base_url=info.url, headers={"authorization": f"Bearer {info.token}"}, trust_env=False
        ) as client,
    ):
        async with stream(client) as frames:
            opened = asyncio.all_tasks() - before
            wire.cut()
            with pytest.raises(httpx.TransportError):
                await anext(frames)
        await asyncio.wait(opened)
