"""Signs of life, and what follows when they end."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import Replaced
from agentcanvas.hub.broker import Receipt, Settlement
from agentcanvas.hub.client import Connection
from agentcanvas.hub.events import PRESENCE, EventKind
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.presence import AgentState, Presence
from agentcanvas.protocol.kinds import AgentStatus, Error, Heartbeat
from agentcanvas.protocol.limits import HeartbeatLimits
from agentcanvas.store import Store
from tests.hub.helpers import (
    a_hub,
    assign,
    complete,
    events,
    events_in,
    heartbeat,
    message,
    take_all,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("L1", "D31")]

A, B = Principal("a"), Principal("b")


def test_three_missed_heartbeats_and_an_agent_is_lost_once() -> None:
    presence = Presence(HeartbeatLimits())
    presence.register("a")
    presence.hear("a", 0.0)
    presence.hear("a", 30.0)
    assert presence.next_moment() == 90.0
    assert presence.silent(90.0) == []
    assert presence.silent(119.9) == []
    assert presence.silent(120.0) == ["a"]
    assert presence.silent(500.0) == []
    assert presence.hear("a", 501.0)
    assert presence.silent(591.0) == ["a"]


def test_who_said_goodbye_is_not_lost_and_thousands_of_returns_leave_nothing_behind() -> None:
    presence = Presence(HeartbeatLimits())
    presence.register("a")
    for number in range(5000):
        presence.hear("a", number / 1000)
        presence.leave("a")
    assert len(presence._silences) == 1
    assert presence.silent(1000.0) == []
    assert presence.next_moment() is None
    card = presence.card("a")
    assert card is not None
    assert card.state is AgentState.AWAY
    assert presence.card("b") is None


def test_agents_are_found_by_what_they_can_do_the_least_loaded_first() -> None:
    presence = Presence(HeartbeatLimits())
    for agent, load in (("busy", 0.9), ("idle", 0.1), ("away", 0.0)):
        presence.register(agent, ["code", "review"])
        presence.hear(agent, 0.0, Heartbeat(status=AgentStatus.ACTIVE, load=load))
    presence.register("other", ["draw"])
    presence.hear("other", 0.0)
    presence.leave("away")
    assert [card.agent for card in presence.search("review")] == ["idle", "busy"]
    assert [card.agent for card in presence.search("code", "draw")] == []
    beat = Heartbeat(status=AgentStatus.BUSY, tasks_running=2, capabilities=("draw", "code"))
    presence.hear("other", 1.0, beat)
    (card,) = presence.search("code", "draw")
    assert (card.status, card.tasks_running, card.load) == (AgentStatus.BUSY, 2, None)


async def test_a_heartbeat_is_not_kept(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        await hub.connect(A, capabilities=["code"])
        before = store.head
        receipt = await hub.send(A, heartbeat("a", load=0.5))
        assert receipt.numbers == ()
        assert store.head == before
        (card,) = hub.presence.search("code")
        assert card.load == 0.5
        (also,) = await hub.send_all(A, [heartbeat("a", load=0.7)])
        assert isinstance(also, Receipt)
        assert store.head == before


async def test_the_owner_of_an_open_task_is_told_when_its_agent_falls_silent(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        owner, worker = await hub.connect(A), await hub.connect(B)
        done, asked = assign("a", "b", "t1"), assign("a", "b", "t2")
        await hub.send(A, done)
        await hub.send(A, asked)
        await take_all(worker._inbox, 2)
        await hub.send(B, complete("b", "a", "t1"))
        assert len(await take_all(owner._inbox, 1)) == 1
        for _ in range(3):
            await clock.advance(30)
            await hub.send(A, heartbeat("a"))
        (told,) = await take_all(owner._inbox, 1)
        error = told.envelope.body
        assert isinstance(error, Error)
        assert error.error_code == "AGENT_LOST"
        assert error.original_message_id == told.envelope.reply_to == asked.id
        assert told.envelope.sender.id == "hub"
        (lost,) = await events(store, EventKind.AGENT_LOST)
        assert lost["agent"] == "b"
        assert [owed["name"] for owed in lost["owed"]] == ["t2"]
        assert hub.presence.search() != []
        await hub.send(B, complete("b", "a", "t2"))  # it was only slow
        (back,) = await events_in(store, PRESENCE, EventKind.AGENT_PRESENT)
        assert back == {"agent": "b"}


async def test_any_word_is_a_sign_of_life(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        link = await hub.connect(A)
        for _ in range(5):
            await clock.advance(60)
            await link.send(message("a", "b"))
        assert await events_in(store, PRESENCE, EventKind.AGENT_LOST) == []


async def test_an_agent_that_leaves_with_work_in_hand_is_reported_at_once(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        worker = await hub.connect(B)
        await hub.send(A, assign("a", "b", "t1"))
        await worker.close()
        owner = await hub.connect(A)
        (told,) = await take_all(owner._inbox, 1)
        assert isinstance(told.envelope.body, Error)
        assert "it left" in told.envelope.body.error_message


async def test_a_broken_connection_is_waited_for(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        worker = await hub.connect(B)
        await hub.send(A, assign("a", "b", "t1"))
        await worker.close(goodbye=False)
        await clock.advance(89)
        assert await events(store, EventKind.AGENT_LOST) == []
        await clock.advance(1)
        assert len(await events(store, EventKind.AGENT_LOST)) == 1


@pytest.mark.req("D36")
async def test_a_connection_that_was_replaced_says_no_goodbye(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        first = await hub.connect(B)
        await hub.connect(B)
        await first.close()
        card = hub.presence.card("b")
        assert card is not None
        assert card.state is AgentState.PRESENT


async def test_whoever_is_replaced_while_it_waits_for_mail_has_not_left(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await hub.send(A, assign("a", "b", "t1"))
        first = await hub.connect(B)
        (parcel,) = await first.receive(1)
        await first.settle([parcel.number], Settlement.TAKEN)

        async def work_until_replaced() -> None:
            async with Connection.over(first, clock) as connection:
                with pytest.raises(Replaced):
                    await anext(connection.receive())

        async with anyio.create_task_group() as group:
            group.start_soon(work_until_replaced)
            for _ in range(3):  # it waits by then, and no time has passed
                await anyio.lowlevel.checkpoint()
            await hub.connect(B)
        assert await events(store, EventKind.AGENT_LOST) == []


@pytest.mark.req("D40")
@pytest.mark.parametrize("by", ["connecting", "calling", "speaking"])
async def test_who_waits_for_an_agent_hears_of_it_however_it_comes(
    store: Store, clock: VirtualClock, by: str
) -> None:
    async with a_hub(store, clock) as hub, anyio.create_task_group() as group:
        hub.presence.register("b")
        group.start_soon(hub.wait_for, "b")
        await anyio.wait_all_tasks_blocked()
        match by:
            case "connecting":
                await hub.connect(B)
            case "calling":
                await hub.greet(B)
            case _:
                await hub.send(B, message("b", "a"))


async def test_after_a_restart_those_with_work_in_hand_are_expected_back(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        worker = await hub.connect(B)
        await hub.send(A, assign("a", "b", "t1"))
        await take_all(worker._inbox, 1)
        await hub.send(A, assign("a", "c", "t2"))  # it never saw it: its mail waits
        await worker.close(goodbye=False)
    async with a_hub(store, clock):
        await clock.advance(90)
        found = await events_in(store, PRESENCE, EventKind.AGENT_LOST)
        assert [each["agent"] for each in found] == ["b"]


async def test_persons_and_the_engine_may_be_silent(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock, members=["person:ann", "a"]) as hub:
        await hub.connect(Principal("person:ann", PrincipalKind.PERSON))
        await hub.send(A, assign("a", "person:ann", "t1"))
        await clock.advance(24 * 3600)
    async with a_hub(store, clock, members=["person:ann", "a"]):
        with anyio.move_on_after(0):
            await anyio.lowlevel.checkpoint()
        await clock.advance(24 * 3600)
        assert await events_in(store, PRESENCE, EventKind.AGENT_LOST) == []
