"""The engine's Stage over a real store: replay, limits, parallelism."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import RunDiverged, StageEnded
from agentcanvas.pattern import Ask, Fate, Measure, Outcome, Stage, Work
from agentcanvas.patterns.manager_worker import MANAGER, WORKER, ManagerWorker, Options
from agentcanvas.protocol.plan import Dependency, Plan
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.stage import Done, RunStage, Scope, Settled
from agentcanvas.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.req("D4", "D19")]

STREAM = "solo/run_20260219_100000"


class Killed(Exception):
    """The process dies here."""


class FakeDesk:
    """Answers at once, counts effects, and can die before the n-th."""

    def __init__(self, reply: Callable[[Ask], Settled], *, die_before: int | None = None) -> None:
        self._reply = reply
        self._die_before = die_before
        self.effects: list[str] = []
        self.running = 0
        self.most_at_once = 0

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        del schema
        self._effect(step)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await anyio.lowlevel.checkpoint()
        self.running -= 1
        return Done(self._reply(ask))

    async def tell(self, step: str, to: str, message: str) -> Done:
        del to, message
        self._effect(step)
        return Done(result=True)

    async def measure(self, step: str, metric: str) -> Done:
        self._effect(step)
        return Done(Measure(metric, 1, holds=True))

    async def note(self, step: str, entry: str, sources: Sequence[str]) -> Done:
        del entry, sources
        self._effect(step)
        return Done(result=True)

    def _effect(self, step: str) -> None:
        if self._die_before is not None and len(self.effects) >= self._die_before:
            raise Killed
        self.effects.append(step)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with await Store.in_memory() as opened:
        yield opened


async def stage(
    store: Store,
    desk: FakeDesk,
    *,
    budget: Budget | None = None,
    parallel: int = 5,
    clock: VirtualClock | None = None,
) -> RunStage:
    meter = Meter(budget or Budget(), clock or VirtualClock())
    journal = await Journal.open(store, STREAM)
    return RunStage(Scope(desk, journal, meter, anyio.CapacityLimiter(parallel)), "i1")


def echo(ask: Ask) -> Settled:
    return Settled(f"{ask.to} heard: {ask.message}")


async def test_a_settled_step_is_not_carried_out_again(store: Store) -> None:
    first, second = FakeDesk(echo), FakeDesk(echo)
    one = await (await stage(store, first)).ask("ann", "hello")
    two = await (await stage(store, second)).ask("ann", "hello")
    assert one == two
    assert (len(first.effects), len(second.effects)) == (1, 0)


async def test_a_step_that_asks_something_else_has_diverged_and_is_named(store: Store) -> None:
    await (await stage(store, FakeDesk(echo))).ask("ann", "hello")
    with pytest.raises(RunDiverged, match="i1/ask:1"):
        await (await stage(store, FakeDesk(echo))).ask("ann", "good-bye")


async def test_steps_are_named_by_their_call_path(store: Store) -> None:
    desk = FakeDesk(echo)
    top = await stage(store, desk)
    await top.ask("ann", "a")
    async for round_ in top.rounds(2):
        await round_.ask_all([Ask("ann", "b", Work("t1")), Ask("bob", "c")])
        await round_.check("score")
    assert desk.effects == [
        "i1/ask:1",
        "i1/rounds:1/round:1/ask_all:1/t1",
        "i1/rounds:1/round:1/ask_all:1/2",
        "i1/rounds:1/round:1/check:1",
        "i1/rounds:1/round:2/ask_all:1/t1",
        "i1/rounds:1/round:2/ask_all:1/2",
        "i1/rounds:1/round:2/check:1",
    ]


async def test_asks_run_in_parallel_up_to_the_limit(store: Store) -> None:
    desk = FakeDesk(echo)
    await (await stage(store, desk, parallel=3)).ask_all([Ask("ann", str(n)) for n in range(9)])
    assert desk.most_at_once == 3


async def test_a_task_waits_for_its_hard_dependency_and_is_skipped_when_it_fails(
    store: Store,
) -> None:
    def reply(ask: Ask) -> Settled:
        return Settled("", Fate.FAILED, "no") if ask.message == "a" else echo(ask)

    desk = FakeDesk(reply)
    asks = [
        Ask("ann", "c", Work("c", (Dependency("b"),))),
        Ask("ann", "b", Work("b", (Dependency("a"),))),
        Ask("ann", "a", Work("a")),
        Ask("ann", "d", Work("d")),
    ]
    answers = await (await stage(store, desk)).ask_all(asks)
    fates = [answer.fate for answer in answers]
    assert fates == [Fate.SKIPPED, Fate.SKIPPED, Fate.FAILED, Fate.DONE]
    assert answers[1].reason == "a did not end well"
    assert len(desk.effects) == 2


async def test_a_typed_answer_is_asked_for_once_more_and_then_fails(store: Store) -> None:
    asked: list[str] = []

    def reply(ask: Ask) -> Settled:
        asked.append(ask.message)
        return Settled("hm", value=msgspec.Raw(b'{"tasks": 7}'))

    answer = await (await stage(store, FakeDesk(reply))).ask_for(Plan, "boss", "plan!")
    assert (answer.fate, answer.value) == (Fate.FAILED, None)
    assert len(asked) == 2
    assert "does not have the form" in asked[1]


async def test_a_typed_answer_comes_back_typed_also_from_the_journal(store: Store) -> None:
    def reply(ask: Ask) -> Settled:
        return Settled("ok", value=msgspec.Raw(b'{"tasks": []}'))

    for _ in range(2):
        answer = await (await stage(store, FakeDesk(reply))).ask_for(Plan, "boss", "plan!")
        assert answer.value == Plan(())


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(turns=3), "budget: 3 turns"),
        (Budget(messages=6), "budget: 6 messages"),
    ],
)
async def test_a_budget_ends_the_stage_and_survives_a_resume(
    store: Store, budget: Budget, reason: str
) -> None:
    desk = FakeDesk(echo)
    for _ in range(2):  # the second life finds three turns spent
        here = await stage(store, desk, budget=budget)
        for n in range(3):
            await here.ask("ann", str(n))
        with pytest.raises(StageEnded, match=reason):
            await here.ask("ann", "one more")
    assert len(desk.effects) == 3


async def test_time_is_a_budget_too(store: Store) -> None:
    clock = VirtualClock()
    here = await stage(store, FakeDesk(echo), budget=Budget(minutes=2), clock=clock)
    await here.ask("ann", "a")
    await clock.advance(121)
    with pytest.raises(StageEnded, match="budget: 2 minutes"):
        await here.ask("ann", "b")


async def test_a_limit_inside_ask_all_ends_it_with_one_reason(store: Store) -> None:
    here = await stage(store, FakeDesk(echo), budget=Budget(turns=2))
    with pytest.raises(StageEnded, match="budget: 2 turns"):
        await here.ask_all([Ask("ann", str(n)) for n in range(5)])


def play_reply(ask: Ask) -> Settled:
    """A manager with a plan of two tasks, and workers who do them."""
    if ask.to == "boss" and "Split this request" in ask.message:
        tasks = [
            {"task_id": t, "agent": "ann", "description": t, "scope": [t]} for t in ("t1", "t2")
        ]
        return Settled("plan", value=msgspec.Raw(msgspec.json.encode({"tasks": tasks})))
    return echo(ask)


async def play(where: Stage) -> Outcome:
    cast = {MANAGER: ("boss",), WORKER: ("ann",)}
    return await ManagerWorker().run(where, cast, "mend it", Options())


@pytest.mark.parametrize("death", range(6))
async def test_a_run_killed_at_any_step_ends_the_same_and_does_nothing_twice(
    store: Store, death: int
) -> None:
    async with await Store.in_memory() as other:
        whole = FakeDesk(play_reply)
        expected = await play(await stage(other, whole))
    dying = FakeDesk(play_reply, die_before=death)
    if death < len(whole.effects):
        with pytest.raises(Killed):
            await play(await stage(store, dying))
    resumed = FakeDesk(play_reply)
    assert await play(await stage(store, resumed)) == expected
    done = [*dying.effects, *resumed.effects]
    # What was under way when the process died is asked for again; what was settled is not.
    assert set(done) == set(whole.effects)
    assert len(done) - len(set(done)) <= 1
