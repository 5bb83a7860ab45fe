"""Records: events and mail told beforehand, written together, each all or nothing (D3)."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import Overloaded, ValidationError
from agentcanvas.hub.broker import Record, Settlement
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.transports.memory import connect
from agentcanvas.protocol.kinds import Kind
from agentcanvas.store import Store
from agentcanvas.store.events import NewEvent
from tests.hub.helpers import a_broker, a_hub, assign, complete, post, take_all, texts

pytestmark = [pytest.mark.anyio, pytest.mark.req("D2", "D3")]


def event(text: str, stream: str = "run/r") -> NewEvent:
    return stream, "said", b'"%s"' % text.encode()


async def said(store: Store) -> list[str]:
    return [row.body.decode().strip('"') for row in await store.events(stream="run/r")]


async def test_a_record_keeps_its_events_its_message_and_what_it_takes_over(
    broker: EmbeddedBroker, store: Store
) -> None:
    await broker.post([post("b", "engine:r", "answer")])
    engine = await broker.connect("engine:r")
    (parcel,) = await engine.take(1)
    record = Record(
        events=(event("one"), event("two")), post=post("engine:r", "b"), taken=(parcel.number,)
    )
    await broker.record(record)
    assert await said(store) == ["one", "two"]
    assert texts(await take_all(await broker.connect("b"), 1)) == ["hello"]
    assert await engine.settle([parcel.number], Settlement.TAKEN) == 0, "it was taken over"


async def test_records_and_functions_of_one_moment_are_written_in_their_order(
    broker: EmbeddedBroker, store: Store
) -> None:
    await asyncio.gather(
        broker.record(Record(events=(event("1"),))),
        broker.record(Record(events=(event("2"),))),
        broker.submit(lambda unit: unit.transaction.append(*event("3"))),
        broker.record(Record(events=(event("4"),))),
    )
    assert await said(store) == ["1", "2", "3", "4"]


async def test_records_of_one_moment_share_a_commit(broker: EmbeddedBroker, store: Store) -> None:
    before = store.statistics().commits
    await asyncio.gather(*(broker.record(Record(events=(event("x"),))) for _ in range(50)))
    assert store.statistics().commits - before <= 2


async def test_a_refused_message_takes_its_own_record_with_it_and_no_other(
    store: Store, clock: VirtualClock
) -> None:
    async with a_broker(store, clock, DeliveryRules(inbox=1)) as broker:
        outcomes = await asyncio.gather(
            broker.record(Record(events=(event("1"),), post=post("a", "b"))),
            broker.record(Record(events=(event("2"),), post=post("a", "b"))),
            broker.record(Record(events=(event("3"),), post=post("a", "c"))),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), Overloaded, type(None)]
        assert await said(store) == ["1", "3"]


async def test_an_event_that_cannot_be_kept_refuses_its_own_record_and_no_other(
    broker: EmbeddedBroker, store: Store
) -> None:
    outcomes = await asyncio.gather(
        broker.record(Record(events=(event("1"),))),
        broker.record(Record(events=(event("2"), event("no stream", stream="")))),
        broker.record(Record(events=(event("3"),))),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), ValidationError, type(None)]
    assert await said(store) == ["1", "3"]


async def test_a_patient_record_goes_with_the_next_and_keeps_its_place(
    broker: EmbeddedBroker, store: Store
) -> None:
    await anyio.wait_all_tasks_blocked()
    await broker.record(Record())  # what the broker does when it opens is done by then
    before = store.statistics().commits
    patient = broker.record(Record(events=(event("patient"),)), patient=True)
    await asyncio.sleep(0)
    assert not patient.done()
    await broker.record(Record(events=(event("next"),)))
    assert patient.done()
    assert store.statistics().commits == before + 1
    assert await said(store) == ["patient", "next"]


async def test_a_patient_record_is_written_also_when_nothing_follows(
    broker: EmbeddedBroker, store: Store
) -> None:
    await broker.record(Record(events=(event("alone"),)), patient=True)
    assert await said(store) == ["alone"]


async def test_what_is_patient_is_written_before_the_end(store: Store, clock: VirtualClock) -> None:
    async with a_broker(store, clock) as broker:
        patient = broker.record(Record(events=(event("last"),)), patient=True)
    assert patient.done()
    assert await said(store) == ["last"]


async def test_an_answer_and_taking_its_question_over_share_a_commit(
    store: Store, clock: VirtualClock
) -> None:
    async with (
        a_hub(store, clock) as hub,
        connect(hub, Principal("a")) as a,
        connect(hub, Principal("b")) as b,
        a.converse(assign("a", "b", "t1"), timeout_s=60) as conversation,
    ):
        asked = await anext(b.receive())
        answer = complete("b", "a", "t1", reply_to=asked.envelope.id, session="default")
        before = store.statistics().commits
        await asked.answer(answer)
        assert store.statistics().commits == before + 1
        assert (await anext(conversation)).envelope.kind is Kind.TASK_COMPLETE
        assert not await asked.ack(), "it was taken over with its answer"


async def test_a_question_is_taken_over_also_when_its_answer_is_refused(
    store: Store, clock: VirtualClock
) -> None:
    async with (
        a_hub(store, clock) as hub,
        connect(hub, Principal("a")) as a,
        connect(hub, Principal("b")) as b,
    ):
        await a.send(assign("a", "b", "t1"))
        asked = await anext(b.receive())
        with pytest.raises(ValidationError):
            await asked.answer(complete("b", "nobody", "t1", reply_to=asked.envelope.id))
        assert not await asked.ack()
