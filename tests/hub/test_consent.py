"""What a person has to agree to: held, asked once, delivered or refused, also over a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.lowlevel
import msgspec
import pytest
from msgspec import UNSET

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import ErrorType, IdReused, NotApproved, StoreFull
from agentcanvas.hub.audit import EntryType, Trail
from agentcanvas.hub.broker import Parcel
from agentcanvas.hub.brokers.embedded import EmbeddedBroker, EmbeddedInbox
from agentcanvas.hub.doors import Admitted
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.notices import HUB
from agentcanvas.protocol.envelope import Envelope, Security
from agentcanvas.protocol.kinds import (
    Error,
    ErrorSeverity,
    Kind,
    Outcome,
    TaskAssign,
    TaskResult,
)
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Store
from tests.hub.helpers import ENGINE, a_broker, assign, message, of_kind, take_all

pytestmark = [pytest.mark.anyio, pytest.mark.req("H6", "C5", "D24")]

A = Principal("a")
YOU = Principal("person:you", PrincipalKind.PERSON)


@asynccontextmanager
async def asking_you(store: Store, clock: VirtualClock) -> AsyncIterator[Hub]:
    """Open a hub that asks a person."""
    async with (
        a_broker(store, clock) as broker,
        Hub.open(broker, store, clock=clock, person="you") as hub,
    ):
        await hub.sessions.open("default", members=["a", "b", "c"])
        yield hub


async def asks(hub: Hub) -> list[tuple[PersonAsk, Envelope, int]]:
    """Read what waits for the person, as the engine's inbox does."""
    assert isinstance(hub.broker, EmbeddedBroker)
    found = []
    for number, envelope in await hub.broker.waiting("person:you"):
        body = envelope.body
        assert isinstance(body, TaskAssign)
        assert body.task_type == "person.ask"
        assert body.input is not UNSET
        found.append((msgspec.json.decode(body.input, type=PersonAsk), envelope, number))
    return found


async def answer(hub: Hub, content: Any) -> None:
    """Answer the oldest ask, as the engine's inbox does."""
    _, asked, number = (await asks(hub))[0]
    reply = of_kind(
        Kind.TASK_COMPLETE,
        YOU.id,
        asked.sender.id,
        TaskResult(
            task_id=asked.task_id or UNSET,
            status=Outcome.SUCCESS,
            output=freeze(PersonAnswer(content, "you")),
        ),
        session=asked.session,
        reply_to=asked.id,
        correlation_id=asked.id,
    )
    assert isinstance(hub.broker, EmbeddedBroker)
    post = await hub.prepare(YOU, reply)
    await hub.broker.transact(lambda unit: (unit.take_over(number), unit.put(post)))


def urgent(task: str = "t1", **fields: Any) -> Envelope:
    return assign("a", "b", task, priority=7, **fields)


async def test_an_urgent_task_of_an_agent_waits_for_a_person_and_then_goes(
    store: Store, clock: VirtualClock
) -> None:
    async with asking_you(store, clock) as hub:
        asked = urgent()
        receipt = await hub.send(A, asked)
        assert receipt.held
        assert not await hub.broker.since("b")
        ((ask, _, _),) = await asks(hub)
        assert ask.scope == f"approval:{asked.id}"
        assert ask.text.startswith("a wants b to do")
        await answer(hub, {"decision": "approve"})
        (parcel,) = await take_all(await hub.broker.connect("b"), 1)
        assert parcel.envelope.id == asked.id
        again = await hub.send(A, asked)
        assert (again.repeated, again.held) == (True, False)
        kinds = [e.status for _, e in await Trail(store).entries() if e.type is EntryType.APPROVAL]
        assert kinds == ["held", "approved"]


@pytest.mark.parametrize(
    "content", [{"decision": "refuse", "reason": "too risky"}, "what?", 17, {"nothing": 1}]
)
async def test_what_nobody_agrees_to_is_refused_and_its_sender_is_told(
    store: Store, clock: VirtualClock, content: Any
) -> None:
    async with asking_you(store, clock) as hub:
        asked = urgent()
        await hub.send(A, asked)
        await answer(hub, content)
        (told,) = await take_all(await hub.broker.connect("a"), 1)
        assert isinstance(told.envelope.body, Error)
        assert told.envelope.body.error_code == "NOT_APPROVED"
        assert told.envelope.reply_to == asked.id
        with pytest.raises(NotApproved, match="did not agree"):
            await hub.send(A, asked)
        assert not await hub.broker.since("b")


async def test_a_repeat_of_what_is_held_asks_nobody_twice(
    store: Store, clock: VirtualClock
) -> None:
    async with asking_you(store, clock) as hub:
        asked = urgent()
        for _ in range(3):
            assert (await hub.send(A, asked)).held
        (one,) = await hub.send_all(A, [asked])
        assert getattr(one, "held", False)
        assert len(await asks(hub)) == 1
        with pytest.raises(IdReused):
            await hub.send(A, urgent("t2", id=asked.id))


async def test_a_full_disk_does_not_keep_the_hub_from_hearing_people_later(
    store: Store, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, refusals = EmbeddedInbox.take, iter([StoreFull("The disk is full.")])

    async def take_when_there_is_room(inbox: EmbeddedInbox, most: int) -> list[Parcel]:
        if inbox.agent == HUB:
            for refusal in refusals:
                raise refusal
        return await take(inbox, most)

    monkeypatch.setattr(EmbeddedInbox, "take", take_when_there_is_room)
    async with asking_you(store, clock) as hub:
        await hub.send(A, assign("a", "b", "t1", priority=9))
        await answer(hub, {"decision": "approve"})
        b = await hub.broker.connect("b")
        (parcel,) = await take_all(b, 1)
        assert parcel.envelope.task_id == "t1"


@pytest.mark.parametrize("many", [False, True])
async def test_a_person_is_asked_also_when_the_asker_has_gone(
    store: Store, clock: VirtualClock, many: bool
) -> None:
    async with asking_you(store, clock) as hub:
        urgent = assign("a", "b", "t1", priority=9)
        sending: asyncio.Future[Any]
        if many:
            sending = asyncio.ensure_future(await hub.submit(A, [Admitted(urgent)]))
        else:
            sending = asyncio.ensure_future(hub.send(A, urgent))
        await anyio.lowlevel.checkpoint()
        sending.cancel()
        you = await hub.broker.connect("person:you")
        assert len(await you.take(1)) == 1


async def test_what_is_held_outlives_the_hub(store: Store, clock: VirtualClock) -> None:
    asked = urgent()
    async with asking_you(store, clock) as hub:
        await hub.send(A, asked)
    async with asking_you(store, clock) as hub:
        await clock.advance(1)
        assert len(await asks(hub)) == 1
        await answer(hub, {"decision": "approve"})
        (parcel,) = await take_all(await hub.broker.connect("b"), 1)
        assert parcel.envelope == asked


async def test_only_an_agents_own_task_outside_the_plan_needs_consent(
    store: Store, clock: VirtualClock
) -> None:
    wanted = Security(permissions=(), require_approval=True)
    async with asking_you(store, clock) as hub:
        await hub.sessions.open("run", members=["a", "b"], owner=ENGINE.id)
        assert hub.consent is not None
        hub.consent.approve_plan("run", ["planned"])
        free = [
            (A, assign("a", "b", "ordinary", priority=6)),
            (A, message("a", "b", priority=10)),
            (A, assign("a", "b", "planned", priority=9, session="run")),
            (ENGINE, assign(ENGINE.id, "b", "engine's", priority=9, session="run")),
        ]
        for principal, envelope in free:
            assert not (await hub.send(principal, envelope)).held
        bound = [
            assign("a", "b", "unplanned", priority=9, session="run"),
            assign("a", "b", "says so", priority=1, security=wanted),
        ]
        for envelope in bound:
            assert (await hub.send(A, envelope)).held
        assert len(await asks(hub)) == 2


async def test_a_session_that_is_gone_by_then_is_told_to_the_sender(
    store: Store, clock: VirtualClock
) -> None:
    async with asking_you(store, clock) as hub:
        await hub.send(A, urgent())
        await hub.sessions.leave("default", "b")
        await answer(hub, {"decision": "approve"})
        (told,) = await take_all(await hub.broker.connect("a"), 1)
        assert isinstance(told.envelope.body, Error)
        assert told.envelope.body.error_code == "AGENT_NOT_FOUND"


async def test_nobody_but_a_person_answers_the_hub(store: Store, clock: VirtualClock) -> None:
    async with asking_you(store, clock) as hub:
        await hub.send(A, urgent())
        ((_, asked, _),) = await asks(hub)
        body = TaskResult(output=freeze(PersonAnswer({"decision": "approve"}, "you")))
        forged = of_kind(Kind.TASK_COMPLETE, "a", "hub", body, reply_to=asked.id)
        with pytest.raises(Exception, match="Agent not found: hub"):
            await hub.send(A, forged)
        assert not await hub.broker.since("b")


@pytest.mark.req("H9")
async def test_a_critical_error_is_shown_to_the_person_and_others_are_not(
    store: Store, clock: VirtualClock
) -> None:
    async with asking_you(store, clock) as hub:
        for severity in ErrorSeverity:
            body = Error(
                error_type=ErrorType.EXECUTION,
                error_code="DISK_ON_FIRE",
                error_message=f"{severity} smoke",
                severity=severity,
            )
            await hub.send(A, of_kind(Kind.ERROR, "a", "b", body))
        ((ask, _, _),) = await asks(hub)
        assert "CRITICAL smoke (DISK_ON_FIRE)" in ask.text
        await answer(hub, "seen")
        await clock.advance(1)
        assert await asks(hub) == []
