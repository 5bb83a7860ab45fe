"""How mail comes and goes; lost, repeated and delivered are counted."""

from __future__ import annotations

from collections import Counter

import anyio
import anyio.lowlevel
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import Disconnected, IdReused, Overloaded, Replaced
from agentcanvas.hub.broker import Broker, Inbox, Receipt, Settlement
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.router import to_one
from agentcanvas.protocol.kinds import Kind
from tests.hub.conformance.conftest import STEADY
from tests.hub.conformance.harnesses import Harness
from tests.hub.helpers import assign, post, send, take_all, texts

pytestmark = [pytest.mark.anyio, pytest.mark.req("H2")]

TAKEN, FAILED, HELD = Settlement.TAKEN, Settlement.FAILED, Settlement.HELD


async def test_messages_of_one_sender_arrive_in_order_and_once(broker: Broker) -> None:
    await send(broker, *(f"m{n}" for n in range(300)))
    inbox = await broker.connect("b")
    taken = await take_all(inbox, 300)
    assert texts(taken) == [f"m{n}" for n in range(300)]
    assert not any(parcel.redelivered for parcel in taken)
    found = broker.statistics()
    assert (found.posted, found.delivered, found.redelivered, found.taken) == (300, 300, 0, 300)


async def test_mail_for_somebody_who_is_connected_arrives_while_it_waits(
    broker: Broker,
) -> None:
    inbox = await broker.connect("b")
    async with anyio.create_task_group() as group:
        group.start_soon(send, broker, "now")
        assert texts(await take_all(inbox, 1)) == ["now"]


async def test_nobody_gets_mail_of_others(broker: Broker) -> None:
    await send(broker, "for b")
    await send(broker, "for c", to="c")
    assert texts(await take_all(await broker.connect("c"), 1)) == ["for c"]
    assert texts(await take_all(await broker.connect("b"), 1)) == ["for b"]


@pytest.mark.req("M5", "D30", "C11")
async def test_a_repeat_is_acknowledged_again_and_delivered_once(broker: Broker) -> None:
    first = post("a", "b")
    outcomes = [*await broker.post([first, first]), *await broker.post([first])]
    assert [getattr(each, "repeated", None) for each in outcomes] == [False, True, True]
    inbox = await broker.connect("b")
    await take_all(inbox, 1)
    (again,) = await broker.post([first])
    assert isinstance(again, Receipt)
    assert again.repeated
    await send(broker, "next")
    assert texts(await take_all(inbox, 1)) == ["next"]
    assert broker.statistics().repeated == 3


@pytest.mark.req("M5", "D30", "C11")
async def test_the_same_id_with_other_content_is_refused(broker: Broker) -> None:
    first = post("a", "b", "one", id="id-1")
    other = post("a", "b", "two", id="id-1")
    kept, refused = await broker.post([first, other])
    assert isinstance(kept, Receipt)
    assert isinstance(refused, IdReused)
    assert "give each message its own id" in str(refused)
    (later,) = await broker.post([other])
    assert isinstance(later, IdReused)


@pytest.mark.req("C11", "D30")
async def test_the_same_id_of_another_sender_or_session_is_another_message(
    broker: Broker,
) -> None:
    outcomes = await broker.post(
        [
            post("a", "b", "1", id="id-1"),
            post("c", "b", "2", id="id-1"),
            post("a", "b", "3", id="id-1", in_session="run-1"),
        ]
    )
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)
    assert sorted(texts(await take_all(await broker.connect("b"), 3))) == ["1", "2", "3"]


@pytest.mark.req("D30")
async def test_ids_are_forgotten_after_a_day_but_never_what_waits(
    harness: Harness, clock: VirtualClock
) -> None:
    async with harness.open(STEADY) as broker:
        taken, waiting = post("a", "b"), post("a", "nobody")
        await broker.post([taken, waiting])
        await take_all(await broker.connect("b"), 1)
        await clock.advance(23 * 3600)
        assert [getattr(each, "repeated", None) for each in await broker.post([taken])] == [True]
        await clock.advance(3 * 3600)
        outcomes = await broker.post([taken, waiting])
        assert [getattr(each, "repeated", None) for each in outcomes] == [False, True]


@pytest.mark.req("L1", "H11")
async def test_a_full_inbox_refuses_and_loses_nothing(
    harness: Harness, clock: VirtualClock
) -> None:
    async with harness.open(DeliveryRules(inbox=10, jitter=0)) as broker:
        outcomes = await broker.post([post("flood", "b", str(n)) for n in range(25)])
        kinds = Counter(type(outcome) for outcome in outcomes)
        assert kinds == {Receipt: 10, Overloaded: 15}
        refused = outcomes[10]
        assert isinstance(refused, Overloaded)
        assert refused.code == "OVERLOADED"
        await send(broker, "others go on", to="c")
        inbox = await broker.connect("b")
        assert texts(await take_all(inbox, 4)) == ["0", "1", "2", "3"]
        retried = await broker.post([post("flood", "b", str(n)) for n in range(10, 16)])
        assert Counter(type(outcome) for outcome in retried) == {Receipt: 4, Overloaded: 2}
        assert len(await take_all(inbox, 10)) == 10
        assert broker.statistics().refused == 17


def test_an_inbox_holds_ten_thousand_by_default() -> None:
    assert DeliveryRules().inbox == 10_000


async def test_an_acknowledgement_of_somebody_elses_mail_changes_nothing(
    broker: Broker,
) -> None:
    await send(broker, "for b")
    b, c = await broker.connect("b"), await broker.connect("c")
    (parcel,) = await b.take(1)
    assert await c.settle([parcel.number], TAKEN) == 0
    assert await c.settle([parcel.number], FAILED) == 0
    assert await b.settle([parcel.number], TAKEN) == 1


@pytest.mark.req("D28")
async def test_an_agent_that_dies_midway_gets_it_again_flagged_and_without_a_try_lost(
    broker: Broker, clock: VirtualClock
) -> None:
    await send(broker, *(f"m{n}" for n in range(10)))
    inbox = await broker.connect("b")
    first = await inbox.take(6)
    await inbox.settle([parcel.number for parcel in first[:2]], TAKEN)
    await inbox.close()
    await clock.advance(3600)
    again = await take_all(await broker.connect("b"), 8)
    assert texts(again) == [f"m{n}" for n in range(2, 10)]
    assert [parcel.redelivered for parcel in again] == [True] * 4 + [False] * 4
    assert {parcel.tries for parcel in again} == {0}
    assert await broker.dead_letters() == []


async def test_what_could_not_be_taken_over_comes_again_after_a_pause(
    broker: Broker, clock: VirtualClock
) -> None:
    await send(broker, "no")
    inbox = await broker.connect("b")
    for pause in (0, 1, 2, 4):
        before = clock.monotonic()
        (parcel,) = await inbox.take(1)
        assert clock.monotonic() - before == pytest.approx(pause)
        assert await inbox.settle([parcel.number], FAILED) == 1
    (dead,) = await broker.dead_letters()
    assert dead.reason == "its recipient could not take it over"


async def test_who_asks_for_patience_is_waited_for(broker: Broker, clock: VirtualClock) -> None:
    await send(broker, "slow")
    inbox = await broker.connect("b")
    (parcel,) = await inbox.take(1)
    for _ in range(10):
        await clock.advance(25)
        assert await inbox.settle([parcel.number], HELD) == 1
    assert await inbox.settle([parcel.number], TAKEN) == 1
    assert broker.statistics().delivered == 1


@pytest.mark.req("D29")
async def test_a_message_in_back_off_holds_back_only_its_own_lane(broker: Broker) -> None:
    inbox = await broker.connect("b")
    await send(broker, "stuck")
    (stuck,) = await inbox.take(1)
    await inbox.settle([stuck.number], FAILED)
    await send(broker, "behind it")
    await send(broker, "another band", priority=9)
    await broker.post([post("c", "b", "another sender")])
    await send(broker, "another session", in_session="run-1")
    taken = await take_all(inbox, 3)
    assert set(texts(taken)) == {"another band", "another sender", "another session"}
    assert texts(await take_all(inbox, 2)) == ["stuck", "behind it"]


@pytest.mark.req("D29")
async def test_a_higher_band_goes_first_and_each_30_s_of_waiting_lifts_by_one(
    broker: Broker, clock: VirtualClock
) -> None:
    inbox = await broker.connect("b", window=100)
    await send(broker, "low, waits", priority=1)
    await clock.advance(29)
    await send(broker, "medium", priority=5)
    await clock.advance(2)
    await send(broker, "medium, later", priority=5)
    await send(broker, "critical", priority=10)
    order = texts(await take_all(inbox, 4))
    assert order == ["critical", "medium", "low, waits", "medium, later"]


async def test_a_window_bounds_what_is_in_somebodys_hands(broker: Broker) -> None:
    await send(broker, *(f"m{n}" for n in range(5)))
    inbox = await broker.connect("b", window=2)
    held = await inbox.take(5)
    assert texts(held) == ["m0", "m1"]
    with anyio.move_on_after(0):
        await inbox.take(1)
        pytest.fail("more than fits was handed out")
    await inbox.settle([held[0].number], TAKEN)
    assert texts(await inbox.take(5)) == ["m2"]


@pytest.mark.req("D28")
async def test_mail_for_somebody_who_is_away_waits_until_it_expires(
    harness: Harness, clock: VirtualClock
) -> None:
    async with harness.open(STEADY) as broker:
        await send(broker, "patient")
        await broker.post([to_one(assign("a", "b", "t1", timeout_ms=60_000), "default", "b")])
        await clock.advance(59.9)
        assert await broker.dead_letters() == []
        await clock.advance(0.1)
        (dead,) = await broker.dead_letters()
        assert dead.reason == "nobody took it over before it expired"
        (told,) = await take_all(await broker.connect("a"), 1)
        assert told.envelope.kind is Kind.ERROR
        await clock.advance(7 * 24 * 3600)
        inbox = await broker.connect("b")
        assert texts(await take_all(inbox, 1)) == ["patient"]


@pytest.mark.req("D36")
async def test_a_second_connection_ends_the_first_unless_instances_differ(
    broker: Broker,
) -> None:
    first = await broker.connect("b")
    await send(broker, "in the hands of the first")
    await first.take(1)
    second = await broker.connect("b")
    with pytest.raises(Disconnected, match="has taken the place"):
        await first.take(1)
    (parcel,) = await take_all(second, 1)
    assert parcel.redelivered


@pytest.mark.req("D36")
async def test_of_several_connections_that_come_at_once_the_last_is_left(broker: Broker) -> None:
    first = await broker.connect("b")
    async with anyio.create_task_group() as group:
        come: list[Inbox] = []

        async def connect() -> None:
            come.append(await broker.connect("b"))

        group.start_soon(connect)
        group.start_soon(connect)
    await send(broker, "for whoever is left")
    for replaced in (first, come[0]):
        with pytest.raises(Replaced):
            await replaced.take(1)
    assert texts(await take_all(come[1], 1)) == ["for whoever is left"]


@pytest.mark.req("D36")
async def test_instances_share_one_inbox(broker: Broker) -> None:
    one = await broker.connect("b", instance="1")
    two = await broker.connect("b", instance="2")
    await send(broker, "m0", "m1", "m2")
    first = await one.take(1)
    rest = await two.take(5)
    assert sorted(texts([*first, *rest])) == ["m0", "m1", "m2"]
    await one.close()
    (again,) = await two.take(5)
    assert texts([again]) == texts(first)
    assert again.redelivered


async def test_who_waits_on_a_connection_that_is_closed_is_told(broker: Broker) -> None:
    inbox = await broker.connect("b")

    async def wait() -> None:
        with pytest.raises(Disconnected):
            await inbox.take(1)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        await inbox.close()
    with pytest.raises(Disconnected):
        await inbox.settle([1], TAKEN)
