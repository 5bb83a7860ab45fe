"""Time limits of an interaction, and what a step costs the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Ask, Ends, Most, Outcome, Size, Stage, Work
from agentcanvas.protocol.plan import Dependency
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import Done, RunStage, Scope, Settled
from agentcanvas.store import Store, Transaction
from tests.runs.fake_desk import STREAM, FakeDesk, stage

pytestmark = [pytest.mark.anyio, pytest.mark.req("D4", "D19", "I1")]

FIVE_MINUTES = Ends(timeout_ms=300_000)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(clock: VirtualClock) -> AsyncIterator[Store]:
    async with await Store.in_memory(clock=clock) as opened:
        yield opened


def slow(clock: VirtualClock, **seconds: float) -> FakeDesk:
    return FakeDesk(clock=clock, seconds=lambda ask: seconds[ask.message])


@pytest.mark.req("I4a")
async def test_a_timeout_interrupts_a_running_ask_and_is_the_reason(
    store: Store, clock: VirtualClock
) -> None:
    desk = slow(clock, quick=100, slow=1000)
    here = await stage(store, desk, clock=clock, ends=FIVE_MINUTES)
    await here.ask("ann", "quick")
    with pytest.raises(StageEnded, match=r"^timeout_ms: 300000$"):
        await here.ask("ann", "slow")
    assert desk.interrupted == ["i1/ask:2"]
    assert desk.given_up == ["i1/ask:2: timeout_ms: 300000"]
    assert clock.monotonic() == 300
    with pytest.raises(StageEnded, match="timeout_ms"):  # nothing more begins
        await here.ask("ann", "quick")
    assert len(desk.effects) == 2


async def test_a_timeout_strikes_at_the_same_place_in_the_next_life(
    store: Store, clock: VirtualClock
) -> None:
    async def talk(here: RunStage, said: list[str]) -> None:
        for message in ("quick", "quick", "slow", "quick"):
            answer = await here.ask("ann", message)
            said.append(answer.text)

    async def play(here: RunStage) -> list[str]:
        said: list[str] = []
        with pytest.raises(StageEnded, match=r"^timeout_ms: 300000$"):
            await talk(here, said)
        await here.close()
        return said

    desk, meter = slow(clock, quick=100, slow=1000), Meter(Budget(), clock)
    first = await play(await stage(store, desk, clock=clock, ends=FIVE_MINUTES, meter=meter))
    assert first == ["ann heard: quick", "ann heard: quick"]
    again, later = slow(clock), Meter(Budget(), clock)  # even if the time used were lost
    second = await play(await stage(store, again, clock=clock, ends=FIVE_MINUTES, meter=later))
    assert second == first
    assert not again.effects
    assert later.spent.turns == meter.spent.turns == 3


async def test_a_resumed_interaction_has_the_time_that_was_left(
    store: Store, clock: VirtualClock
) -> None:
    async def play(here: RunStage, *messages: str) -> None:
        for message in messages:
            await here.ask("ann", message)
        await here.close()

    desk = slow(clock, a=200, b=99, c=2)
    await play(await stage(store, desk, clock=clock, ends=FIVE_MINUTES), "a")
    await clock.advance(5000)  # nobody ran it
    meter = Meter(Budget(), clock, used_seconds=200)
    here = await stage(store, desk, clock=clock, ends=FIVE_MINUTES, meter=meter)
    await play(here, "a", "b")
    with pytest.raises(StageEnded, match="timeout_ms: 300000"):
        await here.ask("ann", "c")


async def test_the_time_of_an_interaction_begins_with_it(store: Store, clock: VirtualClock) -> None:
    desk = slow(clock, a=299)
    meter = Meter(Budget(), clock, used_seconds=10_000)
    here = await stage(store, desk, clock=clock, ends=FIVE_MINUTES, meter=meter)
    assert (await here.ask("ann", "a")).done


async def test_a_parked_run_does_not_run_out_of_time(store: Store, clock: VirtualClock) -> None:
    meter = Meter(Budget(minutes=10), clock)
    desk = slow(clock, a=1000)
    here = await stage(store, desk, clock=clock, ends=FIVE_MINUTES, meter=meter)
    async with anyio.create_task_group() as group:
        group.start_soon(here.ask, "ann", "a")
        await clock.sleep(250)
        meter.pause()
        await clock.sleep(740)
        assert meter.seconds == 250
        meter.resume()
    assert desk.interrupted == []
    assert meter.seconds == 260


async def test_minutes_are_hard_also_in_the_middle_of_a_turn(
    store: Store, clock: VirtualClock
) -> None:
    desk = slow(clock, a=1000)
    here = await stage(store, desk, clock=clock, budget=Budget(minutes=2), ends=FIVE_MINUTES)
    with pytest.raises(StageEnded, match=r"^budget: 2 minutes$"):
        await here.ask("ann", "a")
    assert (desk.interrupted, clock.monotonic()) == (["i1/ask:1"], 120)


async def test_a_timeout_ends_all_that_runs_and_all_that_waits(
    store: Store, clock: VirtualClock
) -> None:
    asks = [
        Ask("ann", "quick", Work("a")),
        Ask("ann", "slow", Work("b")),
        Ask("bob", "slow", Work("c")),
        Ask("cid", "slow", Work("d")),  # waits for a slot
        Ask("ann", "quick", Work("e", (Dependency("d"),))),
    ]

    async def play(desk: FakeDesk, meter: Meter) -> None:
        here = await stage(store, desk, clock=clock, meter=meter, ends=FIVE_MINUTES, parallel=2)
        await here.ask_all(asks)
        with pytest.raises(StageEnded, match=r"^timeout_ms: 300000$"):
            await here.now()
        await here.close()

    desk, meter = slow(clock, quick=100, slow=1000), Meter(Budget(), clock)
    await play(desk, meter)
    assert (len(desk.effects), len(desk.interrupted)) == (3, 2)
    again, later = slow(clock), Meter(Budget(), clock)
    await play(again, later)
    assert not again.effects
    assert later.spent.turns == meter.spent.turns == 3


@pytest.mark.req("I4a")
async def test_the_end_of_the_rounds_leaves_time_for_the_closing_step(
    store: Store, clock: VirtualClock
) -> None:
    class Talk:
        id = "talk"
        roles = ()
        options: Any = None

        def most(self, size: Size, options: Any) -> Most:
            del size, options
            return Most(9)

        async def run(self, stage: Stage, cast: Any, request: str, options: Any) -> Outcome:
            del cast, options
            async for round_ in stage.rounds(9):
                await round_.ask("ann", request)
            return Outcome("max_rounds: 2", done=True, result=(await stage.ask("judge", "x")).text)

    desk = slow(clock, talk=100, x=99)
    ends = Ends(rounds=2, timeout_ms=300_000)
    outcome = await (await stage(store, desk, clock=clock, ends=ends)).perform(
        Talk(), {}, "talk", None
    )
    assert outcome == Outcome("max_rounds: 2", done=True, result="judge heard: x")
    assert [ask.to for ask in desk.asks] == ["ann", "ann", "judge"]


# -- what a step costs the disk -------------------------------------------------------------------


class LoggingDesk(FakeDesk):
    """Writes an event when a turn begins, and hears of the reply in a transaction of its own."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self.acked: list[int] = []

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        del ask, schema
        await self._store.append(STREAM, "turn_started", b"{}")
        await self._store.append("mail", "reply", b"{}")  # the agent's own commit
        return Done(
            Settled(step), also=lambda tx: self.acked.append(tx.append(STREAM, "ack", b"{}"))
        )


async def test_a_sequential_turn_costs_two_commits(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "s.db") as store:
        desk = LoggingDesk(store)
        here = await stage(store, desk)
        before = store.statistics().commits
        for n in range(50):
            await here.ask("ann", str(n), work=Work(str(n)))
        await here.close()
        commits = store.statistics().commits - before
        events = await store.events(stream=STREAM)
    # Two threads meet here, so a pair may now and then be parted; three a turn would be 150.
    assert commits <= 110
    assert [event.kind for event in events] == ["turn_started", "step", "ack"] * 50
    assert len(desk.acked) == 50


async def test_no_effect_is_on_disk_before_the_record_of_the_one_that_led_to_it(
    store: Store,
) -> None:
    here = await stage(store, LoggingDesk(store))
    for n in range(3):
        await here.ask("ann", str(n))
    # Whatever is committed now is a beginning of the whole; nothing is missing in its middle.
    kinds = [event.kind for event in await store.events(stream=STREAM)]
    assert kinds == (["turn_started", "step", "ack"] * 3)[: len(kinds)]
    assert len(kinds) >= 7


async def test_a_record_that_cannot_be_written_ends_the_stage(store: Store) -> None:
    class Refusing(FakeDesk):
        async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
            def refuse(transaction: Transaction) -> None:
                raise LookupError("no such message")

            done = await super().ask(step, ask, schema)
            return Done(done.result, also=refuse if ask.message == "bad" else None)

    desk = Refusing()
    here = await stage(store, desk)
    await here.ask("ann", "bad")
    with pytest.raises(LookupError, match="no such message"):
        await here.ask("ann", "next")
    with pytest.raises(LookupError):  # and it stays so
        await here.close()
    rows = await store.events(stream=STREAM)
    assert not rows, "neither the bad step nor the one built on it"


async def test_records_may_go_through_a_queue_that_others_write_to(store: Store) -> None:
    queued: list[object] = []

    def queue(work: Callable[[Transaction], None]) -> asyncio.Future[None]:
        queued.append(work)
        return asyncio.ensure_future(store.transact(work))

    journal = await Journal.open(store, STREAM, queue)
    clock = VirtualClock()
    scope = Scope(FakeDesk(), journal, Meter(Budget(), clock), Slots(1), clock)
    here = RunStage(scope, Scene("i1"))
    await here.ask("ann", "a")
    await here.close()
    assert len(queued) == 1
    assert "i1/ask:1" in await Journal.open(store, STREAM)
