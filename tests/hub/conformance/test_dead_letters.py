"""What cannot be delivered is given up in time, kept, and never lost unseen."""

from __future__ import annotations

import anyio
import anyio.abc
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import ErrorType, Overloaded, ValidationError
from agentcanvas.hub.broker import Broker, DeadLetter, Inbox, Parcel, Receipt, Settlement
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.router import to_one
from agentcanvas.protocol.kinds import Error, Kind
from tests.hub.conformance.conftest import STEADY
from tests.hub.conformance.harnesses import Harness
from tests.hub.helpers import message, of_kind, post, send, take_all, texts

pytestmark = [pytest.mark.anyio, pytest.mark.req("H2")]

TAKEN, HELD = Settlement.TAKEN, Settlement.HELD


@pytest.mark.req("D28", "C1")
async def test_an_agent_that_never_acknowledges_gets_it_four_times_and_then_it_is_a_dead_letter(
    harness: Harness, clock: VirtualClock
) -> None:
    async with harness.open(STEADY) as broker:
        sent = message("a", "b", "ignored")
        await broker.post([to_one(sent, "default", "b")])
        inbox = await broker.connect("b")
        seen = []
        for _ in range(4):
            (parcel,) = await inbox.take(1)
            seen.append((round(clock.monotonic(), 3), parcel.redelivered, parcel.tries))
        # 30 s to acknowledge, then pauses of 1, 2 and 4 s.
        assert seen == [(0.0, False, 0), (31.0, True, 1), (63.0, True, 2), (97.0, True, 3)]
        sender = await broker.connect("a")
        (told,) = await take_all(sender, 1)
        assert clock.monotonic() == pytest.approx(127.0)
        (dead,) = await broker.dead_letters()
        assert (dead.envelope, dead.recipient, dead.tries) == (sent, "b", 4)
        error = told.envelope.body
        assert isinstance(error, Error)
        assert error.error_code == "UNDELIVERABLE"
        assert error.original_message_id == sent.id
        assert broker.statistics().dead == 1


async def test_a_dead_letter_can_be_resent_and_then_is_none(broker: Broker) -> None:
    await send(broker, "late", timeout_ms=1000)
    inbox = await broker.connect("b")
    sender = await broker.connect("a")
    await take_all(sender, 1)
    (dead,) = await broker.dead_letters()
    await broker.resend(dead.number)
    (parcel,) = await inbox.take(1)
    assert texts([parcel]) == ["late"]
    assert parcel.redelivered
    await inbox.settle([parcel.number], TAKEN)
    assert await broker.dead_letters() == []
    with pytest.raises(ValidationError, match="no dead letter"):
        await broker.resend(dead.number)


async def test_errors_that_cannot_be_delivered_cause_no_further_errors(
    broker: Broker, clock: VirtualClock
) -> None:
    await send(broker, "m", timeout_ms=1000)
    await broker.connect("a")  # gets the notice and never acknowledges it
    await clock.advance(3600)
    inbox = await broker.connect("a")
    with anyio.move_on_after(0):
        await inbox.take(1)
    await clock.advance(3600)
    assert broker.statistics().posted == 2


async def test_an_error_that_an_agent_sent_in_vain_is_not_answered_by_another(
    broker: Broker, clock: VirtualClock
) -> None:
    body = Error(error_type=ErrorType.EXECUTION, error_code="X", error_message="x")
    error = of_kind(Kind.ERROR, "a", "b", body, timeout_ms=1000)
    await broker.post([to_one(error, "default", "b")])
    await clock.advance(2)
    assert len(await broker.dead_letters()) == 1
    assert broker.statistics().posted == 1


async def test_dead_letters_make_room_and_resent_ones_take_it(
    harness: Harness, clock: VirtualClock
) -> None:
    async with harness.open(DeliveryRules(inbox=1, jitter=0)) as broker:
        await send(broker, "dies", timeout_ms=1000)
        await clock.advance(2)
        await send(broker, "fits")
        (dead,) = await broker.dead_letters()
        with pytest.raises(Overloaded, match="resend the letter later"):
            await broker.resend(dead.number)
        inbox = await broker.connect("b")
        assert texts(await take_all(inbox, 1)) == ["fits"]
        await broker.resend(dead.number)
        (refused,) = await broker.post([post("a", "b")])
        assert isinstance(refused, Overloaded)
        assert texts(await take_all(inbox, 1)) == ["dies"]


async def test_a_deleted_dead_letter_is_gone_but_its_id_is_remembered(broker: Broker) -> None:
    first = post("a", "b", "late", timeout_ms=1000)
    await broker.post([first])
    await take_all(await broker.connect("a"), 1)  # the notice
    (dead,) = await broker.dead_letters()
    await broker.delete(dead.number)
    assert list(await broker.dead_letters()) == []
    for again in (broker.delete, broker.resend):
        with pytest.raises(ValidationError, match="no dead letter"):
            await again(dead.number)
    (outcome,) = await broker.post([first])
    assert isinstance(outcome, Receipt)
    assert outcome.repeated


async def test_dead_letters_are_listed_in_pages(broker: Broker, clock: VirtualClock) -> None:
    await send(broker, *(f"m{n}" for n in range(5)), timeout_ms=1000)
    await clock.advance(2)
    first = await broker.dead_letters(limit=2)
    rest = await broker.dead_letters(after=first[-1].number)
    assert len(first) == 2
    assert len(rest) == 3
    assert sorted(dead.number for dead in (*first, *rest)) == [
        dead.number for dead in (*first, *rest)
    ]


@pytest.mark.req("D28", "C1")
async def test_a_message_that_kills_its_agent_every_time_is_given_up(
    harness: Harness, clock: VirtualClock
) -> None:
    async with harness.open(STEADY) as broker:
        await send(broker, "poison", "innocent", "innocent too")
        seen: list[str] = []
        for _ in range(6):  # it dies whenever it is handed the poison
            inbox = await broker.connect("b")
            alive = True
            while alive and len(seen) < 20:
                parcels = await inbox.take(8)
                seen += texts(parcels)
                alive = "poison" not in texts(parcels)
                if alive:
                    await inbox.settle([parcel.number for parcel in parcels], TAKEN)
                    if "innocent too" in texts(parcels):
                        break
            await inbox.close()
            if alive:
                break
        assert seen.count("poison") == 4  # 1 + 3
        (dead,) = await broker.dead_letters()
        assert texts([_parcel(dead)]) == ["poison"]
        assert "went away each time" in dead.reason
        assert broker.statistics().taken >= 2


@pytest.mark.req("D28")
async def test_a_message_that_kills_the_hub_every_time_is_given_up_too(
    harness: Harness, clock: VirtualClock
) -> None:
    handed_out = 0
    for life in range(8):
        async with harness.open(STEADY) as broker:
            if life == 0:
                await send(broker, "poison", "innocent")
            inbox = await broker.connect("b", window=1)
            (parcel,) = await inbox.take(1)
            if texts([parcel]) == ["innocent"]:
                await inbox.settle([parcel.number], TAKEN)
                assert len(await broker.dead_letters()) == 1
                break
            handed_out += 1
            assert parcel.redelivered == (life > 0)
            await harness.crash()
    assert handed_out == 4


async def test_those_that_were_never_handed_out_do_not_die_with_the_hub(harness: Harness) -> None:
    texts_sent = [f"m{n}" for n in range(30)]
    for life in range(6):
        async with harness.open(STEADY) as broker:
            if life == 0:
                await send(broker, *texts_sent)
            inbox = await broker.connect("b", window=4)
            if life < 5:
                if life < 3:
                    await inbox.take(4)
                await harness.crash()
                continue
            assert texts(await take_all(inbox, 30)) == texts_sent
            assert list(await broker.dead_letters()) == []


@pytest.mark.req("D28")
async def test_an_agent_that_says_it_lives_may_come_back_as_often_as_it_likes(
    broker: Broker,
) -> None:
    await send(broker, "long work")
    for _ in range(20):  # a bad network, and a client that knows what it has in hand
        inbox = await broker.connect("b")
        (parcel,) = await inbox.take(1)
        await inbox.settle([parcel.number], HELD)
        await inbox.close()
    inbox = await broker.connect("b")
    (parcel,) = await inbox.take(1)
    assert await inbox.settle([parcel.number], TAKEN) == 1
    assert list(await broker.dead_letters()) == []


@pytest.mark.req("D28", "D36")
async def test_one_instance_that_says_it_lives_may_come_back_beside_another(
    broker: Broker,
) -> None:
    await broker.connect("b", instance="idle")  # it keeps the inbox open, and takes nothing
    await send(broker, "long work")
    for _ in range(20):
        inbox = await broker.connect("b", instance="busy")
        (parcel,) = await inbox.take(1)
        await inbox.settle([parcel.number], HELD)
        await inbox.close()
    assert list(await broker.dead_letters()) == []


async def test_a_resent_letter_has_all_its_tries_again(broker: Broker, clock: VirtualClock) -> None:
    await send(broker, "poison")
    for resends in range(2):
        for _ in range(4):
            inbox = await broker.connect("b")
            await inbox.take(1)
            await inbox.close()
        sender = await broker.connect("a")
        inbox = await broker.connect("b")
        with pytest.raises(TimeoutError):
            await _take_for_a_second(inbox, clock)
        await take_all(sender, 1)
        await inbox.close()
        (dead,) = await broker.dead_letters()
        if resends == 0:
            await broker.resend(dead.number)


async def _take_for_a_second(inbox: Inbox, clock: VirtualClock) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_give_up, clock, group)
        await inbox.take(1)
    raise TimeoutError


async def _give_up(clock: VirtualClock, group: anyio.abc.TaskGroup) -> None:
    await clock.sleep(1)
    group.cancel_scope.cancel()


def _parcel(dead: DeadLetter) -> Parcel:
    return Parcel(dead.number, dead.session, dead.envelope)
