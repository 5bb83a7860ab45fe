"""The ground of a run: everybody stands on the workspace as it is when they ask (D7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from agentcanvas.clock import SystemClock
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.runs import events as e
from agentcanvas.runs import ground as module
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.sandbox.changes import Change
from agentcanvas.sandbox.generation import Generation, edits_since
from agentcanvas.store import Store
from tests.runs.workspaces import repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D7")]

RUN = "run_20260101_000000"


class Looks:
    """Counts how often the workspace is looked at, and can hold a look up."""

    def __init__(self) -> None:
        self.begun = 0
        self.failures = 0
        self.hold = anyio.Event()
        self.hold.set()
        self.started = anyio.Event()

    async def __call__(self, generation: Generation) -> tuple[Change, ...]:
        self.begun += 1
        found = await edits_since(generation)
        self.started.set()
        await self.hold.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is away")
        return found


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    counted = Looks()
    monkeypatch.setattr(module, "edits_since", counted)
    return counted


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    async def tell(run_id: str, event: e.RunEvent) -> None:
        del run_id, event

    root, clock = repository(tmp_path / "repo", {"a.txt": "a\n"}), SystemClock()
    async with (
        await Store.in_memory(clock=clock) as store,
        EmbeddedBroker.open(store, clock=clock) as broker,
    ):
        logbook = Logbook(broker, RUN, f"flow/{RUN}", clock)
        yield Ground(root, logbook, Lookout(root, tell))


async def all_of(ground: Ground, many: int) -> list[int]:
    found: list[int] = []

    async def one() -> None:
        found.append((await ground.current()).number)

    async with anyio.create_task_group() as tasks:
        for _ in range(many):
            tasks.start_soon(one)
    return found


async def test_those_who_ask_together_share_a_look(ground: Ground, looks: Looks) -> None:
    await ground.current()
    assert await all_of(ground, 20) == [0] * 20
    assert looks.begun == 1


async def test_whoever_asks_while_somebody_looks_gets_a_look_that_begins_later(
    ground: Ground, looks: Looks
) -> None:
    await ground.current()
    looks.hold = anyio.Event()
    found: list[int] = []

    async def late() -> None:
        found.append((await ground.current()).number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ground.current)
        await looks.started.wait()
        (ground.workspace / "a.txt").write_text("edited after the look, before the question\n")
        tasks.start_soon(late)
        tasks.start_soon(late)
        await anyio.wait_all_tasks_blocked()
        looks.hold.set()
    assert (found, looks.begun) == ([1, 1], 2)


async def test_a_look_that_failed_is_nobody_elses_answer(ground: Ground, looks: Looks) -> None:
    await ground.current()
    looks.failures = 1
    outcomes: list[str] = []

    async def one() -> None:
        try:
            outcomes.append((await ground.current()).name)
        except OSError as error:
            outcomes.append(str(error))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
    assert outcomes == ["the disk is away", "g0", "g0"]
    assert looks.begun == 2
