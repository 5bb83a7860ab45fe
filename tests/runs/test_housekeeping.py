"""After a run its trees serve the next one, and old runs go: announced, proposals kept (D15)."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from agentcanvas.hub.images import image_path, keep_image
from agentcanvas.protocol.records import BlobRef
from agentcanvas.runs import events as e
from agentcanvas.runs import housekeeping
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.state import RunStatus
from agentcanvas.sandbox.cleanup import Keep, Plan
from agentcanvas.sandbox.pool import pooled_trees
from tests.chaos.driving import BY_ITSELF, flow, judged, order, payloads, rests, so_far, writing
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D15")]

CODER = {"coder": writing("greeting.txt", "hello\n")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hi\n"})


async def one_run(engine: Engine, *, waits: bool = False, images: tuple[BlobRef, ...] = ()) -> str:
    begun = order(flow(review=None if waits else BY_ITSELF))
    run_id = await engine.start(msgspec.structs.replace(begun, images=images))
    await rests(engine, run_id)
    return run_id


def sandbox_of(root: Path, run_id: str) -> Path:
    return root / ".agentcanvas" / "sandboxes" / run_id / "coder"


async def test_the_trees_of_a_run_that_is_over_serve_the_next_one(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        first = await one_run(engine)
        assert (await engine.state(first)).status is RunStatus.DONE
        (tree,) = pooled_trees(root)
        inode = (tree / "work").stat().st_ino
        assert not (sandbox_of(root, first) / "work").exists()
        assert (sandbox_of(root, first) / "proposal" / "proposal.json").is_file()
        (root / "greeting.txt").write_text("hi again\n")
        second = await one_run(engine, waits=True)
        assert pooled_trees(root) == []
        assert (sandbox_of(root, second) / "work").stat().st_ino == inode


async def test_what_waits_keeps_its_trees_also_when_its_run_is_stopped(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await one_run(engine, waits=True)
        await engine.stop(run_id)
        assert (sandbox_of(root, run_id) / "work" / "greeting.txt").read_text() == "hello\n"
        assert pooled_trees(root) == []
        await engine.resume(run_id)
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert len(pooled_trees(root)) == 1


async def test_old_runs_go_announced_with_their_images_and_proposals_stay(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = housekeeping.plan

    async def strict(workspace: Path, standings: object) -> Plan:
        return await plan(workspace, standings, Keep(runs=2))  # type: ignore[arg-type]

    monkeypatch.setattr(housekeeping, "plan", strict)
    state = root / ".agentcanvas"
    shots = [await keep_image(state, b"\x89PNG\r\n\x1a\n" + name) for name in (b"old", b"shared")]
    for shot in shots:
        os.utime(image_path(state, shot), (0, 0))
    async with engine_on(root, functions=CODER) as engine:
        waiting = await one_run(engine, waits=True)
        oldest = await one_run(engine, images=tuple(shots))
        others = [await one_run(engine, images=(shots[1],)) for _ in range(2)]
        (going,) = payloads(await so_far(engine, others[-1]), e.CleaningUp)
        assert going.runs == (oldest,)
        assert going.frees > 0
        assert going.largest[0].path.startswith(f".agentcanvas/generations/{oldest}")
        assert payloads(await so_far(engine, others[0]), e.CleaningUp) == []
    # The engine has gone, and with it the removal that it had begun.
    generations = root / ".agentcanvas" / "generations"
    assert {path.name for path in generations.iterdir()} == {waiting, *others}
    assert (sandbox_of(root, oldest) / "proposal" / "changes.patch").is_file()
    assert (sandbox_of(root, waiting) / "work").is_dir()
    assert not (root / ".agentcanvas" / "trash").exists()
    assert [image_path(state, shot).exists() for shot in shots] == [False, True]


@pytest.mark.req("S7")
async def test_what_landed_can_be_undone_after_its_trees_went(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await one_run(engine)
        assert not (sandbox_of(root, run_id) / "work").exists()
        await engine.undo(run_id)
    assert (root / "greeting.txt").read_text() == "hi\n"
