"""One agent, one task: from the request to the workspace and back, in a real repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.report import markdown
from agentcanvas.runs.state import RunStatus, TaskStatus
from tests.runs.workspaces import engine_on, git, order, repository, solo

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n", "README.md": "# Hi\n"})


async def until_it_rests(engine: Engine, run_id: str, after: int = 0) -> list[e.Recorded]:
    return [entry async for entry in engine.events(run_id, after=after)]


async def judged(engine: Engine, run_id: str, **verdict: str) -> list[e.Recorded]:
    """Answer the one ask that waits, and see how it goes on."""
    (ask,) = await engine.asks(run_id)
    seen = [entry async for entry in engine.events(run_id, follow=False)]
    await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
    return await until_it_rests(engine, run_id, seen[-1].seq)


@pytest.mark.req("S7", "V4", "D6", "D25")
async def test_a_change_lands_when_you_say_so_and_not_before(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo hello world > greeting.txt")))
        await until_it_rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.status is RunStatus.PARKED
        assert state.waits_for.startswith("you: Apply the change of Coder")
        assert (root / "greeting.txt").read_text() == "hello\n"
        assert b"+hello world" in await engine.patch(run_id, "t1")
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.DONE, "quality_gate: tests_passed >= 1")
        assert state.tasks["t1"].status is TaskStatus.APPLIED
        assert (root / "greeting.txt").read_text() == "hello world\n"
        assert git(root, "status", "--porcelain") == "M greeting.txt"
        (undone,) = await engine.undo(run_id)
        assert undone.files == ("greeting.txt",)
        assert (root / "greeting.txt").read_text() == "hello\n"
        report = markdown([entry async for entry in engine.events(run_id, follow=False)])
        assert "### Coder — Greet the world" in report
