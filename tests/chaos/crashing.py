"""Cutting the team's run off, by snapshots of its workspace and by SIGKILL, and what holds then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from agentcanvas.app.office import open_engine
from agentcanvas.clock import Clock
from agentcanvas.flows.model import Flow
from agentcanvas.runs import allowance, execution
from agentcanvas.runs import events as e
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.state import RunStatus, TaskStatus
from agentcanvas.sandbox.process_tree import end_leftovers
from tests.chaos.snapshots import Moment, Snapshots
from tests.runs import crash_child
from tests.runs.workspaces import git

PROJECT = Path(__file__).parents[2]
TURNS = 10
"""What the team needs: a plan and a summary, four turns of work, four reviews."""
ENDED = "quality_gate: tests_passed >= 1"
HALF_MADE = (".evidence-*", "*.growing", ".claim-*", "diff-*", "prompt-*")


# -- around a commit, in process ------------------------------------------------------------------


async def cut_off_around_commits(folder: Path, only: Collection[Moment] | None = None) -> int:
    """Play the run once, then go on from both sides of its commits; gives how many that were."""
    root = crash_child.workspace(folder / "repo")
    snapshots = Snapshots(root, folder / "snapshots", only)
    async with open_engine(root, functions=crash_child.FUNCTIONS) as (engine, _):
        with snapshots.around_every_commit():
            run_id = await engine.start(crash_child.order(crash_child.python_flow()))
            await has_ended(engine, run_id)
        await holds(engine, run_id, root)
    for snapshot in snapshots.taken:
        snapshots.put_back(snapshot)
        with meters() as made:
            async with open_engine(root, functions=crash_child.FUNCTIONS, resume=True) as (
                engine,
                _,
            ):
                if not await engine.runs():
                    continue  # before the run was on record, nobody was promised anything
                await has_ended(engine, run_id)
                await holds(engine, run_id, root)
        assert [meter.turns for meter in made] in ([], [TURNS]), snapshot.name
    return len(snapshots.taken)


@contextmanager
def meters() -> Iterator[list[Meter]]:
    """The meters of the runs that are carried out inside the block."""
    made: list[Meter] = []
    make = allowance.meter_of

    def kept(flow: Flow, before: Sequence[e.Recorded], clock: Clock) -> Meter:
        made.append(make(flow, before, clock))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "meter_of", kept)
        yield made


# -- anywhere, by the kernel ----------------------------------------------------------------------


def killed_and_resumed(folder: Path, seed: int) -> None:
    """Kill the process of a run after some events, the next one too, and let the third end it."""
    root = crash_child.workspace(folder / "repo")
    chance = random.Random(seed)
    for _ in range(2):
        _kill_after(root, chance.randrange(1, 60))
    with _child(root) as child:
        child.communicate()
        assert child.returncode == 0
    anyio.run(_look_back, root)


def _kill_after(root: Path, lines: int) -> None:
    with _child(root) as child:
        assert child.stdout is not None
        for _ in range(lines):
            if not child.stdout.readline():
                break
        child.send_signal(signal.SIGKILL)


def _child(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runs.crash_child", str(root)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"},
    )


async def _look_back(root: Path) -> None:
    sandboxes = root / ".agentcanvas" / "sandboxes"
    assert await end_leftovers(str(sandboxes)) == 0
    async with open_engine(root) as (engine, _):
        (run,) = await engine.runs()
        await holds(engine, run.run_id, root)


# -- what holds -----------------------------------------------------------------------------------


async def has_ended(engine: Engine, run_id: str) -> None:
    """Return when the run has come to its end."""
    async for _ in engine.events(run_id):
        pass


async def holds(engine: Engine, run_id: str, root: Path) -> None:
    """Whatever happened on the way, it has come to this, and nothing happened twice."""
    state = await engine.state(run_id)
    assert (state.status, state.reason) == (RunStatus.DONE, ENDED)
    assert {task.status for task in state.tasks.values()} == {TaskStatus.APPLIED}
    assert files_of(root) == crash_child.FINAL
    assert git(root, "diff", "--cached", "--name-only") == ""
    entries = [entry async for entry in engine.events(run_id, follow=False)]
    happened = Counter(map(_what, entries))
    for what, times in ONCE_EACH.items():
        assert happened[what] == times, what
    repeated = {what: n for what, n in happened.items() if what[0] == "turn_ended" and n > 1}
    assert repeated == {}
    assert sum(n for what, n in happened.items() if what[0] == "turn_ended") == TURNS
    assert transactions(root) == [f"{run_id}.{name}" for name in ("t1.r1", "t2.r0", "t3.r0")]
    assert half_made(root) == []


ONCE_EACH = {
    ("run_started", ""): 1,
    ("interaction_started", ""): 1,
    ("interaction_ended", ""): 1,
    ("run_ended", ""): 1,
    ("proposal_submitted", "t1"): 2,
    ("proposal_applied", "t1"): 1,
    ("proposal_applied", "t2"): 1,
    ("proposal_applied", "t3"): 1,
    ("proposal_reviewed", "t1"): 2,
    ("proposal_reviewed", "t2"): 1,
    ("proposal_reviewed", "t3"): 1,
    ("task_dispatched", "t1"): 2,
    ("task_dispatched", "t2"): 1,
    ("task_dispatched", "t3"): 1,
}


def _what(entry: e.Recorded) -> tuple[str, str]:
    payload = getattr(entry.event, "payload", None)
    name = getattr(payload, "turn_id", "") or getattr(payload, "task_id", "")
    return e.kind_of(entry.event), name


def files_of(root: Path) -> dict[str, str]:
    """The user's files, with what is in them."""
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and not {".git", ".agentcanvas"} & set(path.relative_to(root).parts)
    }


def transactions(root: Path) -> list[str]:
    """What reached the workspace, by the journals of the door to it."""
    journals = (root / ".agentcanvas" / "apply").glob("*/journal.json")
    return sorted(journal.parent.name for journal in journals)


def half_made(root: Path) -> list[str]:
    """What somebody began in the workspace's own folder and nobody has taken away."""
    home = root / ".agentcanvas"
    return [
        path.relative_to(home).as_posix()
        for pattern in HALF_MADE
        for path in home.rglob(pattern)
        if "work" not in path.parts
    ]
