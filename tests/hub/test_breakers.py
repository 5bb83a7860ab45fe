"""Circuit breakers: closed, open, half-open, one for each recipient."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    CircuitOpen,
    ValidationError,
)
from agentcanvas.hub.breakers import Breakers, Circuit, Permit
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.journal import Choice, ListJournal
from agentcanvas.hub.recovery import Breaking
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.limits import BreakerLimits
from tests.hub.helpers import assign
from tests.hub.scripted import (
    NOT_THE_AGENTS,
    Script,
    failing,
    well,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("H4", "D31")]


@pytest.mark.req("H11")
async def test_a_circuit_opens_after_five_failures_and_one_trial_closes_it(
    clock: VirtualClock,
) -> None:
    breakers, journal = Breakers(BreakerLimits()), ListJournal()
    script = Script(*[failing()] * 5, well)
    asking = Breaking(script, breakers, clock, journal=journal)
    for number in range(5):
        await asking.request(assign("a", "b", f"t{number}"))
    with pytest.raises(CircuitOpen, match="30 s"):
        await asking.request(assign("a", "b", "t5"))
    # Hub-wide: whoever asks, over whatever connection.
    with pytest.raises(CircuitOpen):
        await Breaking(Script(well), breakers, clock).request(assign("z", "b", "t6"))
    await asking.request(assign("a", "c", "t7"))
    assert len(script.asked) == 6
    await clock.advance(30)
    await asking.request(assign("a", "b", "t8"))
    assert breakers.circuit("b") is Circuit.CLOSED
    assert journal.choices == [
        Choice.CIRCUIT_OPENED,
        Choice.REFUSED_BY_CIRCUIT,
        Choice.CIRCUIT_HALF_OPENED,
        Choice.CIRCUIT_CLOSED,
    ]


@pytest.mark.req("H11")
async def test_one_trial_at_a_time_and_a_bad_one_opens_it_again(clock: VirtualClock) -> None:
    breakers = Breakers(BreakerLimits(failures=1))
    breakers.failed(breakers.admit("b", 0.0), 0.0)
    trial = breakers.admit("b", 30.0)
    assert trial.is_trial
    for _ in range(3):
        with pytest.raises(CircuitOpen):
            breakers.admit("b", 31.0)
    assert breakers.failed(trial, 35.0) is Circuit.OPEN
    with pytest.raises(CircuitOpen):
        breakers.admit("b", 64.9)
    assert breakers.succeeded(breakers.admit("b", 65.0)) is Circuit.CLOSED


async def test_a_trial_that_is_cancelled_frees_its_place(clock: VirtualClock) -> None:
    breakers = Breakers(BreakerLimits(failures=1))
    breakers.failed(breakers.admit("b", 0.0), 0.0)
    await clock.advance(30)

    class Never(Script):
        async def request(self, envelope: Envelope, **more: Any) -> Delivery:
            del envelope, more
            await anyio.sleep_forever()
            raise AssertionError

    asking = Breaking(Never(well), breakers, clock)
    with anyio.move_on_after(0):
        await asking.request(assign("a", "b", "t1"))
    assert breakers.circuit("b") is Circuit.HALF_OPEN
    await Breaking(Script(well), breakers, clock).request(assign("a", "b", "t2"))
    assert breakers.circuit("b") is Circuit.CLOSED


async def test_a_refusal_of_what_was_asked_tells_nothing_against_the_agent(
    clock: VirtualClock,
) -> None:
    breakers = Breakers(BreakerLimits(failures=1))
    for said in NOT_THE_AGENTS:
        with suppress(ValidationError):
            await Breaking(Script(said), breakers, clock).request(assign("a", "b", "t1"))
    assert breakers.circuit("b") is Circuit.CLOSED


@given(st.lists(st.tuples(st.sampled_from(["ask", "well", "bad", "leave"]), st.integers(0, 40))))
def test_a_breaker_never_has_two_trials_and_counts_only_failures_in_a_row(
    steps: list[tuple[str, int]],
) -> None:
    limits = BreakerLimits(failures=3, half_open_after_ms=30_000)
    breakers = Breakers(limits)
    now, in_a_row = 0.0, 0
    out: list[Permit] = []
    opened_at: float | None = None
    for step, wait in steps:
        now += wait
        if step == "ask":
            try:
                permit = breakers.admit("b", now)
            except CircuitOpen:
                waits = opened_at is not None and now < opened_at + 30
                assert waits or any(each.is_trial for each in out)
                continue
            assert not (permit.is_trial and any(e.is_trial and e.age == permit.age for e in out))
            out.append(permit)
            continue
        if not out:
            continue
        permit = out.pop(0)
        before = breakers.circuit("b")
        if step == "well":
            after = breakers.succeeded(permit)
            in_a_row = 0 if before is Circuit.CLOSED and after is Circuit.CLOSED else in_a_row
            assert not (before is Circuit.HALF_OPEN and permit.is_trial) or after is Circuit.CLOSED
        elif step == "bad":
            after = breakers.failed(permit, now)
            if after is Circuit.OPEN and before is not Circuit.OPEN:
                opened_at = now
        else:
            breakers.abandoned(permit)
    assert breakers.circuit("never asked") is Circuit.CLOSED
