"""Speaking over a connection: requests and their answers, time-outs, and the end of it."""

from __future__ import annotations

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import AgentNotFound, DeadlineExceeded, Disconnected
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.client import Connection
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.transports.memory import connect
from agentcanvas.protocol.kinds import Broadcast, Error, Kind, StatusResponse, TaskAccept
from agentcanvas.store import Store
from tests.hub.helpers import (
    a_hub,
    assign,
    complete,
    message,
    of_kind,
    progress,
    text_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("H3")]

A, B = Principal("a"), Principal("b")


async def work_on_one_task(connection: Connection, *, reply: bool = True) -> None:
    """Take a task over, say how it goes, and end it."""
    async for delivery in connection.receive():
        asked = delivery.envelope
        assert asked.task_id is not None
        await delivery.ack()
        answers = {"reply_to": asked.id} if reply else {}
        accept = of_kind(Kind.TASK_ACCEPT, "b", "a", TaskAccept(task_id=asked.task_id), **answers)
        await connection.send(accept)
        await connection.send(progress("b", "a", asked.task_id, **answers))
        await connection.send(complete("b", "a", asked.task_id, **answers))
        return


@pytest.mark.parametrize("reply", [True, False])
async def test_a_request_returns_the_final_answer(
    store: Store, clock: VirtualClock, reply: bool
) -> None:
    async with (
        a_hub(store, clock) as hub,
        connect(hub, A) as a,
        connect(hub, B) as b,
        anyio.create_task_group() as group,
    ):
        group.start_soon(lambda: work_on_one_task(b, reply=reply))
        answer = await a.request(assign("a", "b", "t1"), timeout_s=60)
        assert answer.envelope.kind is Kind.TASK_COMPLETE
        assert await answer.ack()
        assert not await answer.ack()
        assert hub.broker.statistics().in_flight == 0


async def test_mail_that_nobody_waits_for_does_not_keep_answers_from_coming(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A, window=2) as a:
        await hub.send(B, message("b", "a", "before anybody says what is expected"))
        a.expect_only(lambda envelope: envelope.correlation_id == "c")
        for number in range(3):
            task = f"t{number}"
            asked = assign("a", "b", task)
            async with a.converse(asked):
                await hub.send(B, progress("b", "a", task, reply_to=asked.id))
            await hub.send(B, complete("b", "a", task, reply_to=asked.id))
            await hub.send(B, message("b", "a", "hello"))
        await hub.send(B, message("b", "a", "something else", correlation_id="c"))
        delivery = await anext(a.receive())
        assert text_of(delivery.envelope) == "something else"
        await delivery.ack()
        assert hub.broker.statistics().in_flight == 0


async def test_a_conversation_hears_every_answer(store: Store, clock: VirtualClock) -> None:
    async with (
        a_hub(store, clock) as hub,
        connect(hub, A) as a,
        connect(hub, B) as b,
        anyio.create_task_group() as group,
    ):
        group.start_soon(work_on_one_task, b)
        kinds = []
        async with a.converse(assign("a", "b", "t1")) as conversation:
            async for delivery in conversation:
                await delivery.ack()
                kinds.append(delivery.envelope.kind)
                if delivery.envelope.kind is Kind.TASK_COMPLETE:
                    break
        assert kinds == [Kind.TASK_ACCEPT, Kind.TASK_PROGRESS, Kind.TASK_COMPLETE]


async def test_many_requests_at_once_get_their_own_answers(
    store: Store, clock: VirtualClock
) -> None:
    async def echo(b: Connection) -> None:
        async for delivery in b.receive():
            asked = delivery.envelope
            assert asked.task_id is not None
            await b.send(complete("b", "a", asked.task_id, reply_to=asked.id))
            await delivery.ack()

    async with a_hub(store, clock) as hub, connect(hub, A) as a, connect(hub, B) as b:
        async with anyio.create_task_group() as group:
            group.start_soon(echo, b)

            async def ask(number: int, inner: anyio.abc.TaskGroup) -> None:
                answer = await a.request(assign("a", "b", f"t{number}"), timeout_s=600)
                assert answer.envelope.task_id == f"t{number}"
                await answer.ack()

            async with anyio.create_task_group() as askers:
                for number in range(200):
                    askers.start_soon(ask, number, askers)
            group.cancel_scope.cancel()
        found = hub.broker.statistics()
        assert (found.taken, found.redelivered, found.dead) == (400, 0, 0)


async def test_answers_to_a_broadcast_come_together(store: Store, clock: VirtualClock) -> None:
    async def answer(name: str, connection: Connection) -> None:
        async for delivery in connection.receive():
            asked = delivery.envelope
            body = StatusResponse(status=name)
            await connection.send(
                of_kind(
                    Kind.STATUS_RESPONSE,
                    name,
                    "a",
                    body,
                    reply_to=asked.id,
                    correlation_id=asked.correlation_id,
                )
            )
            await delivery.ack()
            return

    async with (
        a_hub(store, clock) as hub,
        connect(hub, A) as a,
        connect(hub, B) as b,
        connect(hub, Principal("c")) as c,
        anyio.create_task_group() as group,
    ):
        group.start_soon(answer, "b", b)
        group.start_soon(answer, "c", c)
        said = set()
        asked = of_kind(Kind.BROADCAST, "a", "broadcast", Broadcast(event="HOW_ARE_YOU"))
        async with a.converse(asked, timeout_s=60) as conversation:
            async for delivery in conversation:
                assert isinstance(delivery.envelope.body, StatusResponse)
                said.add(delivery.envelope.body.status)
                await delivery.ack()
                if len(said) == 2:
                    break
        assert said == {"b", "c"}


@pytest.mark.req("D32")
async def test_a_request_that_nobody_answers_ends_in_time(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A) as a:
        with pytest.raises(DeadlineExceeded, match="No answer from b"):
            await a.request(assign("a", "b", "t1"), timeout_s=300)
        assert clock.monotonic() == pytest.approx(300)


@pytest.mark.req("D31")
async def test_a_request_that_cannot_be_delivered_is_answered_by_the_hub(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A) as a:
        answer = await a.request(assign("a", "b", "t1", timeout_ms=5_000))
        assert isinstance(answer.envelope.body, Error)
        assert answer.envelope.body.error_code == "UNDELIVERABLE"
        assert clock.monotonic() == pytest.approx(5)


async def test_what_the_hub_refuses_is_raised_as_it_is(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        with pytest.raises(AgentNotFound):
            async with connect(hub, A) as a:
                await a.send(message("a", "nobody"))


async def test_answers_that_nobody_waits_for_are_ordinary_mail(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A) as a, connect(hub, B) as b:
        with pytest.raises(DeadlineExceeded):
            await a.request(assign("a", "b", "t1"), timeout_s=1)
        await work_on_one_task(b)
        kinds = []
        async for delivery in a.receive():
            await delivery.ack()
            kinds.append(delivery.envelope.kind)
            if delivery.envelope.kind is Kind.TASK_COMPLETE:
                break
        assert kinds == [Kind.TASK_ACCEPT, Kind.TASK_PROGRESS, Kind.TASK_COMPLETE]


@pytest.mark.req("D2", "D3")
async def test_who_asks_in_a_transaction_and_starts_again_hears_the_answer_once_more(
    store: Store, clock: VirtualClock
) -> None:
    asked = assign("a", "b", "t1")
    async with a_hub(store, clock) as hub:
        broker = hub.broker
        assert isinstance(broker, EmbeddedBroker)
        post = await hub.prepare(A, asked)
        for life in range(2):
            async with connect(hub, A) as a:
                await clock.advance(1)  # in the second life the answer is here before the question
                async with a.converse(asked, timeout_s=60, send=False) as conversation:
                    receipt = await broker.transact(lambda unit: unit.put(post))
                    assert receipt.repeated == bool(life)
                    if not life:
                        async with connect(hub, B) as b:
                            await work_on_one_task(b)
                    kinds = []
                    async for delivery in conversation:
                        kinds.append((delivery.envelope.kind, delivery.redelivered))
                        if delivery.envelope.kind is Kind.TASK_COMPLETE:
                            break
            assert kinds == [
                (Kind.TASK_ACCEPT, bool(life)),
                (Kind.TASK_PROGRESS, bool(life)),
                (Kind.TASK_COMPLETE, bool(life)),
            ]


@pytest.mark.req("D28")
async def test_mail_that_nobody_has_looked_at_yet_is_not_given_up(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A) as a, connect(hub, B) as b:
        for number in range(3):
            await a.send(message("a", "b", f"m{number}"))
        seen = []
        async for delivery in b.receive():
            await delivery.ack()
            await clock.advance(600)  # ten minutes for each
            seen.append((text_of(delivery.envelope), delivery.redelivered))
            if len(seen) == 3:
                break
        assert seen == [("m0", False), ("m1", False), ("m2", False)]
        assert await hub.broker.dead_letters() == []


async def test_a_handler_that_asks_others_is_not_blocked_by_its_own_mail(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A) as a, connect(hub, B) as b:
        for number in range(5):
            await a.send(message("a", "b", f"m{number}"))

        async def answer() -> None:
            await work_on_one_task_as_a(a)

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            async for delivery in b.receive():
                await delivery.ack()
                reply = await b.request(assign("b", "a", "t1"), timeout_s=60)
                await reply.ack()
                break


async def work_on_one_task_as_a(connection: Connection) -> None:
    async for delivery in connection.receive():
        await delivery.ack()
        assert delivery.envelope.task_id is not None
        await connection.send(
            complete("a", "b", delivery.envelope.task_id, reply_to=delivery.envelope.id)
        )
        return


async def test_giving_a_delivery_back_brings_it_again(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub, connect(hub, A) as a, connect(hub, B) as b:
        await a.send(message("a", "b"))
        flags = []
        async for delivery in b.receive():
            flags.append(delivery.redelivered)
            if len(flags) == 2:
                await delivery.ack()
                break
            await delivery.nack()
        assert flags == [False, True]


@pytest.mark.req("D36")
async def test_whoever_is_replaced_is_told(store: Store, clock: VirtualClock) -> None:
    async def wait_for_mail(connection: Connection) -> None:
        with pytest.raises(Disconnected, match="has taken the place"):
            await anext(connection.receive())

    async def wait_for_an_answer(connection: Connection) -> None:
        with pytest.raises(Disconnected, match="has taken the place"):
            await connection.request(assign("b", "a", "t1"))

    async with (
        a_hub(store, clock) as hub,
        connect(hub, B) as first,
        anyio.create_task_group() as group,
    ):
        group.start_soon(wait_for_mail, first)
        group.start_soon(wait_for_an_answer, first)
        await clock.advance(1)
        async with connect(hub, B):
            pass


async def test_unfinished_mail_of_a_closed_connection_comes_again(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        async with connect(hub, A) as a:
            await a.send(message("a", "b"))
        await _look_without_taking(hub)
        async with connect(hub, B) as b:
            async for delivery in b.receive():
                assert delivery.redelivered
                break


async def _look_without_taking(hub: Hub) -> None:
    async with connect(hub, B) as b:
        async for _ in b.receive():
            break
