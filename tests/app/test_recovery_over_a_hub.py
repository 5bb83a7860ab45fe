"""What a client does about failures, with a hub of a process of its own in between (H4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agentcanvas import Agent, Task, connect
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import CircuitOpen, TaskFailed
from agentcanvas.hub.breakers import Breakers
from agentcanvas.hub.client import Connection
from agentcanvas.hub.conversations import Client
from agentcanvas.hub.journal import ListJournal
from agentcanvas.hub.recovery import Asking, Breaking, Retrying, WithFallback, WithSuggestions
from agentcanvas.protocol.kinds import RejectReason
from agentcanvas.protocol.limits import AcpRetry, BreakerLimits
from tests.app.hub_process import hub_process, tokens_for, ws

pytestmark = [pytest.mark.anyio, pytest.mark.req("H4", "D31")]

CLOCK = SystemClock()
SOON = AcpRetry(backoff_ms=1)


@asynccontextmanager
async def asking(
    folder: Path, agents: Sequence[Agent], habits: Callable[[Connection], Asking]
) -> AsyncIterator[Client]:
    """Let agents work at a hub, and ask as somebody with habits."""
    tokens = await tokens_for(folder, "me", *(agent.name for agent in agents))
    with hub_process(folder) as (url, _):
        async with AsyncExitStack() as stack:
            for agent in agents:
                working = agent.working(ws(url), token=tokens[agent.name])
                await stack.enter_async_context(working)
            client = connect(ws(url), "me", token=tokens["me"], wrap=habits)
            yield await stack.enter_async_context(client)


def failing(name: str, times: int) -> tuple[Agent, list[str]]:
    """Return an agent that fails so often before it does what it is asked; and its tasks."""
    agent, tasks = Agent(name), list[str]()

    @agent.task("work")
    async def work(task: Task) -> object:
        tasks.append(task.id)
        if len(tasks) <= times:
            raise ZeroDivisionError
        return {"by": name}

    return agent, tasks


async def test_a_task_that_ended_with_an_exception_is_tried_once_more(tmp_path: Path) -> None:
    agent, tasks = failing("worker-1", 1)
    journal = ListJournal()

    def habits(line: Connection) -> Asking:
        return Retrying(line, CLOCK, policy=SOON, journal=journal)

    async with asking(tmp_path, [agent], habits) as client:
        answer = await client.request("worker-1", "work", "x", task_id="t-1")
    assert answer.output == {"by": "worker-1"}
    assert tasks == ["t-1", "t-1.r1"]
    assert [each.choice for each in journal.decisions]


async def test_somebody_else_is_asked_who_can(tmp_path: Path) -> None:
    broken = Agent("worker-1")
    whole, tasks = failing("worker-2", 0)

    @broken.task("work")
    async def refuse(task: Task) -> object:
        task.reject(RejectReason.CAPABILITY_MISMATCH, message="not mine")

    async with asking(
        tmp_path, [broken, whole], lambda line: WithFallback(line, ["worker-2"])
    ) as client:
        answer = await client.request("worker-1", "work", "x", task_id="t-1")
    assert answer.output == {"by": "worker-2"}
    assert tasks == ["t-1@worker-2"]


async def test_who_rejects_is_taken_at_its_word_who_could_do_it(tmp_path: Path) -> None:
    busy = Agent("busy")
    free, tasks = failing("free", 0)

    @busy.task("work")
    async def send_on(task: Task) -> object:
        task.reject(RejectReason.OVERLOADED, ["free"], message="ask another")

    async with asking(tmp_path, [busy, free], WithSuggestions) as client:
        answer = await client.request("busy", "work", "x", task_id="t-1")
    assert answer.output == {"by": "free"}
    assert len(tasks) == 1


async def test_who_failed_too_often_is_left_alone_then_tried_once(tmp_path: Path) -> None:
    agent, tasks = failing("worker-1", 3)
    clock = VirtualClock(jumps=False)
    breakers = Breakers(BreakerLimits(failures=2, half_open_after_ms=30_000))

    def habits(line: Connection) -> Asking:
        return Breaking(line, breakers, clock)

    async with asking(tmp_path, [agent], habits) as client:

        async def fails() -> None:
            with pytest.raises(TaskFailed):
                await client.request("worker-1", "work", "x")

        async def is_left_alone() -> None:
            before = len(tasks)
            with pytest.raises(CircuitOpen):
                await client.request("worker-1", "work", "x")
            assert len(tasks) == before

        await fails()
        await fails()
        await is_left_alone()
        await clock.advance(30)
        await fails()  # the trial
        await is_left_alone()
        await clock.advance(30)
        assert (await client.request("worker-1", "work", "x")).output == {"by": "worker-1"}
        assert (await client.request("worker-1", "work", "x")).output == {"by": "worker-1"}
