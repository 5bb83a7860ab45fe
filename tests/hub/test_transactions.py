"""Mail and records in one transaction, also when somebody is cancelled or the disk is full."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import Overloaded, StoreFull
from agentcanvas.hub.broker import Outcome, Parcel, Receipt, Settlement, Unit
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.delivery import TOP_BAND, DeliveryRules
from agentcanvas.store import Store, StoreLimits
from tests.hub.helpers import a_broker, post, take_all, texts

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2", "D3")]


async def test_a_record_and_the_message_it_causes_are_kept_together(
    broker: EmbeddedBroker, store: Store
) -> None:
    asked = post("engine:r", "b")

    def work(unit: Unit) -> Receipt:
        unit.transaction.append("run/r", "asked", b"{}")
        return unit.put(asked)

    receipt = await broker.transact(work)
    recorded = await store.events(stream="run/r")
    assert receipt.numbers == (recorded[0].seq + 1,)
    assert texts(await take_all(await broker.connect("b"), 1)) == ["hello"]


async def test_neither_is_kept_when_the_work_fails_and_neighbours_are_not_touched(
    broker: EmbeddedBroker, store: Store
) -> None:
    def work(unit: Unit) -> None:
        unit.transaction.append("run/r", "asked", b"{}")
        unit.put(post("a", "b", "never"))
        raise ZeroDivisionError

    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            await broker.transact(work)

    inbox = await broker.connect("b")
    async with anyio.create_task_group() as group:
        group.start_soon(broker.post, [post("a", "b", "before")])
        group.start_soon(fail)
        group.start_soon(broker.post, [post("a", "b", "after")])
    assert texts(await take_all(inbox, 2)) == ["before", "after"]
    assert await store.events(stream="run/r") == []


async def test_a_refused_message_takes_the_record_with_it(
    store: Store, clock: VirtualClock
) -> None:
    async with a_broker(store, clock, DeliveryRules(inbox=1)) as broker:
        await broker.post([post("a", "b")])

        def work(unit: Unit) -> None:
            unit.transaction.append("run/r", "asked", b"{}")
            unit.put(post("a", "b"))

        with pytest.raises(Overloaded):
            await broker.transact(work)
        assert await store.events(stream="run/r") == []


async def test_recording_an_answer_and_taking_it_over_is_one_thing(
    broker: EmbeddedBroker, store: Store
) -> None:
    await broker.post([post("b", "engine:r", "answer")])
    inbox = await broker.connect("engine:r")
    (parcel,) = await inbox.take(1)

    def work(unit: Unit) -> bool:
        unit.transaction.append("run/r", "answered", b"{}")
        return unit.take_over(parcel.number)

    assert await broker.transact(work)
    assert not await broker.transact(work)
    assert await inbox.settle([parcel.number], Settlement.TAKEN) == 0
    assert broker.statistics().in_flight == 0


async def test_who_stops_waiting_has_sent_nevertheless(broker: EmbeddedBroker) -> None:
    inbox = await broker.connect("b")
    async with anyio.create_task_group() as group:
        group.start_soon(broker.post, [post("a", "b", "cancelled too late")])
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert texts(await take_all(inbox, 1)) == ["cancelled too late"]


async def test_a_broker_that_is_cancelled_writes_what_it_was_given(
    store: Store, clock: VirtualClock
) -> None:
    with anyio.CancelScope() as scope:
        async with a_broker(store, clock) as broker, anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(broker.post, [post("a", "b", str(number))])
            await anyio.lowlevel.checkpoint()
            scope.cancel()
    async with a_broker(store, clock) as broker:
        assert len(await take_all(await broker.connect("b"), 5)) == 5


async def test_a_broker_that_is_cancelled_puts_back_what_was_in_hand(
    store: Store, clock: VirtualClock
) -> None:
    with anyio.CancelScope() as scope:
        async with a_broker(store, clock) as broker:
            await broker.post([post("a", "b", "in hand"), post("a", "b", "waits")])
            await (await broker.connect("b")).take(1)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    async with a_broker(store, clock) as broker:
        taken = await take_all(await broker.connect("b"), 2)
        assert [
            (text, each.redelivered) for text, each in zip(texts(taken), taken, strict=True)
        ] == [
            ("in hand", True),
            ("waits", False),
        ]


async def test_a_full_store_refuses_loses_nothing_and_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    limits = StoreLimits(max_bytes=600_000)
    sent = acknowledged = 0
    async with (
        await Store.open(tmp_path / "s.db", limits=limits) as store,
        EmbeddedBroker.open(store, clock=SystemClock()) as broker,
    ):
        inbox = await broker.connect("b", window=10_000)
        refused = False
        kept = []
        while not refused:
            try:
                await broker.post([post("a", "b", f"{sent} " + "x" * 2000)])
                kept.append(sent)
            except StoreFull:
                refused = True
            sent += 1
        parcels: list[Parcel] = []
        while len(parcels) < len(kept):
            parcels += await inbox.take(100)
        assert [int(text.split()[0]) for text in texts(parcels)] == kept
        await store.transact(lambda tx: tx.execute("PRAGMA max_page_count = 100000"))
        acknowledged = await inbox.settle([each.number for each in parcels], Settlement.TAKEN)
        assert acknowledged == len(kept) == sent - 1
        await broker.post([post("a", "b", "again")])
        assert texts(await take_all(inbox, 1)) == ["again"]


async def test_what_cannot_be_acknowledged_on_a_full_disk_comes_again(tmp_path: Path) -> None:
    clock = VirtualClock(jumps=False)
    limits = StoreLimits(max_bytes=600_000)
    async with (
        await Store.open(tmp_path / "s.db", limits=limits, clock=clock) as store,
        a_broker(store, clock) as broker,
    ):
        await broker.post([post("a", "b", "m")])
        inbox = await broker.connect("b")
        (parcel,) = await inbox.take(1)

        def fill(unit: Unit) -> None:
            unit.transaction.append("s", "k", bytes(1_000_000))

        async def ack() -> None:
            with pytest.raises(StoreFull):
                await inbox.settle([parcel.number], Settlement.TAKEN)

        async def fill_up() -> None:
            with pytest.raises(StoreFull):
                await broker.transact(fill)

        async with anyio.create_task_group() as group:  # both in one batch
            group.start_soon(fill_up)
            group.start_soon(ack)
        await clock.advance(31)
        (again,) = await take_all(inbox, 1)
        assert again.redelivered
        assert again.number == parcel.number


# -- what is urgent --------------------------------------------------------------------------------


def numbers_of(outcomes: Sequence[Outcome]) -> list[int]:
    return [number for each in outcomes if isinstance(each, Receipt) for number in each.numbers]


@asynccontextmanager
async def busy_writer(broker: EmbeddedBroker, store: Store) -> AsyncIterator[None]:
    """Keep the writer from writing until the block ends."""
    # What the broker wrote when it was opened must not stand behind what is held here.
    await broker.commits.work(lambda _: None)
    free = threading.Event()
    held = store.submit(lambda _: free.wait())
    try:
        yield
    finally:
        free.set()
        await asyncio.wrap_future(held)


@pytest.mark.req("H2")
async def test_an_urgent_message_waits_for_the_batch_being_written_and_for_no_other(
    broker: EmbeddedBroker, store: Store
) -> None:
    def a_batch(of: int, **fields: Any) -> asyncio.Future[list[Outcome]]:
        return broker.commits.post([post("a", "b", **fields) for _ in range(of)])

    async with busy_writer(broker, store):  # with the batch being written
        flood = [a_batch(40) for _ in range(5)]
        await anyio.lowlevel.checkpoint()
        urgent = a_batch(1, priority=9)
        before = store.statistics().commits
    (number,) = numbers_of(await urgent)
    floods = [numbers_of(await each) for each in flood]
    assert number < min(map(min, floods))
    assert sorted(map(min, floods)) == list(map(min, floods)), "the others keep their order"
    # The held one with the urgent one, and the flood in short batches.
    assert store.statistics().commits - before >= 4


async def test_what_comes_while_a_batch_is_written_needs_no_word_of_the_loop_to_be_written_next(
    broker: EmbeddedBroker, store: Store
) -> None:
    async with busy_writer(broker, store):
        first = broker.commits.post([post("a", "b", "1")])
        for _ in range(5):  # it is handed to the writer, who has not come to it
            await anyio.lowlevel.checkpoint()
        second = broker.commits.post([post("a", "b", "2")])
        taken = broker.commits.take_over([])
        before = store.statistics().commits
    assert numbers_of(await first) < numbers_of(await second)
    await taken
    assert store.statistics().commits - before <= 2, "the held one, and one for all of it"


@pytest.mark.req("H2")
async def test_a_flood_of_urgent_messages_holds_up_the_others_for_one_batch_at_most(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[set[int]] = []
    fill = broker.commits._fill

    def noted() -> Any:
        chosen = fill()
        batches.append({post.band for step in chosen.postings for post in step.posts})
        return chosen

    monkeypatch.setattr(broker.commits, "_fill", noted)
    urgent: list[asyncio.Future[Sequence[Outcome]]] = []
    over = anyio.Event()

    async def pour() -> None:
        while not over.is_set() and len(urgent) < 5_000:
            one = post("a", "b", priority=10)
            urgent.append(asyncio.ensure_future(broker.post([one])))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(pour)
        while len(urgent) < 5:
            await anyio.lowlevel.checkpoint()
        before = len(batches)
        await broker.post([post("a", "b")])
        over.set()
    own = next(
        index for index, bands in enumerate(batches) if min(bands, default=TOP_BAND) < TOP_BAND
    )
    assert own <= before + 2, "one that is being filled, one that goes ahead, and its own"
    await asyncio.gather(*urgent)
