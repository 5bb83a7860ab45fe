"""What the embedded broker does beyond ``conformance``: bounds of its own, and its records."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.broker import Settlement
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.events import EventKind
from agentcanvas.hub.inbox import Contents
from agentcanvas.store import Retention, Store
from tests.hub.helpers import a_broker, events, post, send, take_all, texts

pytestmark = [pytest.mark.anyio, pytest.mark.req("H2")]

TAKEN, FAILED, HELD = Settlement.TAKEN, Settlement.FAILED, Settlement.HELD


@pytest.mark.req("D30")
async def test_no_more_ids_are_remembered_than_the_rules_say(
    store: Store, clock: VirtualClock
) -> None:
    async with a_broker(store, clock, DeliveryRules(remembered_ids=100)) as broker:
        posts = [post("a", "b", str(n)) for n in range(150)]
        await broker.post(posts)
        await take_all(await broker.connect("b"), 150)
        await clock.advance(3601)
        outcomes = await broker.post([posts[0], posts[149]])
        assert [getattr(each, "repeated", None) for each in outcomes] == [False, True]
        rows = await store.read(lambda look: look.one("SELECT count(*) FROM hub_letters"))
        assert rows == (101,)


async def test_acknowledging_twice_is_harmless(broker: EmbeddedBroker) -> None:
    await send(broker, "one", "two")
    inbox = await broker.connect("b")
    parcels = await inbox.take(2)
    first = parcels[0].number
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(inbox.settle, [first], TAKEN)
    assert await inbox.settle([first], TAKEN) == 0
    assert await inbox.settle([first, parcels[1].number], TAKEN) == 1
    assert broker.statistics().taken == 2
    row = await broker._store.read(lambda look: look.one("SELECT waiting FROM hub_inboxes"))
    assert row == (0,)


async def test_pauses_are_spread_by_chance_and_never_shorter() -> None:
    class Always:
        def __init__(self, value: float) -> None:
            self.value = value

        def random(self) -> float:
            return self.value

    rules = DeliveryRules()
    least = [rules.pause_s(tries, Always(0.0)) for tries in (1, 2, 3)]  # type: ignore[arg-type]  # only random() is used
    most = [rules.pause_s(tries, Always(1.0)) for tries in (1, 2, 3)]  # type: ignore[arg-type]  # only random() is used
    assert least == [1.0, 2.0, 4.0]
    assert most == [1.25, 2.5, 5.0]


async def test_a_wall_clock_that_is_set_expires_nothing(store: Store, clock: VirtualClock) -> None:
    async with a_broker(store, clock) as broker:
        await send(broker, "m", timeout_ms=60_000)
        clock.set_wall(clock.now_ms() + 86_400_000)
        await clock.advance(59)
        assert await broker.dead_letters() == []
        clock.set_wall(clock.now_ms() - 2 * 86_400_000)
        await clock.advance(1)
        assert len(await broker.dead_letters()) == 1


async def test_mail_from_before_the_wall_clock_was_set_back_still_goes_first(
    store: Store, clock: VirtualClock
) -> None:
    async with a_broker(store, clock) as broker:
        await send(broker, "older", "old")
    clock.set_wall(clock.now_ms() - 3_600_000)
    async with a_broker(store, clock) as broker:
        inbox = await broker.connect("b")
        await clock.advance(1)
        await broker.post([post("c", "b", "new")])
        assert texts(await take_all(inbox, 3)) == ["older", "old", "new"]


async def test_what_is_too_much_for_memory_is_read_back_from_the_store(
    broker: EmbeddedBroker,
) -> None:
    broker._contents = Contents(most_bytes=2_000_000)
    inbox = await broker.connect("b")
    large = [str(number) + "x" * 900_000 for number in range(10)]
    await send(broker, *large)
    assert len(broker._contents._held) == 2
    assert texts(await take_all(inbox, 10)) == large
    await send(broker, "one more")
    await inbox.close()
    assert broker._contents._held == {}
    assert broker._contents._room == 2_000_000


async def test_retention_does_not_forget_what_still_waits(
    store: Store, clock: VirtualClock
) -> None:
    async with a_broker(store, clock) as broker:
        await send(broker, "taken", to="c")
        await take_all(await broker.connect("c"), 1)
        await send(broker, "waits")
        await send(broker, "dies", timeout_ms=1000, to="d")
        await clock.advance(2)
        await store.retain(Retention(streams="session/", keep_last=0))
        assert texts(await take_all(await broker.connect("b"), 1)) == ["waits"]
        (dead,) = await broker.dead_letters()
        await broker.resend(dead.number)
        assert texts(await take_all(await broker.connect("d"), 1)) == ["dies"]


@pytest.mark.req("D28", "C1")
async def test_a_message_that_is_given_up_is_on_record_in_its_session(
    store: Store, clock: VirtualClock
) -> None:
    async with a_broker(store, clock) as broker:
        await send(broker, "ignored")
        await broker.connect("b", window=1)
        inbox = await broker.connect("b")
        for _ in range(4):
            await inbox.take(1)
        await clock.advance(60)
        (record,) = await events(store, EventKind.UNDELIVERABLE)
        assert record["retry_count"] == record["max_retries"] == 3
        assert record["error_type"] == "timeout"
        (dead,) = await broker.dead_letters()
        await broker.delete(dead.number)
        assert await events(store, EventKind.DELETED) == [{"letter": dead.number, "recipient": "b"}]


@pytest.mark.req("C1", "D2")
async def test_mail_that_cannot_be_read_becomes_a_dead_letter_and_holds_up_nobody_else(
    tmp_path: Path, clock: VirtualClock
) -> None:
    path = tmp_path / "agentcanvas.db"
    async with await Store.open(path, clock=clock) as store:
        async with a_broker(store, clock) as broker:
            await send(broker, "damaged", "whole")
        row = await store.read(lambda look: look.one("SELECT min(seq) FROM hub_letters"))
        assert row is not None
        number = row[0]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET body = x'00' WHERE seq = ?", (number,))
        connection.commit()
    async with await Store.open(path, clock=clock) as store, a_broker(store, clock) as broker:
        inbox = await broker.connect("b")
        taken = await take_all(inbox, 1)
        assert texts(taken) == ["whole"]
        async with anyio.create_task_group() as group:
            group.start_soon(inbox.take, 1)
            for _ in range(20):
                await clock.advance(5)
            group.cancel_scope.cancel()
        (dead,) = await broker.dead_letters()
        assert dead.number == number
        assert "damaged in the store" in dead.reason
