"""Calls to other agents: one, many at once, one after the other, and to everybody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import DeadlineExceeded, TaskFailed, ValidationError
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.blocking import blocking
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.connecting import connect
from agentcanvas.hub.conversations import Call, Client
from agentcanvas.hub.events import EventKind
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.transports.memory import dialing
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Kind, StatusResponse
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, events, message, of_kind

pytestmark = [pytest.mark.anyio, pytest.mark.req("H3")]


def a_worker(name: str, clock: VirtualClock, busy: list[int] | None = None) -> Agent:
    """Make an agent that adds, sleeps or fails."""
    agent = Agent(name, max_parallel=100)

    @agent.task("add one")
    async def add_one(task: Task) -> object:
        return task.input + 1

    @agent.task("sleep")
    async def sleep(task: Task) -> object:
        if busy is not None:
            busy.append(busy[-1] + 1)
        await clock.sleep(task.input)
        if busy is not None:
            busy.append(busy[-1] - 1)
        return name

    @agent.task("fail")
    async def fail(task: Task) -> object:
        raise ValidationError("I never do.")

    return agent


@asynccontextmanager
async def a_team(
    store: Store, clock: VirtualClock, busy: list[int] | None = None
) -> AsyncIterator[tuple[Hub, Client]]:
    """Let two work, and a third ask."""
    async with (
        a_hub(store, clock) as hub,
        a_worker("b", clock, busy).working(dialing(hub, Principal("b")), clock),
        a_worker("c", clock, busy).working(dialing(hub, Principal("c")), clock),
        connect(dialing(hub, Principal("a")), "a", clock=clock) as client,
    ):
        yield hub, client


async def test_a_pipeline_hands_each_output_on_in_one_conversation(
    store: Store, clock: VirtualClock
) -> None:
    async with a_team(store, clock) as (_, client):
        stages = [Call(to=name, task_type="add one") for name in ("b", "c", "b")]
        result = await client.pipeline(stages, 1)
        assert result.output == 4
        assert [answer.output for answer in result.answers] == [2, 3, 4]
        sent = [
            each["envelope"]
            for each in await events(store, EventKind.MESSAGE)
            if each["envelope"]["kind"] == "task.assign"
        ]
        assert len({each["correlation_id"] for each in sent}) == 1
        assert [each.get("reply_to") for each in sent] == [None, sent[0]["id"], sent[1]["id"]]
        assert sent[1]["parent_task_id"] == sent[0]["body"]["task_id"]


async def test_a_pipeline_that_stops_keeps_what_it_has(store: Store, clock: VirtualClock) -> None:
    async with a_team(store, clock) as (_, client):
        stages = [
            Call(to="b", task_type="add one"),
            Call(to="c", task_type="fail"),
            Call(to="b", task_type="add one"),
        ]
        result = await client.pipeline(stages, 1)
        assert [answer.output for answer in result.answers] == [2]
        with pytest.raises(TaskFailed, match="I never do"):
            _ = result.output


@pytest.mark.req("L1")
async def test_a_gathering_has_partial_results_and_a_limit(
    store: Store, clock: VirtualClock
) -> None:
    busy = [0]
    async with a_team(store, clock, busy) as (_, client):
        calls = [
            *[Call(to="b", task_type="sleep", input=1) for _ in range(8)],
            Call(to="c", task_type="fail"),
            Call(to="c", task_type="sleep", input=500),
        ]
        result = await client.gather(calls, timeout_s=100)
        assert [answer.output for answer in result.answers] == ["b"] * 8
        assert [type(error) for error in result.errors] == [TaskFailed, DeadlineExceeded]
        assert isinstance(result.results[8], TaskFailed)
        assert max(busy) <= 5  # max_parallel of L1
        assert clock.monotonic() == pytest.approx(100)


async def test_a_gathering_may_be_wider_or_narrower(store: Store, clock: VirtualClock) -> None:
    for limit in (1, 3):
        busy = [0]
        async with (
            await Store.in_memory(clock=clock) as another,
            a_team(another, clock, busy) as (_, client),
        ):
            calls = [Call(to="b", task_type="sleep", input=1) for _ in range(6)]
            result = await client.gather(calls, max_parallel=limit)
            assert len(result.answers) == 6
            assert max(busy) == limit


async def test_a_survey_gathers_what_all_say_or_who_is_in_time(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, anyio.create_task_group() as group:
        async with connect(dialing(hub, Principal("a")), "a", clock=clock) as client:

            async def answer(name: str, started: anyio.Event, times: int) -> None:
                left = times

                async def reply(delivery: Delivery) -> None:
                    nonlocal left
                    await delivery.ack()
                    if left:
                        left -= 1
                        await delivery.connection.send(_reply(name, delivery.envelope))

                dial = dialing(hub, Principal(name))
                async with connect(dial, name, clock=clock, on_mail=reply):
                    started.set()
                    await anyio.sleep_forever()

            for name, times in (("b", 2), ("c", 1)):
                started = anyio.Event()
                group.start_soon(answer, name, started, times)
                await started.wait()
            survey = await client.survey("HOW_ARE_YOU", timeout_s=60)
            assert survey.asked == 2
            assert {each.sender.id for each in survey.answers} == {"b", "c"}
            assert clock.monotonic() < 1
            survey = await client.survey("AND_NOW", timeout_s=60)
            assert (survey.asked, [each.sender.id for each in survey.answers]) == (2, ["b"])
            assert clock.monotonic() == pytest.approx(60)
        group.cancel_scope.cancel()


def _reply(name: str, asked: Envelope) -> Envelope:
    return of_kind(
        Kind.STATUS_RESPONSE,
        name,
        asked.sender.id,
        StatusResponse(status="fine"),
        reply_to=asked.id,
        correlation_id=asked.correlation_id,
    )


@pytest.mark.req("D32")
async def test_a_call_without_a_timeout_has_five_minutes(store: Store, clock: VirtualClock) -> None:
    async with (
        a_hub(store, clock) as hub,
        connect(dialing(hub, Principal("a")), "a", clock=clock) as client,
    ):
        with pytest.raises((DeadlineExceeded, TaskFailed)):
            await client.request("b", "anything")
        assert clock.monotonic() == pytest.approx(300)


def test_a_script_without_an_event_loop_speaks_too() -> None:
    clock = SystemClock()

    @asynccontextmanager
    async def everything() -> AsyncIterator[Client]:
        agent = Agent("b")

        @agent.task("double")
        async def double(task: Task) -> object:
            return task.input * 2

        async with (
            await Store.in_memory(clock=clock) as store,
            EmbeddedBroker.open(store, clock=clock) as broker,
            Hub.open(broker, store, clock=clock) as hub,
        ):
            await hub.sessions.open("default", members=["a", "b"])
            async with (
                agent.working(dialing(hub, Principal("b")), clock),
                connect(dialing(hub, Principal("a")), "a", clock=clock) as client,
            ):
                yield client

    with blocking(everything) as client:
        assert client.request("b", "double", 21).output == 42
        assert client.status("b").status == "IDLE"
        gathered = client.gather([Call(to="b", task_type="double", input=n) for n in range(3)])
        assert [answer.output for answer in gathered.answers] == [0, 2, 4]
        assert client.pipeline([Call(to="b", task_type="double")] * 3, 1).output == 8
        with pytest.raises(TaskFailed):
            client.request("b", "double", None)
        assert client.send("b", "double", 1, task_id="t1").numbers
        assert client.broadcast("NEWS").numbers
        assert client.cancel("b", "t1").numbers
        assert client.abort("default").numbers


async def test_mail_that_nobody_wants_does_not_keep_answers_from_coming(
    store: Store, clock: VirtualClock
) -> None:
    async with a_team(store, clock) as (hub, client):
        for _ in range(200):  # several times what may be in hand at once
            await hub.send(Principal("c"), message("c", "a"))
            await client.send("b", "add one", 1)
        assert (await client.request("b", "add one", 1)).output == 2
        await clock.advance(60)
        assert [each.waiting for each in await hub.registry.listings()] == [0, 0, 0]
