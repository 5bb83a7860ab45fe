"""A member at work, over a real hub: what it says on the way, and that it always says its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import UNSET

from agentcanvas.agents.host import Host
from agentcanvas.agents.orders import Member
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Turn, TurnResult, answered
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StoreFull
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.client import Connection, Conversation, Delivery
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.transports.memory import connect
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import (
    AgentStatus,
    Kind,
    TaskAssign,
    TaskCancel,
    TaskProgress,
    TaskResult,
)
from agentcanvas.protocol.records import ResultEvent, TextEvent, ToolCallEvent
from agentcanvas.protocol.turns import Order, Report, report_in
from agentcanvas.protocol.values import freeze
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.store import Store
from tests.agents.conftest import RUN, Acting, Events

pytestmark = [pytest.mark.anyio, pytest.mark.req("H8", "D40")]

ENGINE = Principal(f"engine:{RUN}", PrincipalKind.ENGINE)
Act = Callable[[Turn, Emit], Awaitable[Any]]


class Office:
    """Who gives a host its tasks, and hears what comes of them."""

    def __init__(self, hub: Hub, store: Store, connection: Connection, clock: VirtualClock) -> None:
        self.hub = hub
        self.store = store
        self.clock = clock
        self.connection = connection

    def task(self, turn_id: str = "i1/ask:1", *, attempt: int = 1) -> Envelope:
        order = Order(message="Do it.", turn_id=turn_id, run_id=RUN, attempt=attempt)
        return Envelope(
            id=new_id(),
            kind=Kind.TASK_ASSIGN,
            time=self.clock.now(),
            sender=AgentRef(ENGINE.id),
            recipient=AgentRef("coder-1"),
            session=RUN,
            body=TaskAssign(task_id=f"{turn_id}.a{attempt}", input=freeze(order)),
        )

    def converse(self, task: Envelope) -> Any:
        return self.connection.converse(task)

    async def request(self, task: Envelope) -> tuple[Kind, TaskResult, Report]:
        return await ended(await self.connection.request(task))

    def status(self) -> AgentStatus | None:
        """What the hub knows of the host."""
        card = self.hub.presence.card("coder-1")
        assert card is not None
        return card.status

    async def cancel(self, task: Envelope, reason: str) -> None:
        await self.connection.send(
            Envelope(
                id=new_id(),
                kind=Kind.TASK_CANCEL,
                time=self.clock.now(),
                sender=AgentRef(ENGINE.id),
                recipient=AgentRef("coder-1"),
                session=RUN,
                body=TaskCancel(target_id=task.id, reason=reason),
            )
        )


async def ended(delivery: Delivery) -> tuple[Kind, TaskResult, Report]:
    """The end of a task, taken over."""
    await delivery.ack()
    body = delivery.envelope.body
    assert isinstance(body, TaskResult)
    return delivery.envelope.kind, body, report_in(body)


async def next_of(conversation: Conversation) -> Delivery:
    """The next answer, taken over."""
    delivery = await anext(conversation)
    await delivery.ack()
    return delivery


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that stands still until a test moves it."""
    return VirtualClock(jumps=False)


@pytest.fixture
async def office(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Office]:
    async with (
        await Store.open(tmp_path / "agentcanvas.db", clock=clock) as store,
        EmbeddedBroker.open(store, clock=clock) as broker,
        Hub.open(broker, store, clock=clock) as hub,
    ):
        await hub.sessions.open(RUN, members=["coder-1"], owner=ENGINE.id)
        async with connect(hub, ENGINE) as connection:
            yield Office(hub, store, connection, clock)


@asynccontextmanager
async def at_work(office: Office, tmp_path: Path, act: Act, **more: Any) -> AsyncIterator[Events]:
    """A host that does what a test tells it to; gives its transcript."""
    said = Events()
    async with (
        connect(office.hub, Principal("coder-1")) as connection,
        anyio.create_task_group() as tasks,
    ):
        host = Host(
            Member(id="coder-1", **more),
            Acting(act),
            connection,
            workspace=tmp_path,
            confinement=Unconfined(),
            clock=office.clock,
            keep=said,
        )
        tasks.start_soon(host.serve)
        yield said
        tasks.cancel_scope.cancel()


class Held:
    """A turn that goes on until the test lets it end."""

    def __init__(self, say: str = "Done.") -> None:
        self.begun = anyio.Event()
        self.go_on = anyio.Event()
        self.turns: list[Turn] = []
        self._say = say

    async def __call__(self, turn: Turn, _emit: Emit) -> TurnResult:
        self.turns.append(turn)
        self.begun.set()
        await self.go_on.wait()
        return answered(turn, self._say)


async def quick(turn: Turn, emit: Emit) -> TurnResult:
    return answered(turn, "Done.")


# -- signs of life --------------------------------------------------------------------------------


async def test_a_turn_that_takes_longer_than_a_second_is_accepted_then(
    office: Office, tmp_path: Path
) -> None:
    held = Held()
    async with at_work(office, tmp_path, held), office.converse(office.task()) as conversation:
        await held.begun.wait()
        await office.clock.advance(0.9)
        assert not conversation.arrived
        await office.clock.advance(0.1)
        assert (await next_of(conversation)).envelope.kind is Kind.TASK_ACCEPT
        held.go_on.set()
        kind, _, report = await ended(await anext(conversation))
        assert (kind, report.text) == (Kind.TASK_COMPLETE, "Done.")


@pytest.mark.req("D2", "D3")
async def test_a_quick_turn_is_taken_over_and_answered_in_one_commit(
    office: Office, tmp_path: Path
) -> None:
    held = Held()
    async with at_work(office, tmp_path, held), office.converse(office.task()) as conversation:
        await held.begun.wait()
        before = office.store.statistics().commits
        held.go_on.set()
        delivery = await anext(conversation)
        assert delivery.envelope.kind is Kind.TASK_COMPLETE
        assert office.store.statistics().commits == before + 1
        await delivery.ack()
    waiting = await office.store.read(
        lambda look: look.one("SELECT count(*) FROM hub_letters WHERE state = 0")
    )
    assert waiting == (0,)


async def test_a_long_turn_tells_how_it_gets_on_every_30_s_after_two_minutes(
    office: Office, tmp_path: Path
) -> None:
    held = Held()

    async def act(turn: Turn, emit: Emit) -> TurnResult:
        emit(ToolCallEvent(name="pytest", **UNSTAMPED))
        return await held(turn, emit)

    async with (
        at_work(office, tmp_path, act, silent_s=None),
        office.converse(office.task()) as conversation,
    ):
        await held.begun.wait()
        await office.clock.advance(119)
        assert (await next_of(conversation)).envelope.kind is Kind.TASK_ACCEPT
        assert not conversation.arrived
        for seconds in (1, 30, 30):
            await office.clock.advance(seconds)
            told = (await next_of(conversation)).envelope.body
            assert isinstance(told, TaskProgress)
            assert (told.status, told.current_step) == ("in_progress", "pytest")
            assert not conversation.arrived
        held.go_on.set()
        assert (await ended(await anext(conversation)))[0] is Kind.TASK_COMPLETE


class Hindered:
    """A connection over which the first message of some kinds cannot be sent: a full disk, say."""

    def __init__(self, connection: Connection, *kinds: Kind) -> None:
        self._send = connection.send
        self.to_refuse = list(kinds)
        self.sent: list[Kind] = []

    async def __call__(self, envelope: Envelope, **more: Any) -> Any:
        if envelope.kind in self.to_refuse:
            self.to_refuse.remove(envelope.kind)
            raise StoreFull("The disk is full.")
        self.sent.append(envelope.kind)
        return await self._send(envelope, **more)


@pytest.mark.req("H8", "D28")
async def test_a_turn_goes_on_although_nobody_can_be_told_how(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hindered: list[Hindered] = []
    over = Connection.over

    @asynccontextmanager
    async def hindering(*arguments: Any) -> AsyncIterator[Connection]:
        async with over(*arguments) as connection:
            hindered.append(
                Hindered(connection, Kind.TASK_PROGRESS, Kind.TASK_ACCEPT, Kind.HEARTBEAT)
            )
            monkeypatch.setattr(connection, "send", hindered[0])
            yield connection

    monkeypatch.setattr(Connection, "over", hindering)
    held = Held()
    async with (
        at_work(office, tmp_path, held, silent_s=None),
        office.converse(office.task()) as conversation,
    ):
        await held.begun.wait()
        await office.clock.advance(200)
        assert hindered[0].to_refuse == []
        # Not taken over at first, the task came again: that is no other task, and it was accepted.
        assert hindered[0].sent.count(Kind.TASK_ACCEPT) == 1
        assert hindered[0].sent.count(Kind.TASK_PROGRESS) == 2
        held.go_on.set()
        while (said := await next_of(conversation)).envelope.kind is not Kind.TASK_COMPLETE:
            assert said.envelope.kind in (Kind.TASK_ACCEPT, Kind.TASK_PROGRESS)
    assert len(held.turns) == 1
    assert await office.store.read(
        lambda look: look.one("SELECT count(*) FROM hub_letters WHERE state = 0")
    ) == (0,)


@pytest.mark.req("L1")
async def test_a_heartbeat_every_30_s_says_whether_it_is_busy(
    office: Office, tmp_path: Path
) -> None:
    held = Held()
    async with at_work(office, tmp_path, held):
        await office.clock.advance(30)
        assert office.status() is AgentStatus.IDLE
        async with office.converse(office.task()) as conversation:
            await held.begun.wait()
            await office.clock.advance(30)
            assert office.status() is AgentStatus.BUSY
            held.go_on.set()
            await next_of(conversation)
            await next_of(conversation)
        await office.clock.advance(300)  # three missed beats would make it unavailable
        assert office.status() is AgentStatus.IDLE


# -- ends -----------------------------------------------------------------------------------------


@pytest.mark.req("H10")
async def test_a_cancelled_turn_ends_with_the_reason(office: Office, tmp_path: Path) -> None:
    held = Held()
    async with at_work(office, tmp_path, held):
        task = office.task()
        async with office.converse(task) as conversation:
            await held.begun.wait()
            await office.cancel(task, "changed my mind")
            kind, result, report = await ended(await anext(conversation))
            assert (kind, report.failure) == (Kind.TASK_FAIL, "cancelled")
            assert "changed my mind" in str(result.error_message)


@pytest.mark.req("H10")
async def test_a_cancelled_turn_that_waits_for_its_agent_never_begins(
    office: Office, tmp_path: Path
) -> None:
    held = Held()
    async with at_work(office, tmp_path, held):
        first, second = office.task("i1/ask:1"), office.task("i1/ask:2")
        async with office.converse(first) as one, office.converse(second) as two:
            await held.begun.wait()
            await office.clock.advance(2)
            for conversation in (one, two):
                assert (await next_of(conversation)).envelope.kind is Kind.TASK_ACCEPT
            await office.cancel(second, "not needed any more")
            await office.clock.advance(2)
            held.go_on.set()
            assert (await ended(await anext(one)))[0] is Kind.TASK_COMPLETE
            kind, result, _ = await ended(await anext(two))
            assert kind is Kind.TASK_FAIL
            assert "not needed any more" in str(result.error_message)
            assert [turn.turn_id for turn in held.turns] == ["i1/ask:1"]


@pytest.mark.req("D18")
async def test_a_newer_attempt_ends_the_older_one(office: Office, tmp_path: Path) -> None:
    held = Held()
    async with at_work(office, tmp_path, held):
        older, newer = office.task(attempt=1), office.task(attempt=2)
        async with office.converse(older) as first, office.converse(newer) as second:
            kind, result, _ = await ended(await anext(first))
            assert kind is Kind.TASK_FAIL
            assert "a newer attempt has begun" in str(result.error_message)
            held.go_on.set()
            assert (await ended(await anext(second)))[0] is Kind.TASK_COMPLETE
            assert [turn.attempt for turn in held.turns] == [1, 2]


async def test_turns_of_one_agent_run_one_after_the_other(office: Office, tmp_path: Path) -> None:
    at_once = [0]

    async def act(turn: Turn, emit: Emit) -> TurnResult:
        at_once.append(at_once[-1] + 1)
        await anyio.lowlevel.checkpoint()
        at_once.append(at_once[-1] - 1)
        return answered(turn, turn.turn_id)

    async with at_work(office, tmp_path, act), anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(office.request, office.task(f"i1/ask:{number}"))
    assert max(at_once) == 1


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (RuntimeError("boom"), "The runtime of coder-1 broke: RuntimeError: boom"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError"),
    ],
)
async def test_a_runtime_that_raises_still_ends_its_task_with_a_message(
    office: Office, tmp_path: Path, raised: Exception, told: str
) -> None:
    async def act(turn: Turn, emit: Emit) -> TurnResult:
        raise raised

    async with at_work(office, tmp_path, act) as said:
        kind, result, report = await office.request(office.task())
        assert (kind, report.failure) == (Kind.TASK_FAIL, "crash")
        assert told in str(result.error_message)
        assert "Traceback" not in str(result.error_message)
        kind, _, _ = await office.request(office.task("i1/ask:2"))  # it goes on
        assert kind is Kind.TASK_FAIL
        assert len(said) == 2


@pytest.mark.req("L1")
async def test_an_oversized_answer_is_shortened_and_whole_in_the_transcript(
    office: Office, tmp_path: Path
) -> None:
    async def act(turn: Turn, emit: Emit) -> TurnResult:
        return answered(turn, "begin" + "x" * 3_000_000 + "end")

    async with at_work(office, tmp_path, act) as said:
        kind, _, report = await office.request(office.task())
        assert kind is Kind.TASK_COMPLETE
        assert len(report.text) < 110_000
        assert report.text.startswith("begin")
        assert report.text.endswith("end")
        assert "characters left out" in report.text
        (whole,) = said.of(ResultEvent)
        assert len(whole.text) == 3_000_008


@pytest.mark.req("L1")
async def test_an_answer_that_cannot_be_sent_becomes_a_failure_that_says_so(
    office: Office, tmp_path: Path
) -> None:
    async def act(turn: Turn, emit: Emit) -> TurnResult:
        return answered(turn, "small", value={"blob": "x" * 2_000_000})

    async with at_work(office, tmp_path, act):
        kind, result, _ = await office.request(office.task())
        assert kind is Kind.TASK_FAIL
        assert str(result.error_message).startswith("The answer could not be sent: ")


async def test_text_that_is_no_unicode_ends_the_turn_and_not_the_agent(
    office: Office, tmp_path: Path
) -> None:
    async def act(turn: Turn, emit: Emit) -> TurnResult:
        if turn.turn_id == "i1/ask:1":
            return answered(turn, "\ud800", value={"a": "\udfff"})
        return answered(turn, "a\ud800b")

    async with at_work(office, tmp_path, act):
        kind, result, _ = await office.request(office.task("i1/ask:1"))
        assert kind is Kind.TASK_FAIL
        assert "not valid Unicode" in str(result.error_message)
        kind, _, report = await office.request(office.task("i1/ask:2"))
        assert (kind, report.text) == (Kind.TASK_COMPLETE, "a?b")


@pytest.mark.req("D32")
async def test_a_limit_of_time_ends_a_turn_as_timed_out(office: Office, tmp_path: Path) -> None:
    held = Held()

    async def act(turn: Turn, emit: Emit) -> TurnResult:
        emit(TextEvent(text="so far", **UNSTAMPED))
        return await held(turn, emit)

    async with (
        at_work(office, tmp_path, act, timeout_s=60.0),
        office.converse(office.task()) as conversation,
    ):
        await held.begun.wait()
        await office.clock.advance(60)
        assert (await next_of(conversation)).envelope.kind is Kind.TASK_ACCEPT
        kind, result, report = await ended(await anext(conversation))
        assert (kind, report.timed_out, report.text) == (Kind.TASK_FAIL, True, "so far")
        assert result.error_message == "coder-1 was not done after 60 s and was stopped."


async def test_a_stranger_without_an_order_is_answered_too(office: Office, tmp_path: Path) -> None:
    async with at_work(office, tmp_path, quick):
        task = office.task()
        plain = TaskAssign(task_id="plain", input=freeze("What is the time?"))
        stranger = Envelope(
            id=task.id,
            kind=task.kind,
            time=task.time,
            sender=task.sender,
            recipient=task.recipient,
            session=RUN,
            body=plain,
        )
        kind, result, _ = await office.request(stranger)
        assert (kind, result.task_id) == (Kind.TASK_COMPLETE, "plain")
        assert result.output is not UNSET
