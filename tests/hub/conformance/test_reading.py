"""Reading without a connection: from a cursor or a time, as often as one likes, taking nothing."""

from __future__ import annotations

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.broker import Broker
from tests.hub.conformance.conftest import STEADY
from tests.hub.conformance.harnesses import Harness
from tests.hub.helpers import post, send, take_all, texts

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1", "D36")]


async def test_reading_takes_nothing_and_gives_the_same_every_time(broker: Broker) -> None:
    await send(broker, "m0", "m1")
    await send(broker, "for c", to="c")
    for _ in range(3):
        assert texts(await broker.since("b")) == ["m0", "m1"]
    inbox = await broker.connect("b")
    taken = await take_all(inbox, 2)
    assert texts(taken) == ["m0", "m1"]
    assert not any(parcel.redelivered for parcel in taken)


async def test_the_last_number_is_the_cursor_of_the_next_page(broker: Broker) -> None:
    await send(broker, *(f"m{n}" for n in range(7)))
    seen: list[str] = []
    cursor = 0
    while page := await broker.since("b", after=cursor, limit=3):
        seen += texts(page)
        cursor = page[-1].number
    assert seen == [f"m{n}" for n in range(7)]
    await send(broker, "later")
    assert texts(await broker.since("b", after=cursor)) == ["later"]


async def test_what_was_taken_over_can_still_be_read(broker: Broker) -> None:
    await send(broker, "m0")
    await take_all(await broker.connect("b"), 1)
    assert texts(await broker.since("b")) == ["m0"]


async def test_reading_from_a_time_gives_what_came_later_than_it(
    broker: Broker, clock: VirtualClock
) -> None:
    await send(broker, "before")
    await clock.advance(10)
    moment = clock.now_ms()
    assert list(await broker.since("b", later_than_ms=moment)) == []
    await clock.advance(10)
    await send(broker, "after")
    assert texts(await broker.since("b", later_than_ms=moment)) == ["after"]


async def test_an_acknowledgement_without_a_connection_counts_once_and_for_ones_own_mail_only(
    broker: Broker,
) -> None:
    await broker.post([post("a", "b", "mine"), post("a", "c", "theirs")])
    (mine,), (theirs,) = await broker.since("b"), await broker.since("c")
    assert await broker.acknowledge("b", [mine.number, theirs.number, 10_000]) == 1
    assert await broker.acknowledge("b", [mine.number]) == 0
    await send(broker, "next")
    assert texts(await take_all(await broker.connect("b"), 1)) == ["next"]
    assert texts(await take_all(await broker.connect("c"), 1)) == ["theirs"]


async def test_an_acknowledgement_elsewhere_takes_it_out_of_a_connections_inbox(
    broker: Broker,
) -> None:
    inbox = await broker.connect("b")
    await send(broker, "m0")
    (parcel,) = await broker.since("b")
    assert await broker.acknowledge("b", [parcel.number]) == 1
    await send(broker, "m1")
    assert texts(await take_all(inbox, 1)) == ["m1"]


async def test_a_cursor_holds_after_a_crash(harness: Harness) -> None:
    async with harness.open(STEADY) as broker:
        await send(broker, "m0", "m1")
        cursor = (await broker.since("b", limit=1))[0].number
        await harness.crash()
    async with harness.open(STEADY) as broker:
        assert texts(await broker.since("b", after=cursor)) == ["m1"]
