"""A disk that is full for a while interrupts runs; it ends neither them nor the engine."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.agents import host as host_module
from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_engine
from agentcanvas.errors import ApplyFailed
from agentcanvas.runs import events as e
from agentcanvas.runs import landing
from agentcanvas.runs import lives as lives_module
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.state import RunStatus
from agentcanvas.store import Store
from tests.chaos.driving import (
    BY_ITSELF,
    PYTHON,
    flow,
    kinds,
    order,
    payloads,
    rests,
    so_far,
    tree_of,
)
from tests.runs.workspaces import repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D3", "D25")]


class Refusal:
    """Something that happens in the writer's thread and is waited for on the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._happened = asyncio.Event()
        self.wait = self._happened.wait

    def set(self) -> None:
        self._loop.call_soon_threadsafe(self._happened.set)


class Disk:
    """The disk under a store, which has no room while ``is_full``.

    It fills up by itself when an event of the kind ``fills_at`` is written.
    """

    def __init__(self, store: Store, *, fills_at: str = "") -> None:
        self.is_full = False
        self.fills_at = fills_at
        self.refused = Refusal()
        self._connection = store._writer._connection
        store._writer._connection = self  # type: ignore[assignment] # stands in for a full disk

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if self.fills_at and values and self.fills_at in values[0]:
            self.is_full, self.fills_at = True, ""
        if sql == "COMMIT" and self.is_full:
            self.refused.set()
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lives_module, host_module):
        monkeypatch.setattr(module, "_AGAIN_AFTER_S", 0.01)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hi\n"})


class Coder:
    """Writes the greeting; each turn is held until it may go on."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go_on = anyio.Event()
        self.turns = 0

    async def __call__(self, turn: Turn) -> str:
        self.turns += 1
        self.begun.set()
        await self.go_on.wait()
        (tree_of(turn) / "greeting.txt").write_text("hello\n")
        return "I wrote greeting.txt."


async def at_rest(engine: Engine, run_id: str) -> None:
    """Wait until nobody in this process carries a run out."""
    while run_id in engine._lives:
        await engine._lives._lives[run_id].over.wait()


async def test_an_answer_waits_for_room_and_is_not_worked_out_anew(root: Path) -> None:
    coder = Coder()
    async with open_engine(root, functions={"coder": coder}) as (engine, store):
        disk = Disk(store)
        run_id = await engine.start(order(flow(review=BY_ITSELF)))
        await coder.begun.wait()
        disk.is_full = True
        coder.go_on.set()
        await disk.refused.wait()
        disk.is_full = False
        entries = await rests(engine, run_id)
        assert "run_interrupted" not in kinds(entries)
        assert (coder.turns, kinds(entries).count("proposal_applied")) == (1, 1)


@pytest.mark.req("H8")
async def test_whoever_watches_is_told_once_what_an_answer_waits_for(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    coder = Coder()
    async with open_engine(root, functions={"coder": coder}) as (engine, store):
        disk = Disk(store)
        run_id = await engine.start(order(flow(review=BY_ITSELF)))
        await coder.begun.wait()
        disk.is_full = True
        coder.go_on.set()
        for _ in range(3):  # it is tried again and again
            await disk.refused.wait()
            disk.refused = Refusal()
        disk.is_full = False
        await rests(engine, run_id)
    (said,) = [each for each in caplog.messages if "cannot be recorded; it waits" in each]
    assert "what coder did" in said
    assert "Its sandbox holds" in said
    assert "agentcanvas sandbox list. Ctrl-C, or agentcanvas stop, ends the run" in said


async def test_a_run_on_a_full_disk_is_interrupted_and_goes_on_when_there_is_room(
    root: Path,
) -> None:
    first, second = Coder(), Coder()
    functions = {"first": first, "second": second}
    async with open_engine(root, functions=functions) as (engine, store):
        runs = []
        for name, coder in functions.items():
            task = {"id": name, "agent": name, "description": "Say hello"}
            text = flow({name: PYTHON}, tasks=[task], review=BY_ITSELF)
            runs.append(await engine.start(order(text)))
            await coder.begun.wait()
        disk = Disk(store, fills_at="proposal_submitted")
        first.go_on.set()
        await at_rest(engine, runs[0])
        assert runs[1] in engine._lives  # the other one has nothing to write now, and goes on
        disk.is_full = False
        assert kinds(await rests(engine, runs[0]))[-2:] == ["warning", "run_interrupted"]
        await engine.resume(runs[0])
        entries = await rests(engine, runs[0])
        assert (first.turns, kinds(entries).count("proposal_applied")) == (1, 1)
        second.go_on.set()
        await rests(engine, runs[1])
        for run_id in runs:
            (ended,) = payloads(await so_far(engine, run_id), e.RunEnded)
            assert not ended.reason.startswith("error"), ended.reason


async def test_a_change_that_has_no_room_to_land_lands_when_there_is_room(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land, tries = Ground.land, 0

    async def without_room(ground: Ground, *about: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ApplyFailed("The workspace was left as it was: No space left on device.")
        return await land(ground, *about)

    monkeypatch.setattr(Ground, "land", without_room)
    monkeypatch.setattr(landing, "is_full", lambda _: tries == 1)
    coder = Coder()
    task = {"id": "t1", "agent": "coder", "description": "Say hello"}
    text = flow({"coder": PYTHON}, tasks=[task], review=BY_ITSELF)
    async with open_engine(root, functions={"coder": coder}) as (engine, _):
        run_id = await engine.start(order(text))
        coder.go_on.set()
        entries = await rests(engine, run_id)
        assert kinds(entries)[-2:] == ["warning", "run_interrupted"]
        warned = payloads(entries, e.WarningGiven)[-1].sentence
        assert "The disk is full, so t1 could not land and nothing was changed" in warned
        await engine.resume(run_id)
        entries = await rests(engine, run_id)
    assert (coder.turns, kinds(entries).count("proposal_applied")) == (1, 1)
    assert (root / "greeting.txt").read_text() != "hi\n"


async def test_stopping_a_run_on_a_full_disk_says_so_and_stops_it(root: Path) -> None:
    coder = Coder()
    async with open_engine(root, functions={"coder": coder}) as (engine, store):
        disk = Disk(store)
        run_id = await engine.start(order(flow(review=BY_ITSELF)))
        await coder.begun.wait()
        disk.is_full = True
        await engine.stop(run_id)
        assert run_id not in engine._lives
        disk.is_full = False
        assert kinds(await rests(engine, run_id))[-1] == "run_interrupted"
        await engine.stop(run_id)
        assert (await engine.state(run_id)).status is RunStatus.STOPPED


async def test_a_full_disk_keeps_no_engine_from_ending(root: Path) -> None:
    coder = Coder()
    async with open_engine(root, functions={"coder": coder}) as (engine, store):
        run_id = await engine.start(order(flow(review=BY_ITSELF)))
        await coder.begun.wait()
        Disk(store).is_full = True
    async with open_engine(root, functions={"coder": coder}) as (engine, _):
        assert (await engine.state(run_id)).status is RunStatus.INTERRUPTED


@pytest.mark.req("D7")
async def test_what_a_full_disk_kept_from_being_told_is_told_when_there_is_room(
    root: Path,
) -> None:
    coder = Coder()
    coder.go_on.set()
    async with open_engine(root, functions={"coder": coder}) as (engine, store):
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        (root / "greeting.txt").write_text("good day\n")
        disk = Disk(store)
        for disk.is_full in (True, False):
            await engine.look_again()
        told = payloads(await so_far(engine, run_id), e.ProposalRechecked)
        assert [each.fitness for each in told] == ["conflicts"]
