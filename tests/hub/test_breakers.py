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


@pytest.mark.req("H11")
def test_a_late_word_from_before_it_opened_neither_closes_nor_opens_it() -> None:
    breakers = Breakers(BreakerLimits(failures=2))
    slow_and_well, slow_and_bad = breakers.admit("b", 0.0), breakers.admit("b", 0.0)
    for _ in range(2):
        breakers.failed(breakers.admit("b", 0.0), 0.0)
    trial = breakers.admit("b", 30.0)
    assert breakers.succeeded(slow_and_well) is Circuit.HALF_OPEN
    assert breakers.failed(slow_and_bad, 31.0) is Circuit.HALF_OPEN
    assert breakers.succeeded(trial) is Circuit.CLOSED
    assert breakers.failed(slow_and_bad, 32.0) is Circuit.CLOSED
    # Of two failures in a row one was from before: it is not counted.
    assert breakers.failed(breakers.admit("b", 32.0), 32.0) is Circuit.CLOSED


class Model:
    """What a breaker is to do, said plainly: one stretch after the other."""

    def __init__(self) -> None:
        self.circuit, self.stretch, self.failures = Circuit.CLOSED, 0, 0
        self.opened_at, self.on_trial = 0.0, False

    def _enter(self, circuit: Circuit) -> None:
        self.circuit, self.stretch = circuit, self.stretch + 1
        self.failures, self.on_trial = 0, False

    def admits(self, now: float) -> bool:
        if self.circuit is Circuit.OPEN and now - self.opened_at >= 30:
            self._enter(Circuit.HALF_OPEN)
        if self.circuit is Circuit.HALF_OPEN and not self.on_trial:
            self.on_trial = True
            return True
        return self.circuit is Circuit.CLOSED

    def hears(self, word: str, stretch: int, now: float) -> None:
        if stretch != self.stretch:
            return
        if word == "well":
            self.failures = 0
            if self.circuit is Circuit.HALF_OPEN:
                self._enter(Circuit.CLOSED)
        elif word == "bad":
            self.failures += 1
            if self.circuit is Circuit.HALF_OPEN or self.failures == 3:
                self._enter(Circuit.OPEN)
                self.opened_at = now
        else:
            self.on_trial = False


WORDS = st.sampled_from(["ask", "ask", "ask", "well", "bad", "bad", "leave"])


@given(st.lists(st.tuples(WORDS, st.integers(0, 40), st.integers(0, 5)), max_size=60))
def test_a_breaker_does_what_its_model_does(steps: list[tuple[str, int, int]]) -> None:
    breakers, model = Breakers(BreakerLimits(failures=3)), Model()
    now = 0.0
    out: list[tuple[Permit, int]] = []
    for word, wait, which in steps:
        now += wait
        if word == "ask":
            may = model.admits(now)
            try:
                out.append((breakers.admit("b", now), model.stretch))
            except CircuitOpen:
                assert not may
            else:
                assert may
        elif out:
            permit, stretch = out.pop(which % len(out))
            model.hears(word, stretch, now)
            if word == "well":
                breakers.succeeded(permit)
            elif word == "bad":
                breakers.failed(permit, now)
            else:
                breakers.abandoned(permit)
        assert breakers.circuit("b") is model.circuit
