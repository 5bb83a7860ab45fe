"""Whatever senders and recipients do: nothing lost, nothing doubled unseen, lanes in order."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import IdReused
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.broker import Broker, Inbox, Outcome, Parcel, Receipt, Settlement
from tests.hub.conformance.conftest import STEADY
from tests.hub.conformance.harnesses import HARNESSES, Harness
from tests.hub.helpers import post, text_of

pytestmark = pytest.mark.req("H2", "M5", "D29", "D30")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.sampled_from([2, 5, 9])),
        st.tuples(st.just("repeat"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("reuse"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("take"), st.integers(1, 5), st.just(0)),
        st.tuples(st.just("fail"), st.just(1), st.just(0)),
        st.tuples(st.just("leave"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 40), st.just(0)),
    ),
    max_size=25,
)


@pytest.mark.parametrize("name", sorted(HARNESSES))
@settings(max_examples=40)
@given(steps=STEPS)
def test_each_message_is_taken_once_in_the_order_of_its_lane(
    name: str, steps: list[tuple[str, int, int]]
) -> None:
    clock = VirtualClock()
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_play, HARNESSES[name](Path(folder), clock), clock, steps)


async def _play(harness: Harness, clock: VirtualClock, steps: list[tuple[str, int, int]]) -> None:
    async with harness.open(STEADY) as broker:
        play = Play(broker, await broker.connect("b"), clock)
        for what, number, priority in steps:
            await getattr(play, what)(number, priority)
        dead = [text_of(each.envelope) for each in await broker.dead_letters()]
        while len(play.taken) + len(dead) < len(play.sent):
            await play.take(10, 0)
            dead = [text_of(each.envelope) for each in await broker.dead_letters()]
    assert sorted([*play.taken, *dead]) == sorted(text for text, _ in play.sent)
    for lane in {text.rsplit("/", 1)[0] for text in play.taken}:
        found = [text for text in play.taken if text.startswith(lane + "/")]
        numbers = [int(text.rsplit("/", 1)[1]) for text in found]
        assert numbers == sorted(numbers)


class Play:
    """A sender and a recipient that do as they are told, and what came of it."""

    def __init__(self, broker: Broker, inbox: Inbox, clock: VirtualClock) -> None:
        self.sent: list[tuple[str, int]] = []
        self.taken: list[str] = []
        self._seen: set[int] = set()
        self._broker = broker
        self._inbox = inbox
        self._clock = clock

    async def send(self, sender: int, priority: int) -> None:
        text = f"{sender}/{priority}/{len(self.sent)}"
        kept = await self._post(text, text, priority)
        assert isinstance(kept, Receipt)
        assert not kept.repeated
        self.sent.append((text, priority))

    async def repeat(self, number: int, _: int) -> None:
        if self.sent:
            text, priority = self.sent[number % len(self.sent)]
            again = await self._post(text, text, priority)
            assert isinstance(again, Receipt)
            assert again.repeated

    async def reuse(self, number: int, _: int) -> None:
        if self.sent:
            text, priority = self.sent[number % len(self.sent)]
            assert isinstance(await self._post(text, text + "!", priority), IdReused)

    async def take(self, most: int, _: int) -> None:
        parcels = await self._look(most)
        await self._inbox.settle([parcel.number for parcel in parcels], Settlement.TAKEN)
        self.taken += [text_of(parcel.envelope) for parcel in parcels]

    async def fail(self, most: int, _: int) -> None:
        parcels = await self._look(most)
        await self._inbox.settle([parcel.number for parcel in parcels], Settlement.FAILED)

    async def leave(self, most: int, _: int) -> None:
        await self._look(most)
        await self._inbox.close()
        self._inbox = await self._broker.connect("b")

    async def wait(self, seconds: int, _: int) -> None:
        await self._clock.advance(seconds)

    async def _look(self, most: int) -> Sequence[Parcel]:
        dead = len(await self._broker.dead_letters())
        if len(self.taken) + dead == len(self.sent):
            return ()
        parcels: Sequence[Parcel] = ()
        async with anyio.create_task_group() as group:  # the last one may be given up meanwhile
            limit = ring_at(self._clock, self._clock.monotonic() + 60, group.cancel_scope.cancel)
            parcels = await self._inbox.take(most)
            limit.cancel()
        for parcel in parcels:
            assert parcel.redelivered == (parcel.number in self._seen)
            self._seen.add(parcel.number)
        return parcels

    async def _post(self, id_: str, text: str, priority: int) -> Outcome:
        (outcome,) = await self._broker.post(
            [post(f"s{id_[0]}", "b", text, id=id_, priority=priority)]
        )
        return outcome
