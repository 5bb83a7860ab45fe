"""Agents written with the SDK: every task ends once, whatever its handler does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import ExecutionError, TaskFailed, TaskRejected, ValidationError
from agentcanvas.hub.agent import Agent, Shift, Task
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.connecting import connect
from agentcanvas.hub.conversations import Call, Client
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.events import EventKind
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.transports.memory import dialing
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import (
    AgentStatus,
    Broadcast,
    CancelScope,
    Kind,
    TaskAssign,
    TaskCancel,
    TaskProgress,
    TaskResult,
)
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, events, of_kind

pytestmark = [pytest.mark.anyio, pytest.mark.req("H3", "H8")]


@asynccontextmanager
async def at_work(
    store: Store, clock: VirtualClock, agent: Agent
) -> AsyncIterator[tuple[Hub, Client, Shift]]:
    """Let an agent work, and somebody ask it."""
    async with (
        a_hub(store, clock, members=["me", "worker", "other"]) as hub,
        agent.working(dialing(hub, Principal(agent.name)), clock) as shift,
        connect(dialing(hub, Principal("me")), "me", clock=clock) as me,
    ):
        yield hub, me, shift


async def said_by(store: Store, agent: str = "worker") -> list[str]:
    """List the kinds of messages that an agent sent, in order."""
    found = await events(store, EventKind.MESSAGE)
    return [each["envelope"]["kind"] for each in found if each["envelope"]["sender"]["id"] == agent]


ENDS = {"task.complete", "task.fail", "task.reject"}


async def ends(store: Store) -> int:
    return sum(kind in ENDS for kind in await said_by(store))


async def test_a_handler_is_accepted_for_and_its_result_is_sent(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("double")
    async def double(task: Task) -> object:
        await task.progress(50, "thinking")
        return {"twice": task.input["number"] * 2}

    async with at_work(store, clock, agent) as (hub, me, _):
        answer = await me.request("worker", "double", {"number": 21})
        assert answer.output == {"twice": 42}
        assert not answer.partial
        assert await said_by(store) == ["task.accept", "task.progress", "task.complete"]
        assert hub.broker.statistics().in_flight == 0


async def test_a_quick_task_is_accepted_too(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker")

    @agent.task()
    async def anything(task: Task) -> object:
        return task.assignment.task_type

    async with at_work(store, clock, agent) as (_, me, _):
        assert (await me.request("worker", "whatever")).output == "whatever"
        assert await said_by(store) == ["task.accept", "task.complete"]


@pytest.mark.req("H9", "H11")
async def test_an_unforeseen_error_ends_the_task_without_internal_detail(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("fail")
    async def fail(task: Task) -> object:
        raise KeyError("/home/somebody/.ssh")

    async with at_work(store, clock, agent) as (_, me, _):
        with pytest.raises(TaskFailed, match="KeyError") as caught:
            await me.request("worker", "fail")
        assert caught.value.error_code == "EXECUTION_ERROR"
        assert "somebody" not in str(caught.value)
        assert await ends(store) == 1


async def test_an_error_of_ours_is_told_as_it_is(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker")

    @agent.task("fail")
    async def fail(task: Task) -> object:
        raise ValidationError("The number is missing; send one.")

    async with at_work(store, clock, agent) as (_, me, _):
        with pytest.raises(TaskFailed, match="send one") as caught:
            await me.request("worker", "fail")
        assert not caught.value.retry_possible


@pytest.mark.req("H4")
async def test_a_rejection_names_others_and_is_the_only_end(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("draw")
    async def draw(task: Task) -> object:
        try:
            task.reject("OVERLOADED", ["other"])
        except Exception:  # noqa: BLE001 - a handler may do so
            return "drawn after all"

    async with at_work(store, clock, agent) as (_, me, _):
        with pytest.raises(TaskRejected) as caught:
            await me.request("worker", "draw")
        assert caught.value.reason == "OVERLOADED"
        assert caught.value.suggested_agents == ("other",)
        assert await said_by(store) == ["task.reject"]


async def test_a_task_without_a_handler_is_rejected(store: Store, clock: VirtualClock) -> None:
    async with at_work(store, clock, Agent("worker")) as (_, me, _):
        with pytest.raises(TaskRejected, match="no handler for draw"):
            await me.request("worker", "draw")


async def test_the_first_of_two_ends_counts(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker")
    second: list[bool] = []

    @agent.task("twice")
    async def twice(task: Task) -> object:
        await task.complete("first", partial=True)
        second.append(await task.complete("second"))
        await task.progress(10)
        return "third"

    async with at_work(store, clock, agent) as (_, me, _):
        answer = await me.request("worker", "twice")
        assert (answer.output, answer.partial) == ("first", True)
        assert second == [False]
        assert await said_by(store) == ["task.accept", "task.complete"]


@pytest.mark.parametrize("value", [object(), {1j}, float])
async def test_a_result_that_is_no_json_ends_the_task_as_failed(
    store: Store, clock: VirtualClock, value: object
) -> None:
    agent = Agent("worker")

    @agent.task("odd")
    async def odd(task: Task) -> object:
        return value

    async with at_work(store, clock, agent) as (_, me, _):
        with pytest.raises(TaskFailed, match="no JSON"):
            await me.request("worker", "odd")


async def test_a_result_that_is_too_large_is_replaced_by_a_reason(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("large")
    async def large(task: Task) -> object:
        return "x" * 1_100_000

    async with at_work(store, clock, agent) as (_, me, _):
        with pytest.raises(TaskFailed, match="could not be sent") as caught:
            await me.request("worker", "large")
        assert caught.value.error_code == "MESSAGE_TOO_LARGE"
        assert await ends(store) == 1


async def test_a_task_that_takes_too_long_ends_in_time(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker")

    @agent.task("sleep")
    async def sleep(task: Task) -> object:
        task.partial = "half"
        await clock.sleep(10_000)
        return "late"

    async with at_work(store, clock, agent) as (_, me, _):
        asked = of_kind(
            Kind.TASK_ASSIGN,
            "me",
            "worker",
            TaskAssign(task_id="t1", task_type="sleep"),
            timeout_ms=5_000,
        )
        answer = await me.connection.request(asked, timeout_s=60)
        assert clock.monotonic() == pytest.approx(5)
        body = answer.envelope.body
        assert isinstance(body, TaskResult)
        assert (body.status, body.error_code, body.output) == ("timeout", "TIMEOUT", freeze("half"))


@pytest.mark.req("L1")
async def test_a_long_task_speaks_up_every_30_s_after_two_minutes(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("long")
    async def long(task: Task) -> object:
        await task.progress(7, "digging")
        await clock.sleep(200)
        return "done"

    async with at_work(store, clock, agent) as (_, me, _):
        said: list[tuple[float, Any]] = []
        asked = me.message(Call(to="worker", task_type="long", timeout_s=600))
        async with me.connection.converse(asked, timeout_s=600) as conversation:
            async for delivery in conversation:
                await delivery.ack()
                body = delivery.envelope.body
                if isinstance(body, TaskProgress):
                    said.append((round(clock.monotonic()), body.progress))
                if isinstance(body, TaskResult):
                    break
        assert said == [(0, 7.0), (120, 7.0), (150, 7.0), (180, 7.0)]


@pytest.mark.req("L1")
async def test_heartbeats_tell_load_and_capabilities(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker", capabilities=["python"], max_parallel=2)

    @agent.task("wait", cacheable=True)
    async def wait(task: Task) -> object:
        await clock.sleep(100)
        return None

    async with at_work(store, clock, agent) as (hub, me, shift):
        await clock.advance(1)
        card = hub.presence.card("worker")
        assert card is not None
        assert card.status is AgentStatus.IDLE
        assert card.capabilities == ("python", "wait", "cacheable:wait")
        for _ in range(3):
            await me.send("worker", "wait")
        await clock.advance(31)
        card = hub.presence.card("worker")
        assert card is not None
        assert (card.status, card.load) == (AgentStatus.BUSY, 1.0)
        assert (card.tasks_running, card.tasks_queued) == (2, 1)
        assert (shift.running, shift.queued) == (2, 1)
        await clock.advance(200)
        assert await ends(store) == 3


@pytest.mark.req("H10")
async def test_a_cancelled_task_stops_keeps_its_part_and_ends_once(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")
    cleaned: list[object] = []

    @agent.task("dig")
    async def dig(task: Task) -> object:
        try:
            await clock.sleep(1000)
        finally:
            task.partial = {"metres": 3}
            assert task.cancelled is not None
            cleaned.append(task.cancelled.cleanup_required)
        return "never"

    async with at_work(store, clock, agent) as (_, me, _), anyio.create_task_group() as group:

        async def ask() -> None:
            with pytest.raises(TaskFailed, match="enough") as caught:
                await me.request("worker", "dig", task_id="t1", timeout_s=900)
            assert caught.value.error_code == "CANCELLED"
            assert not caught.value.retry_possible

        group.start_soon(ask)
        await clock.advance(5)
        await me.cancel("worker", "t1", "enough", cleanup_required=True)
        await clock.advance(5)
        assert cleaned == [True]
        found = await events(store, EventKind.MESSAGE)
        assert [e["envelope"]["body"].get("output") for e in found][-1] == {"metres": 3}
        assert await ends(store) == 1


@pytest.mark.req("H10", "D29")
async def test_a_cancellation_that_overtakes_its_task_still_counts(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")
    began: list[str] = []

    @agent.task("dig")
    async def dig(task: Task) -> object:
        began.append(task.id)
        return None

    async with at_work(store, clock, agent) as (_, me, _):
        await me.cancel("worker", "t1", "changed my mind")
        await clock.advance(1)
        with pytest.raises(TaskFailed, match="changed my mind"):
            await me.request("worker", "dig", task_id="t1")
        assert began == []


@pytest.mark.req("H10", "D26")
async def test_nobody_stops_a_task_of_somebody_else(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker")

    @agent.task("dig")
    async def dig(task: Task) -> object:
        await clock.sleep(60)
        return "dug"

    async with at_work(store, clock, agent) as (hub, me, _):
        await me.send("worker", "dig", task_id="t1")
        heard: list[str] = []

        async def listen(delivery: Delivery) -> None:
            heard.append(delivery.envelope.kind)
            await delivery.ack()

        async with connect(
            dialing(hub, Principal("other")), "other", clock=clock, on_mail=listen
        ) as other:
            await other.cancel("worker", "t1", "sabotage")
            await clock.advance(1)
        assert heard == ["error"]
        await clock.advance(61)
        assert (await said_by(store))[-1] == "task.complete"


@pytest.mark.req("H10")
async def test_an_abort_of_a_session_stops_everything_in_it(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("dig")
    async def dig(task: Task) -> object:
        await clock.sleep(60)
        return "dug"

    async with at_work(store, clock, agent) as (hub, me, _):
        engine = Principal("engine:run-1", PrincipalKind.ENGINE)
        await hub.sessions.open("run-1", members=["worker", "me"], owner=engine.id)
        for task in ("t1", "t2"):
            await me.send("worker", "dig", task_id=task, session="run-1")
        await me.send("worker", "dig", task_id="t3")
        await clock.advance(5)
        body = TaskCancel(scope=CancelScope.SESSION, target_id="run-1", reason="stop")
        await hub.send(
            engine, of_kind(Kind.TASK_CANCEL, engine.id, "broadcast", body, session="run-1")
        )
        await clock.advance(60)
        in_run = [
            each["envelope"]["kind"]
            for each in await events(store, EventKind.MESSAGE, "run-1")
            if each["envelope"]["sender"]["id"] == "worker"
        ]
        assert in_run.count("task.fail") == 2
        assert (await said_by(store))[-1] == "task.complete"


async def test_an_agent_that_goes_home_says_what_it_leaves_undone(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("dig")
    async def dig(task: Task) -> object:
        await clock.sleep(10_000)
        return None

    async with (
        a_hub(store, clock, members=["me", "worker"]) as hub,
        connect(dialing(hub, Principal("me")), "me", clock=clock) as me,
    ):
        async with agent.working(dialing(hub, Principal("worker")), clock):
            await me.send("worker", "dig", timeout_s=20_000)
            await clock.advance(5)
        await clock.advance(1)
        assert await said_by(store) == ["task.accept", "task.fail"]


async def test_status_queries_are_answered_meanwhile(store: Store, clock: VirtualClock) -> None:
    agent = Agent("worker")

    @agent.task("dig")
    async def dig(task: Task) -> object:
        await task.progress(40)
        await clock.sleep(60)
        return None

    async with at_work(store, clock, agent) as (_, me, _):
        await me.send("worker", "dig", task_id="t1")
        await clock.advance(1)
        found = await me.status("worker", task_id="t1")
        assert (found.status, found.progress) == ("RUNNING", 40.0)
        assert (await me.status("worker", task_id="t9")).status == "UNKNOWN"
        assert (await me.status("worker")).status == "ACTIVE"


async def test_a_handler_may_ask_others(store: Store, clock: VirtualClock) -> None:
    front, back = Agent("worker"), Agent("other")

    @front.task("ask on")
    async def ask_on(task: Task) -> object:
        return (await task.client.request("other", "echo", task.input)).output

    @back.task("echo")
    async def echo(task: Task) -> object:
        return task.input

    async with (
        at_work(store, clock, front) as (hub, me, _),
        back.working(dialing(hub, Principal("other")), clock),
    ):
        assert (await me.request("worker", "ask on", "hello")).output == "hello"


async def test_listeners_hear_broadcasts_and_their_faults_stay_with_them(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")
    heard: list[str] = []

    @agent.on(Kind.BROADCAST)
    async def listen(envelope: Envelope) -> None:
        assert isinstance(envelope.body, Broadcast)
        heard.append(envelope.body.event)
        raise ExecutionError("oh no")

    @agent.task("echo")
    async def echo(task: Task) -> object:
        return task.input

    async with at_work(store, clock, agent) as (_, me, _):
        await me.broadcast("SYSTEM_SHUTDOWN")
        await me.broadcast("ONCE_MORE")
        assert (await me.request("worker", "echo", 1)).output == 1
        assert heard == ["SYSTEM_SHUTDOWN", "ONCE_MORE"]


async def test_the_end_of_a_task_waits_for_room_in_a_full_inbox(
    store: Store, clock: VirtualClock
) -> None:
    agent = Agent("worker")

    @agent.task("dig")
    async def dig(task: Task) -> object:
        return "dug"

    async with a_hub(
        store, clock, members=["me", "worker"], rules=DeliveryRules(inbox=1, jitter=0)
    ) as hub:
        me = Principal("me")
        await hub.send(me, of_kind(Kind.TASK_ASSIGN, "me", "worker", _assignment("t1")))
        async with agent.working(dialing(hub, Principal("worker")), clock):
            await clock.advance(5)  # the accept fills the inbox
            link = await hub.connect(me)
            kinds: list[str] = []
            async with Connection.over(link, clock) as connection:
                async for delivery in connection.receive():
                    await delivery.ack()
                    kinds.append(delivery.envelope.kind)
                    if len(kinds) == 2:
                        break
            assert kinds == ["task.accept", "task.complete"]


def _assignment(task: str) -> TaskAssign:
    return TaskAssign(task_id=task, task_type="dig")


def test_two_handlers_for_one_task_are_a_mistake() -> None:
    agent = Agent("worker")
    agent.task("x")(_nothing)
    with pytest.raises(ValidationError, match="already"):
        agent.task("x")(_nothing)


async def _nothing(task: Task) -> object:
    return None
