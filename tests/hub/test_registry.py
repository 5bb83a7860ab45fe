"""Who can be asked: by what they can do, how busy they are, and what waits for them."""

from __future__ import annotations

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.presence import AgentState
from agentcanvas.hub.registry import Listing
from agentcanvas.protocol.kinds import AgentStatus, Heartbeat, Kind
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, assign, message, of_kind, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.req("L1", "D31")]

A = Principal("a")


def names(found: list[Listing]) -> list[str]:
    return [each.card.agent for each in found]


async def test_the_freest_agent_that_can_do_it_comes_first(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock, members=["a", "b", "c", "d", "e"]) as hub:
        for name, load, status in (
            ("b", 0.9, AgentStatus.BUSY),
            ("c", 0.1, AgentStatus.ACTIVE),
            ("d", 0.1, AgentStatus.ACTIVE),
            ("e", 0.0, AgentStatus.MAINTENANCE),
        ):
            await hub.connect(Principal(name), capabilities=["review", "code"])
            beat = Heartbeat(status=status, load=load)
            await hub.send(Principal(name), of_kind(Kind.HEARTBEAT, name, "hub", beat))
        await hub.send(A, message("a", "c"))  # something waits for it
        assert names(await hub.registry.find("review")) == ["d", "c", "b"]
        assert names(await hub.registry.find("review", "code", max_load=0.5)) == ["d", "c"]
        assert names(await hub.registry.find("review", besides=["d"])) == ["c", "b"]
        assert names(await hub.registry.find("draw")) == []
        waiting = {each.card.agent: each.waiting for each in await hub.registry.listings()}
        assert waiting == {"b": 0, "c": 1, "d": 0, "e": 0}


async def test_those_who_left_are_listed_but_not_found(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        link = await hub.connect(Principal("b"), capabilities=["review"])
        await link.close()
        (listing,) = await hub.registry.listings()
        assert listing.card.state is AgentState.AWAY
        assert await hub.registry.find("review") == []


async def test_losses_are_told_as_they_happen_and_afterwards(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await hub.connect(Principal("b"))
        await hub.send(A, assign("a", "b", "t1"))
        heard: list[str] = []

        async def listen() -> None:
            async for _, loss in hub.registry.losses():
                heard.append(loss.agent)

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await clock.advance(1)
            assert heard == []
            await clock.advance(90)
            await hub.connect(Principal("c"))
            await clock.advance(91)
            group.cancel_scope.cancel()
        assert heard == ["b", "c"]
        number, loss = await anext(hub.registry.losses())
        assert (loss.agent, [owed.name for owed in loss.owed]) == ("b", ["t1"])
        _, loss = await anext(hub.registry.losses(after=number))
        assert loss.agent == "c"


async def test_what_is_cacheable_is_declared_by_capability(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        await hub.connect(Principal("b"), capabilities=["lint", "cacheable:lint"])
        assert hub.registry.is_cacheable("b", "lint")
        assert not hub.registry.is_cacheable("b", "code")
        assert not hub.registry.is_cacheable("nobody", "lint")


@pytest.mark.req("H1", "D36")
async def test_reading_waits_a_while_for_mail_and_takes_nothing(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub, anyio.create_task_group() as group:
        b = Principal("b")
        assert await hub.read(b) == []
        assert await hub.read(b, wait_s=20) == []
        assert clock.monotonic() == pytest.approx(20)

        async def send_later() -> None:
            await clock.sleep(5)
            await hub.send(A, message("a", "c", "not for b"))
            await clock.sleep(5)
            await hub.send(A, message("a", "b", "for b"))

        group.start_soon(send_later)
        (parcel,) = await hub.read(b, wait_s=60)
        assert text_of(parcel.envelope) == "for b"
        assert clock.monotonic() == pytest.approx(30)
        assert await hub.read(b) == [parcel]
        assert await hub.read(b, after=parcel.number) == []
