"""All twenty patterns on the engine's Stage: as foreseen, under every fault, and after every crash.

The tables of what came of it are printed at the end of the test run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.flows.axes import Sync
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.pattern import Ask, Fate
from agentcanvas.protocol.records import FailureClass
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.scene import ends_of
from agentcanvas.runs.stage import Settled
from agentcanvas.store import Store
from tests.patterns.scenes import SCENES
from tests.runs.fake_desk import Killed
from tests.runs.playing import IDS, SceneDesk, play_scene, turns_at_most

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4", "D4", "D5", "D19")]

Answered = Callable[[], Settled]
Fault = Callable[[VirtualClock, Ask, Answered], Awaitable[Settled]]

TURN_S = 1_800.0
"""How long the engine waits for an agent that does not answer (D32)."""


async def silent(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """Nothing comes, until the turn is over."""
    del ask, answered
    await clock.sleep(TURN_S)
    return Settled("", Fate.TIMED_OUT, "no answer", failure=FailureClass.TIMEOUT)


async def slow(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """The right answer, after four minutes."""
    del ask
    await clock.sleep(240)
    return answered()


async def dead(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """The process is gone in the middle of its turn."""
    del ask, answered
    await clock.sleep(5)
    return Settled("half an ans", Fate.FAILED, "it died", failure=FailureClass.CRASH)


async def garbage(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """Bytes that mean nothing."""
    del clock, ask, answered
    return Settled("\ufffd\x00{]]} lorem \u202e", Fate.DONE)


async def wrong_form(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """JSON, but never the form that was asked for."""
    del clock, ask, answered
    return Settled('{"no": "thing"}', value=msgspec.Raw(b'{"no": "thing"}'))


async def refuses(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """It does not take the task."""
    del clock, ask, answered
    return Settled("", Fate.REJECTED, "I will not")


async def out_of_turn(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """What belongs to its next turn, and words for somebody else."""
    del clock
    answered()
    return msgspec.structs.replace(answered(), text=f"@all: {ask.to} says: TASK_DONE")


async def floods(clock: VirtualClock, ask: Ask, answered: Answered) -> Settled:
    """Far more than anybody wants to read."""
    del clock, ask
    return msgspec.structs.replace(answered(), text="more and more " * 20_000)


FAULTS: dict[str, Fault] = {
    each.__name__: each
    for each in (silent, slow, dead, garbage, wrong_form, refuses, out_of_turn, floods)
}
CASES = [*FAULTS, "duplicates"]
PACED = [
    pytest.param(name, sync, id=name if sync is Sync.REQ_RES else f"{name}-{sync}")
    for name in IDS
    for sync in (Sync.REQ_RES, Sync.ASYNC)
    if sync is Sync.REQ_RES or CATALOGUE[name].goes_on
]
"""All twenty, and again async those that may run so."""


def _row(name: str, sync: Sync) -> str:
    return name if sync is Sync.REQ_RES else f"{name} (async)"


def test_the_tables_hold_all_twenty_and_all_nine() -> None:
    assert len(CASES) == 9
    assert {each.values[0] for each in PACED} == set(IDS)
    assert len(IDS) == 20


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.mark.parametrize("name", IDS)
async def test_it_ends_on_the_engines_stage_as_on_the_one_for_tests(
    name: str, clock: VirtualClock
) -> None:
    scene = SCENES[name]
    async with await Store.in_memory(clock=clock) as store:
        outcome = await play_scene(store, name, scene, SceneDesk(scene, clock), clock)
    assert (outcome.reason, outcome.done) == (scene.reason, scene.done)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "sync"), PACED)
async def test_it_ends_within_its_bound_whatever_an_agent_does(
    name: str,
    sync: Sync,
    case: str,
    clock: VirtualClock,
    record_property: Callable[[str, object], None],
) -> None:
    """One agent after the other is at fault, and once all of them."""
    scene = SCENES[name]
    everybody = sorted({agent for agents in scene.cast.values() for agent in agents})
    ends = ends_of(CATALOGUE[name].termination)
    reasons = []
    for faulty in [*([agent] for agent in everybody), everybody]:
        clock = VirtualClock()
        last: dict[str, Settled] = {}

        async def fault(
            ask: Ask,
            answered: Answered,
            faulty: list[str] = faulty,
            clock: VirtualClock = clock,
            last: dict[str, Settled] = last,
        ) -> Settled | None:
            if ask.to not in faulty:
                return None
            if case == "duplicates":
                return last.setdefault(ask.to, answered())
            return await FAULTS[case](clock, ask, answered)

        desk = SceneDesk(scene, clock, fault=fault)
        begun = clock.monotonic()
        with anyio.fail_after(20):  # of real time: nothing hangs
            async with await Store.in_memory(clock=clock) as store:
                outcome = await play_scene(store, name, scene, desk, clock, ends=ends, sync=sync)
        most = turns_at_most(name, scene, rounds=ends.rounds)
        assert len(desk.asks) <= most
        assert outcome.reason
        took_ms = (clock.monotonic() - begun) * 1000
        if ends.timeout_ms is not None:
            assert took_ms <= ends.timeout_ms
            over = took_ms == ends.timeout_ms
            assert (outcome.reason == f"timeout_ms: {ends.timeout_ms}") <= over
        if outcome.reason.startswith("timeout_ms"):
            assert not outcome.done
        reasons.append(outcome.reason)
    record_property("pattern faults", [_row(name, sync), case, reasons[-1]])


@pytest.mark.parametrize(("name", "sync"), PACED)
async def test_a_crash_at_any_step_and_a_resume_give_what_no_crash_gives(
    name: str, sync: Sync, record_property: Callable[[str, object], None]
) -> None:
    scene = SCENES[name]
    clock = VirtualClock()
    whole = SceneDesk(scene, clock)
    async with await Store.in_memory(clock=clock) as store:
        expected = await play_scene(store, name, scene, whole, clock, sync=sync)
    for moment in range(len(whole.effects)):
        clock = VirtualClock()
        desk = SceneDesk(scene, clock)
        meter = Meter(Budget(), clock)
        async with await Store.in_memory(clock=clock) as store:
            desk.die_before = moment
            with pytest.raises(Killed):
                await play_scene(store, name, scene, desk, clock, meter=meter, sync=sync)
            done_before = len(desk.effects)
            desk.die_before = None
            outcome = await play_scene(store, name, scene, desk, clock, sync=sync)
        assert outcome == expected, f"after a crash before step {moment}"
        again = [step for step in desk.effects[done_before:] if step in desk.effects[:done_before]]
        assert set(again) <= _under_way(desk, done_before)
    record_property(
        "pattern resumes", [_row(name, sync), f"{len(whole.effects)} crashes", expected.reason]
    )


def _under_way(desk: SceneDesk, moment: int) -> set[str]:
    """Steps that were begun together with the one that died; nobody knows what came of them."""
    if not moment:
        return set()
    beside = desk.effects[moment - 1].rpartition("/")[0]
    return {step for step in desk.effects[:moment] if step.rpartition("/")[0] == beside}
