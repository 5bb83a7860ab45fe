"""How ``ask_all`` schedules: close to what is possible at all, and nobody waits for nothing."""

from __future__ import annotations

import random
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Answer, Ask, Fate, Work
from agentcanvas.protocol.plan import Dependency
from agentcanvas.runs.budget import Budget
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import Done
from agentcanvas.store import Store
from tests.runs.fake_desk import FakeDesk, stage

pytestmark = [pytest.mark.req("H7", "D4")]


class Task(msgspec.Struct, frozen=True):
    id: str
    agent: str
    seconds: int
    after: tuple[str, ...] = ()


class Span(msgspec.Struct, frozen=True):
    task: Task
    began: float
    ended: float


class TimedDesk(FakeDesk):
    """Takes as long as each task takes, and notes when."""

    def __init__(self, clock: VirtualClock, tasks: list[Task]) -> None:
        self._tasks = {task.id: task for task in tasks}
        super().__init__(clock=clock, seconds=lambda ask: self._tasks[ask.message].seconds)
        self._time = clock
        self.spans: dict[str, Span] = {}

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        began = self._time.monotonic()
        done = await super().ask(step, ask, schema)
        task = self._tasks[ask.message]
        self.spans[task.id] = Span(task, began, self._time.monotonic())
        return done


async def _carried_out(tasks: list[Task], parallel: int) -> dict[str, Span]:
    clock = VirtualClock()
    async with await Store.in_memory(clock=clock) as store:
        desk = TimedDesk(clock, tasks)
        here = await stage(store, desk, clock=clock, parallel=parallel)
        answers = await here.ask_all([_ask(task) for task in tasks])
        await here.close()
    assert all(answer.done for answer in answers)
    return desk.spans


def _ask(task: Task) -> Ask:
    return Ask(task.agent, task.id, Work(task.id, tuple(map(Dependency, task.after))))


def carried_out(tasks: list[Task], parallel: int) -> dict[str, Span]:
    return anyio.run(_carried_out, tasks, parallel)


def makespan(spans: dict[str, Span]) -> float:
    return max(span.ended for span in spans.values())


def critical_path(tasks: list[Task]) -> float:
    ends: dict[str, float] = {}
    for task in tasks:
        ends[task.id] = task.seconds + max((ends[other] for other in task.after), default=0)
    return max(ends.values())


def bound(tasks: list[Task], parallel: int) -> float:
    """What no schedule can beat; an agent does one task at a time."""
    loads: dict[str, int] = {}
    for task in tasks:
        loads[task.agent] = loads.get(task.agent, 0) + task.seconds
    work = sum(loads.values())
    return max(critical_path(tasks), work / min(len(loads), parallel), *loads.values(), 0)


def random_plan(
    seed: int, count: int, agents: int, *, most_needs: int = 3, most_seconds: int = 60
) -> list[Task]:
    draw = random.Random(seed)
    return [
        Task(
            f"t{n}",
            f"a{draw.randrange(agents)}",
            draw.randint(1, most_seconds),
            tuple(f"t{m}" for m in draw.sample(range(n), min(n, draw.randint(0, most_needs)))),
        )
        for n in range(count)
    ]


def test_two_hundred_tasks_take_little_longer_than_they_must() -> None:
    """Evenly dealt out, so that the bound is the longer of critical path and work per place."""
    draw = random.Random(7)
    tasks = [
        Task(
            f"t{n}",
            f"a{n % 5}",
            draw.randint(50, 60),
            (f"t{draw.randrange(n - 9, n - 4)}",) * (n > 20),
        )
        for n in range(200)
    ]
    work = sum(task.seconds for task in tasks)
    possible = max(critical_path(tasks), work / 5)
    assert makespan(carried_out(tasks, parallel=5)) <= 1.15 * possible


@given(seed=st.integers(0, 10**6), agents=st.integers(1, 10), parallel=st.integers(1, 5))
@settings(max_examples=25)
def test_two_hundred_random_tasks_too(seed: int, agents: int, parallel: int) -> None:
    """With twelve at once and ten tasks an agent, no schedule may come so near to the bound."""
    tasks = random_plan(seed, 200, agents)
    assert makespan(carried_out(tasks, parallel)) <= 1.15 * bound(tasks, parallel)


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 14),
    agents=st.integers(1, 5),
    parallel=st.integers(1, 5),
)
def test_nobody_waits_who_could_work_and_nothing_begins_too_early(
    seed: int, count: int, agents: int, parallel: int
) -> None:
    tasks = random_plan(seed, count, agents, most_seconds=6)
    spans = carried_out(tasks, parallel)
    for mine in spans.values():
        ready = max((spans[other].ended for other in mine.task.after), default=0.0)
        assert mine.began >= ready
        for moment in (span.began for span in spans.values()):
            if not ready <= moment < mine.began:
                continue
            at_work = [span for span in spans.values() if span.began <= moment < span.ended]
            busy = any(span.task.agent == mine.task.agent for span in at_work)
            assert busy or len(at_work) == parallel
    for moment in (span.began for span in spans.values()):
        names = [s.task.agent for s in spans.values() if s.began <= moment < s.ended]
        assert len(names) <= parallel
        assert len(names) == len(set(names)), "one at a time in an agent's sandbox"


def test_who_waits_for_its_agent_takes_nobodys_place() -> None:
    tasks = [Task(f"a{n}", "ann", 10) for n in range(4)] + [Task("b", "bob", 10)]
    spans = carried_out(tasks, parallel=2)
    assert spans["b"].began == 0
    assert makespan(spans) == 40


@pytest.mark.anyio
async def test_asks_without_work_share_an_agent() -> None:
    desk = FakeDesk()
    async with await Store.in_memory() as store:
        here = await stage(store, desk, parallel=3)
        await here.ask_all([Ask("ann", str(n)) for n in range(9)])
    assert desk.most_at_once == 3


@pytest.mark.anyio
async def test_a_cancelled_wait_gives_its_place_back() -> None:
    slots = Slots(1)

    async def hold() -> None:
        async with slots.hold("ann"):
            pass

    async with slots.hold("ann"), anyio.create_task_group() as group:
        group.start_soon(hold)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    with anyio.fail_after(1):
        await hold()


@pytest.mark.anyio
@pytest.mark.req("D19")
async def test_a_budget_that_is_reached_lets_what_has_begun_come_to_its_end() -> None:
    clock = VirtualClock()
    tasks = [Task("a", "ann", 5), Task("b", "bob", 50), Task("c", "cid", 5), Task("d", "dan", 5)]
    async with await Store.in_memory(clock=clock) as store:
        desk = TimedDesk(clock, tasks)
        here = await stage(store, desk, clock=clock, parallel=2, budget=Budget(turns=3))
        answers = await here.ask_all([_ask(task) for task in tasks])
        assert [answer.fate for answer in answers] == [Fate.DONE] * 3 + [Fate.SKIPPED]
        assert answers[3].reason == "budget: 3 turns"
        with pytest.raises(StageEnded, match=r"^budget: 3 turns$"):
            await here.now()
        await here.close()
    assert sorted(desk.spans) == ["a", "b", "c"]
    assert not desk.interrupted


@pytest.mark.anyio
async def test_answers_come_in_the_order_of_the_asks() -> None:
    clock = VirtualClock()
    tasks = [Task("slow", "ann", 9), Task("quick", "bob", 1)]
    async with await Store.in_memory(clock=clock) as store:
        here = await stage(store, TimedDesk(clock, tasks), clock=clock)
        answers = await here.ask_all([_ask(task) for task in tasks])
    assert answers == (
        Answer("ann", "ann heard: slow", Fate.DONE),
        Answer("bob", "bob heard: quick", Fate.DONE),
    )
