"""Connections that break: nothing is lost, nothing is handled twice, and waits grow."""

from __future__ import annotations

from collections import Counter
from random import Random

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import Disconnected, Replaced, Unauthenticated
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.broker import Parcel, Settlement
from agentcanvas.hub.client import Connection, Transport
from agentcanvas.hub.connecting import connect
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub, Link
from agentcanvas.hub.reconnecting import BackOff, Reconnecting
from agentcanvas.hub.transports.memory import dialing
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, message, post, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1", "D28")]

B = Principal("b")


class Line:
    """A way to the hub that can be cut, and that may stay dead for some tries."""

    def __init__(self, hub: Hub, principal: Principal = B, *, dead_for: int = 0) -> None:
        self._dial = dialing(hub, principal)
        self.dead_for = dead_for
        self.links: list[Link] = []

    async def dial(self) -> Transport:
        if self.dead_for:
            self.dead_for -= 1
            raise Disconnected("no way")
        link = await self._dial()
        assert isinstance(link, Link)
        self.links.append(link)
        return link

    async def cut(self) -> None:
        await self.links[-1].close(goodbye=False)


async def test_pauses_double_up_to_a_limit_and_are_spread(clock: VirtualClock) -> None:
    back_off = BackOff(first_s=1, most_s=10)
    for failures, longest in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (50, 10)):
        drawn = {back_off.pause_s(failures, Random(seed)) for seed in range(50)}
        assert all(longest / 2 <= pause <= longest for pause in drawn)
        assert len(drawn) > 10


async def test_a_client_finds_its_way_back_and_waits_longer_each_time(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        line = Line(hub)
        way = Reconnecting(line.dial, clock, back_off=BackOff(first_s=1), chance=Random(1))
        await way.open()
        await line.cut()
        line.dead_for = 4
        await way.send(message("b", "a"))
        assert 7.5 <= clock.monotonic() <= 15  # 1 + 2 + 4 + 8, halved at the least
        assert way.connections == 2
        await way.close()
        with pytest.raises(Disconnected):
            await way.send(message("b", "a"))


async def test_what_is_connected_after_the_end_is_closed_again(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        line, go_on = Line(hub), anyio.Event()

        async def dial_slowly() -> Transport:
            await go_on.wait()
            return await line.dial()

        way = Reconnecting(dial_slowly, clock)

        async def open_in_vain() -> None:
            with pytest.raises(Disconnected):
                await way.open()

        async with anyio.create_task_group() as group:
            group.start_soon(open_in_vain)
            await anyio.wait_all_tasks_blocked()
            await way.close()
            go_on.set()
        assert [link.is_closed for link in line.links] == [True]


async def test_a_refusal_at_the_first_try_is_told_as_it_is(clock: VirtualClock) -> None:
    async def refuse() -> Transport:
        raise Unauthenticated("no such token")

    with pytest.raises(Unauthenticated):
        await Reconnecting(refuse, clock).open()


async def test_a_refusal_later_ends_the_connection_for_good(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        line, revoked = Line(hub), False

        async def dial() -> Transport:
            if revoked:
                raise Unauthenticated("no such token")
            return await line.dial()

        way = Reconnecting(dial, clock)
        async with Connection.over(way, clock) as connection:
            await connection.send(message("b", "a"))
            revoked = True
            await line.cut()
            with pytest.raises(Disconnected, match="does not let us in again"):
                await anext(connection.receive())


@pytest.mark.req("D36")
async def test_one_that_is_replaced_does_not_fight_for_its_place(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        first, second = Line(hub), Line(hub)
        way = Reconnecting(first.dial, clock)
        await way.open()
        async with Connection.over(way, clock) as connection:
            other = Reconnecting(second.dial, clock)
            await other.open()
            with pytest.raises(Replaced):
                await anext(connection.receive())
            await other.close()
        assert way.connections == 1


async def test_what_is_in_hand_when_a_connection_breaks_is_not_handed_up_twice(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        for number in range(3):
            await hub.broker.post([post("a", "b", f"m{number}")])
        line = Line(hub)
        way = Reconnecting(line.dial, clock)
        (first,) = await way.receive(1)
        for _ in range(10):  # far more often than a message may come back unanswered
            await line.cut()
            with anyio.move_on_after(0):
                await way.receive(1)
            await clock.advance(1)
        assert await way.settle([first.number], Settlement.TAKEN) == 1
        seen: list[Parcel] = []
        while len(seen) < 2:
            seen += await way.receive(5)
        assert sorted(text_of(parcel.envelope) for parcel in seen) == ["m1", "m2"]
        assert await hub.broker.dead_letters() == []
        await way.close()


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, 40), max_size=12), seed=st.integers(0, 1000))
def test_however_often_the_line_is_cut_each_task_is_handled_once_and_answered_once(
    cuts: list[int], seed: int
) -> None:
    anyio.run(_cut_while_working, cuts, seed)


async def _cut_while_working(cuts: list[int], seed: int) -> None:
    clock = VirtualClock()
    handled: Counter[int] = Counter()
    agent = Agent("b")

    @agent.task("work")
    async def work(task: Task) -> object:
        handled[task.input] += 1
        await clock.sleep(Random(task.input + seed).choice([0, 0.5, 3]))
        return task.input

    async with await Store.in_memory(clock=clock) as store, a_hub(store, clock) as hub:
        theirs, ours = Line(hub), Line(hub, Principal("a"))

        async def cut_lines() -> None:
            for moment in sorted(cuts):
                await clock.sleep_until(moment / 4)
                for line in (theirs, ours) if moment % 2 else (theirs,):
                    line.dead_for = moment % 3
                    await line.cut()

        async with (
            agent.working(theirs.dial, clock),
            connect(ours.dial, "a", clock=clock) as me,
            anyio.create_task_group() as group,
        ):
            group.start_soon(cut_lines)
            outputs: list[object] = []
            for number in range(10):
                answer = await me.request("b", "work", number, timeout_s=600)
                outputs.append(answer.output)
        assert outputs == list(range(10))
        assert handled == dict.fromkeys(range(10), 1)
        assert await hub.broker.dead_letters() == []
