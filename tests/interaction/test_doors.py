"""Agents of every dialect work together over every transport: what is promised holds for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from typing import Any

import anyio
import pytest
from msgspec import UNSET

from agentcanvas.clock import SystemClock
from agentcanvas.errors import (
    AgentCanvasError,
    AgentNotFound,
    IdReused,
    PermissionDenied,
    TaskFailed,
    TaskRejected,
)
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.connecting import connect
from agentcanvas.hub.conversations import Call, Client
from agentcanvas.hub.journal import ListJournal
from agentcanvas.hub.reconnecting import BackOff, Reconnecting
from agentcanvas.hub.recovery import WithSuggestions
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Broadcast, Kind, RejectReason, StatusResponse
from tests.hub.helpers import message, text_of
from tests.interaction.floor import WAYS, Floor, Way

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
SOON = BackOff(first_s=0.01, attempts=3)
# Every transport with every other and every dialect with every other, in a third of all pairs.
PAIRS = [
    pytest.param(ours, theirs, id=f"{ours}-to-{theirs}")
    for (i, ours), (j, theirs) in product(enumerate(WAYS), enumerate(WAYS))
    if (i // 3 + i + j // 3 + j) % 3 == 0
]
EACH = [pytest.param(way, id=str(way)) for way in WAYS]
OTHER = Way("websocket", DialectName.MAC)
VALUE: dict[str, Any] = {
    "text": 'quotes " and \\ and\nlines, ünïcödé, 日本語, 🎉',
    "numbers": [0, -1, 1.5, 2**53 - 1, 1e-7],
    "nothing": None,
    "yes": True,
    "nested": {"delivery": {"number": 7}, "": []},
}


class Room:
    """Two agents in a session: one who asks, one who works."""

    def __init__(self, floor: Floor, session: str, names: list[str]) -> None:
        self.floor = floor
        self.session = session
        self.asker, self.worker = names

    @asynccontextmanager
    async def client(self, way: Way, **more: Any) -> AsyncIterator[Client]:
        dial = await self.floor.dial(self.asker, way)
        async with connect(dial, self.asker, session=self.session, back_off=SOON, **more) as client:
            yield client

    @asynccontextmanager
    async def working(self, agent: Agent, way: Way) -> AsyncIterator[None]:
        dial = await self.floor.dial(agent.name, way)
        async with agent.working(dial, back_off=SOON):
            yield

    @asynccontextmanager
    async def connection(
        self, name: str, way: Way, *, window: int = 64
    ) -> AsyncIterator[Connection]:
        line = Reconnecting(await self.floor.dial(name, way, window=window), CLOCK, back_off=SOON)
        await line.open()
        async with Connection.over(line, CLOCK) as connection:
            yield connection

    def message(self, text: str = "hello", **fields: Any) -> Envelope:
        return message(self.asker, self.worker, text, session=self.session, **fields)


@pytest.fixture
async def room(floor: Floor) -> Room:
    return Room(floor, *await floor.session("asker", "worker"))


def a_worker(name: str) -> Agent:
    """Make an agent that does a little of everything."""
    agent = Agent(name, capabilities=["everything"])

    @agent.task("echo")
    async def echo(task: Task) -> object:
        return task.input

    @agent.task("reject")
    async def reject(task: Task) -> object:
        task.reject(RejectReason.CAPABILITY_MISMATCH, ["somebody"], message="not mine")

    @agent.task("fail")
    async def fail(task: Task) -> object:
        raise ZeroDivisionError("a detail that is nobody's business")

    @agent.task("wait")
    async def wait(task: Task) -> None:
        await task.progress(10, "waiting")
        await anyio.sleep_forever()

    return agent


async def received(connection: Connection, number: int) -> list[Delivery]:
    """Wait for so many deliveries and take them over."""
    found = []
    async for delivery in connection.receive():
        found.append(delivery)
        await delivery.ack()
        if len(found) == number:
            break
    return found


@pytest.mark.req("H1", "H3", "M1", "W1", "W2", "W3")
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
async def test_a_task_and_its_result_cross_from_any_way_to_any_other(
    room: Room, ours: Way, theirs: Way
) -> None:
    async with room.working(a_worker(room.worker), theirs), room.client(ours) as client:
        answer = await client.request(room.worker, "echo", VALUE)
        assert answer.output == VALUE
        assert answer.envelope.sender.id == room.worker


@pytest.mark.req("H2")
@pytest.mark.parametrize("way", EACH)
async def test_messages_of_one_sender_arrive_in_order(room: Room, way: Way) -> None:
    async with (
        room.connection(room.asker, way) as ours,
        room.connection(room.worker, way) as theirs,
    ):
        for number in range(10):
            await ours.send(room.message(str(number)))
        found = await received(theirs, 10)
        assert [text_of(each.envelope) for each in found] == [str(each) for each in range(10)]


@pytest.mark.req("H2", "D29")
@pytest.mark.parametrize("way", EACH)
async def test_the_urgent_comes_first(room: Room, way: Way) -> None:
    async with room.connection(room.asker, way) as ours:
        for priority in (1, 5, 7, 9):
            await ours.send(room.message(str(priority), priority=priority))
        async with room.connection(room.worker, way, window=1) as theirs:
            found = await received(theirs, 4)
        assert [text_of(each.envelope) for each in found] == ["9", "7", "5", "1"]


@pytest.mark.req("D28", "H2")
@pytest.mark.parametrize("way", EACH)
async def test_what_was_given_back_comes_again_and_says_so(room: Room, way: Way) -> None:
    async with (
        room.connection(room.asker, way) as ours,
        room.connection(room.worker, way) as theirs,
    ):
        await ours.send(room.message())
        mail = theirs.receive()
        first = await anext(mail)
        assert not first.redelivered
        await first.nack()
        again = await anext(mail)
        assert again.redelivered
        assert (again.number, again.parcel.tries) == (first.number, 1)
        assert await again.ack()
        assert not await again.ack()


@pytest.mark.req("D28", "H1")
@pytest.mark.parametrize("way", EACH)
async def test_what_was_in_hand_when_an_agent_left_waits_for_it(room: Room, way: Way) -> None:
    async with room.connection(room.asker, way) as ours:
        for text in ("one", "two"):
            await ours.send(room.message(text))
        async with room.connection(room.worker, way) as theirs:
            mail = theirs.receive()
            await (await anext(mail)).ack()
            await anext(mail)
        async with room.connection(room.worker, way) as theirs:
            (again,) = await received(theirs, 1)
        assert (text_of(again.envelope), again.redelivered) == ("two", True)


@pytest.mark.req("M5", "C11")
@pytest.mark.parametrize("way", EACH)
async def test_a_repeat_is_delivered_once_and_another_message_is_refused(
    room: Room, way: Way
) -> None:
    async with (
        room.connection(room.asker, way) as ours,
        room.connection(room.worker, way) as theirs,
    ):
        once = room.message("one")
        assert not (await ours.send(once)).repeated
        assert (await ours.send(once)).repeated
        with pytest.raises(IdReused):
            await ours.send(room.message("another", id=once.id))
        await ours.send(room.message("two"))
        found = await received(theirs, 2)
        assert [text_of(each.envelope) for each in found] == ["one", "two"]


@pytest.mark.req("H3", "H2")
@pytest.mark.parametrize("way", EACH)
async def test_a_broadcast_reaches_everybody_as_a_copy_of_its_own(floor: Floor, way: Way) -> None:
    session, (asker, *others) = await floor.session("asker", "one", "two", "three")
    room = Room(floor, session, [asker, others[0]])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(room.client(way))
        lines = [
            await stack.enter_async_context(room.connection(name, other))
            for name, other in zip(others, WAYS[::4], strict=False)
        ]
        await client.broadcast("SYSTEM_SHUTDOWN", "soon", {"in_s": 30})
        copies = [(await received(line, 1))[0].envelope for line in lines]
        assert len({copy.id for copy in copies}) == len(others)
        for copy in copies:
            assert isinstance(copy.body, Broadcast)
            assert (copy.body.event, copy.body.message) == ("SYSTEM_SHUTDOWN", "soon")


@pytest.mark.req("H3")
@pytest.mark.parametrize("way", EACH)
async def test_pipelines_and_gatherings(room: Room, way: Way) -> None:
    worker = a_worker(room.worker)

    @worker.task("more")
    async def more(task: Task) -> object:
        return {"n": task.input["n"] + 1}

    async with room.working(worker, way), room.client(way) as client:
        calls = [Call(to=room.worker, task_type="more")] * 3
        line = await client.pipeline(calls, {"n": 0})
        assert line.output == {"n": 3}
        threads = {answer.envelope.correlation_id for answer in line.answers}
        assert len(threads) == 1
        mixed = [Call(to=room.worker, task_type=each) for each in ("echo", "fail", "reject")]
        gathered = await client.gather(mixed)
        assert len(gathered.answers) == 1
        assert {type(error) for error in gathered.errors} == {TaskFailed, TaskRejected}


@pytest.mark.req("H9", "H11", "H8")
@pytest.mark.parametrize("way", EACH)
async def test_a_fault_ends_the_task_and_tells_no_detail(room: Room, way: Way) -> None:
    async with room.working(a_worker(room.worker), OTHER), room.client(way) as client:
        with pytest.raises(TaskFailed) as failed:
            await client.request(room.worker, "fail", "x")
        assert "nobody's business" not in str(failed.value)
        assert "ZeroDivisionError" in str(failed.value)


@pytest.mark.req("H4")
@pytest.mark.parametrize("way", EACH)
async def test_a_rejected_task_goes_to_the_one_who_was_suggested(floor: Floor, way: Way) -> None:
    session, (asker, busy, free) = await floor.session("asker", "busy", "free")
    room = Room(floor, session, [asker, busy])
    agent = Agent(busy)

    @agent.task("echo")
    async def send_on(task: Task) -> object:
        task.reject(RejectReason.OVERLOADED, [free], message="ask another")

    journal = ListJournal()
    async with (
        room.working(agent, OTHER),
        room.working(a_worker(free), way),
        room.client(way, wrap=lambda line: WithSuggestions(line, journal=journal)) as client,
    ):
        answer = await client.request(busy, "echo", "x")
        assert answer.envelope.sender.id == free


@pytest.mark.req("H10", "H8")
@pytest.mark.parametrize("way", EACH)
async def test_a_task_reports_and_can_be_stopped(room: Room, way: Way) -> None:
    async with (
        room.working(a_worker(room.worker), OTHER),
        room.client(way) as client,
    ):
        call = client.message(Call(to=room.worker, task_type="wait", input="x", task_id="t-1"))
        kinds = []
        async with client.connection.converse(call) as conversation:
            async for delivery in conversation:
                kinds.append(delivery.envelope.kind)
                await delivery.ack()
                if delivery.envelope.kind is Kind.TASK_PROGRESS:
                    await client.cancel(room.worker, "t-1", "enough")
                if delivery.envelope.kind in (Kind.TASK_COMPLETE, Kind.TASK_FAIL):
                    break
        assert kinds[:2] == [Kind.TASK_ACCEPT, Kind.TASK_PROGRESS]


@pytest.mark.req("H3", "H1")
@pytest.mark.parametrize("way", EACH)
async def test_an_agent_tells_how_it_is(room: Room, way: Way) -> None:
    async with room.working(a_worker(room.worker), way), room.client(way) as client:
        status = await client.status(room.worker)
        assert isinstance(status, StatusResponse)
        card = room.floor.hub.hub.presence.card(room.worker)
        assert card is not None
        assert "everything" in card.capabilities


@pytest.mark.req("H11", "H6", "M2")
@pytest.mark.parametrize("way", EACH)
async def test_refusals_are_the_same_errors_everywhere(room: Room, way: Way) -> None:
    wrong: list[tuple[Envelope, type[AgentCanvasError], str]] = [
        (
            message(room.asker, "nobody", session=room.session),
            AgentNotFound,
            "Agent not found: nobody",
        ),
        (message("other", room.worker, session=room.session), PermissionDenied, "cannot send as"),
        (room.message("x" * 1_048_576), AgentCanvasError, "bytes"),
    ]
    async with room.connection(room.asker, way) as ours:
        for envelope, kind, sentence in wrong:
            with pytest.raises(kind, match=sentence):
                await ours.send(envelope)
        assert (await ours.send(room.message())).numbers


@pytest.mark.req("H6")
@pytest.mark.parametrize("way", [each for each in EACH if "memory" not in str(each.id)])
async def test_a_wrong_token_is_refused_at_once(room: Room, way: Way) -> None:
    async def wrong(agent: str) -> str:
        return (await Floor.token(room.floor, "somebody-else"))[:-2] + "xx"

    room.floor.token = wrong  # type: ignore[method-assign]
    try:
        dial = await room.floor.dial(room.asker, way)
    finally:
        del room.floor.token
    with pytest.raises(PermissionDenied, match="wrong or revoked"):
        await Reconnecting(dial, CLOCK).open()


@pytest.mark.req("M4")
@pytest.mark.parametrize("way", EACH)
async def test_a_conversation_keeps_its_thread(room: Room, way: Way) -> None:
    async with (
        room.connection(room.asker, way) as ours,
        room.connection(room.worker, way) as theirs,
    ):
        first = room.message("one", correlation_id="thread-1")
        await ours.send(first)
        (came,) = await received(theirs, 1)
        assert (came.envelope.correlation_id, came.session) == ("thread-1", room.session)
        await theirs.send(
            message(room.worker, None, "two", reply_to=first.id, correlation_id="thread-1")
        )
        (back,) = await received(ours, 1)
        assert (back.envelope.reply_to, back.session) == (first.id, room.session)
        assert back.envelope.correlation_id is not UNSET
