"""Rates of edges: a minute's worth at once, evenly afterwards, and nobody else is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import RateLimited
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.rates import Rates, TokenBucket
from agentcanvas.protocol.kinds import Broadcast, Kind
from agentcanvas.protocol.limits import BrokerLimits
from agentcanvas.store import Store
from tests.hub.helpers import ENGINE, a_hub, assign, complete, message, of_kind

pytestmark = [pytest.mark.anyio, pytest.mark.req("L1", "I5")]

A, B = Principal("a"), Principal("b")


async def test_an_edge_carries_ten_a_minute_and_others_what_they_like(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        hub.rates.install("default", {("a", "b"): BrokerLimits().rate_per_min})
        for _ in range(10):
            await hub.send(A, message("a", "b"))
        with pytest.raises(RateLimited, match=r"10 messages a minute .* again in 6\.0 s"):
            await hub.send(A, message("a", "b"))
        await hub.send(A, message("a", "c"))
        await hub.send(B, message("b", "a"))
        await clock.advance(6)
        await hub.send(A, message("a", "b"))
        with pytest.raises(RateLimited):
            await hub.send(A, message("a", "b"))


async def test_answers_and_the_engine_are_not_limited(store: Store, clock: VirtualClock) -> None:
    async with a_hub(store, clock) as hub:
        await hub.sessions.open("s", members=["a", "b"], owner=ENGINE.id)
        hub.rates.install("s", {("a", "b"): 1, (ENGINE.id, "a"): 1})
        for _ in range(5):
            await hub.send(ENGINE, message(ENGINE.id, "a", session="s"))
            asked = of_kind(Kind.BROADCAST, "b", "a", Broadcast(event="X"), session="s")
            await hub.send(B, asked)
        await hub.send(A, message("a", "b", session="s"))
        with pytest.raises(RateLimited):
            await hub.send(A, message("a", "b", session="s"))
        await hub.send(B, assign("b", "a", "t1", session="s"))
        await hub.send(A, complete("a", "b", "t1", session="s"))


async def test_a_broadcast_is_refused_to_all_if_one_edge_is_full(
    store: Store, clock: VirtualClock
) -> None:
    async with a_hub(store, clock) as hub:
        hub.rates.install("default", {("a", "b"): 1, ("a", "c"): 5})
        news = [of_kind(Kind.BROADCAST, "a", "broadcast", Broadcast(event="X")) for _ in range(2)]
        await hub.send(A, news[0])
        with pytest.raises(RateLimited):
            await hub.send(A, news[1])
        for _ in range(4):  # the refused one has used nothing
            await hub.send(A, message("a", "c"))


def test_a_limit_can_be_changed_and_forgotten() -> None:
    rates = Rates()
    rates.install("s", {("a", "b"): 1})
    rates.admit("s", "a", ["b"], 0.0)
    rates.install("s", {("a", "b"): 2})
    rates.admit("s", "a", ["b"], 0.0)
    rates.forget("s")
    for _ in range(100):
        rates.admit("s", "a", ["b"], 0.0)


@given(
    per_min=st.integers(1, 100),
    waits=st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=200),
)
def test_a_bucket_never_lets_more_through_than_a_minutes_worth_and_what_time_gives(
    per_min: int, waits: list[float]
) -> None:
    bucket = TokenBucket.full(per_min, 0.0)
    now, passed = 0.0, 0
    for wait in waits:
        now += wait
        pause = bucket.wait_s(now)
        if pause == 0:
            bucket.take(now)
            passed += 1
        else:
            later = replace(bucket)  # a look ahead must not change what is
            assert later.wait_s(now + pause) == pytest.approx(0, abs=1e-6)
    assert passed <= per_min + now * per_min / 60 + 1e-6


def test_a_bucket_loses_no_room_to_a_time_that_goes_back() -> None:
    bucket = TokenBucket.full(10, 100.0)
    assert bucket.wait_s(40.0) == 0
    assert (bucket.room, bucket.at) == (10.0, 100.0)
