"""Runs that are cut off anywhere end like those that are not: the same tree, everything once."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs.state import RunStatus
from tests.chaos.crashing import (
    cut_off_around_commits,
    files_of,
    half_made,
    killed_and_resumed,
)
from tests.chaos.driving import ask_of, flow, judged, order, rests, tree_of, writing
from tests.chaos.snapshots import Side
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D3", "D4", "D18", "D19")]

MOMENTS = [(commit, side) for commit in range(1, 50) for side in Side]
"""The team's run takes a few commits more, depending on who shares one."""


async def test_a_run_goes_on_from_either_side_of_a_commit(tmp_path: Path) -> None:
    sample = random.Random(1).sample(MOMENTS, 9)
    assert await cut_off_around_commits(tmp_path, only=sample) >= 9


async def test_a_revision_that_was_cut_off_starts_again_from_what_the_first_turn_left(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hi\n", "gone.txt": "x\n"})
    found: list[dict[str, str]] = []
    spoilt = anyio.Event()

    async def coder(turn: Turn) -> str:
        tree = tree_of(turn)
        found.append({path.name: path.read_text() for path in tree.glob("*.txt")})
        if not turn.revision:
            (tree / "greeting.txt").write_text("draft\n")
            (tree / "new.txt").write_text("new\n")
            (tree / "gone.txt").unlink()
        elif turn.attempt == 1:
            (tree / "greeting.txt").write_text("spoilt\n")
            (tree / "new.txt").unlink()
            (tree / "gone.txt").mkdir()
            spoilt.set()
            await anyio.sleep_forever()
        else:
            (tree / "greeting.txt").write_text("hello\n")
        return "Done."

    async with engine_on(root, functions={"coder": coder}) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        ask = await ask_of(engine, run_id)
        await engine.answer(ask.ask_id, PersonAnswer({"decision": "revise", "reason": "more"}))
        await spoilt.wait()
    async with engine_on(root, functions={"coder": coder}, resume=True) as engine:
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    draft = {"greeting.txt": "draft\n", "new.txt": "new\n"}
    assert found == [{"greeting.txt": "hi\n", "gone.txt": "x\n"}, draft, draft]
    assert files_of(root) == {"greeting.txt": "hello\n", "new.txt": "new\n"}


async def test_what_a_crash_left_half_made_is_gone_when_the_run_goes_on(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hi\n"})
    begun = anyio.Event()

    async def coder(turn: Turn) -> str:
        if turn.attempt == 1:
            begun.set()
            await anyio.sleep_forever()
        return str(writing("greeting.txt", "hello\n")(turn))

    async with engine_on(root, functions={"coder": coder}) as engine:
        run_id = await engine.start(order(flow()))
        await begun.wait()
    home = root / ".agentcanvas"
    for name in (
        "sandboxes/{}/.evidence-1",
        "sandboxes/{}/coder/diff-1",
        "generations/{}/g1.growing",
    ):
        (home / name.format(run_id) / "tree").mkdir(parents=True)
    assert len(half_made(root)) == 3
    async with engine_on(root, functions={"coder": coder}, resume=True) as engine:
        await rests(engine, run_id)
        assert half_made(root) == []
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_whose_process_is_killed_goes_on_in_another(tmp_path: Path, seed: int) -> None:
    killed_and_resumed(tmp_path, seed)
