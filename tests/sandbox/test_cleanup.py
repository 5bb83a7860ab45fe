"""Clean-up: what may go, what never goes, what it says, and being cut off in the middle (D15)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox import cleanup
from agentcanvas.sandbox.cleanup import (
    NOTHING,
    Going,
    Keep,
    Plan,
    Standing,
    clean_up,
    finish_removals,
    plan_cleanup,
)
from agentcanvas.sandbox.confine import Command, Confinement
from agentcanvas.sandbox.disk import DiskUse, RunUse, disk_use, in_words, runs_on_disk, trash_folder
from agentcanvas.sandbox.generation import load_generation, take_generation
from agentcanvas.sandbox.paths import generations_folder
from agentcanvas.sandbox.pool import pooled_trees
from agentcanvas.sandbox.prepare import Sandbox, open_sandbox, prepare_sandbox, retire_sandbox
from agentcanvas.sandbox.process import start_confined
from agentcanvas.sandbox.trees import remove_path
from agentcanvas.sandbox.views import worker_view
from tests.sandbox.conftest import tree_of, write

pytestmark = pytest.mark.req("D15")


def run_id(number: int) -> str:
    return f"run_202602{number:02}_100000"


async def make_run(workspace: Path, number: int, *, proposal: bool = True) -> Sandbox:
    """Make what a run leaves behind: a generation, a sandbox that was worked in, a proposal."""
    base = await take_generation(workspace, run_id(number))
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.work_dir, {"README.md": f"run {number}", "made.bin": b"x" * 200_000})
    if proposal:
        write(sandbox.paths.proposal_dir, {"changes.patch": f"patch {number}"})
    return sandbox


def settled(*numbers: int) -> dict[str, Standing]:
    return {run_id(number): Standing.SETTLED for number in numbers}


def going(plan: Plan) -> list[str]:
    return [run.run_id for run in plan.going]


async def test_the_newest_runs_stay_and_older_ones_go_the_oldest_first(workspace: Path) -> None:
    for number in range(1, 6):
        await make_run(workspace, number)
    plan = await plan_cleanup(workspace, settled(1, 2, 3, 4, 5), Keep(runs=2))
    assert going(plan) == [run_id(1), run_id(2), run_id(3)]
    assert [run.run_id for run in plan.staying] == [run_id(5), run_id(4)]


async def test_what_goes_is_said_before_and_is_what_becomes_free(workspace: Path) -> None:
    for number in range(1, 4):
        await make_run(workspace, number)
    before = await disk_use(workspace)
    plan = await plan_cleanup(workspace, settled(1, 2, 3), Keep(runs=1))
    assert (await disk_use(workspace)).bytes == before.bytes  # a plan touches nothing
    assert plan.going[0].largest[0].path == f".agentcanvas/sandboxes/{run_id(1)}/coder/work"
    await clean_up(workspace, plan)
    after = await disk_use(workspace)
    assert before.bytes - after.bytes == pytest.approx(plan.frees, abs=40_000)  # folders of folders
    assert plan.frees > 2 * 200_000
    assert going(await plan_cleanup(workspace, settled(1, 2, 3), Keep(runs=1))) == []


async def test_proposals_are_never_removed(workspace: Path) -> None:
    sandbox = await make_run(workspace, 1)
    await clean_up(workspace, await plan_cleanup(workspace, settled(1), NOTHING))
    assert {path.name for path in sandbox.paths.root.iterdir()} == {"agent_id", "proposal"}
    assert (sandbox.paths.proposal_dir / "changes.patch").read_text() == "patch 1"
    assert not generations_folder(workspace, run_id(1)).exists()
    await make_run(workspace, 2, proposal=False)
    await clean_up(workspace, await plan_cleanup(workspace, settled(1, 2), NOTHING))
    assert runs_on_disk(workspace) == [run_id(1)]


async def test_what_is_not_settled_never_goes(workspace: Path) -> None:
    sandbox = await make_run(workspace, 1)
    standings = {run_id(1): Standing.OPEN}
    plan = await plan_cleanup(workspace, standings, NOTHING)
    assert (going(plan), plan.frees) == ([], 0)
    assert plan.staying[0].reason == "not settled yet"
    await clean_up(workspace, plan)
    assert (sandbox.work_dir / "README.md").read_text() == "run 1"
    await open_sandbox(workspace, run_id(1), "coder")


async def test_a_run_nobody_knows_stays_while_it_has_work_in_it(workspace: Path) -> None:
    await make_run(workspace, 1)
    base = await take_generation(workspace, run_id(2))
    await prepare_sandbox(base, "idle")
    broken = await make_run(workspace, 3)
    remove_path(broken.base.folder / "generation.msgpack")
    plan = await plan_cleanup(workspace, {}, NOTHING)
    assert going(plan) == [run_id(2)]
    reasons = {run.run_id: run.reason for run in plan.staying}
    assert reasons == {
        run_id(1): "coder has changes that were never handed in",
        run_id(3): "coder has changes that were never handed in",
    }


async def test_a_run_whose_processes_live_stays(workspace: Path, confinement: Confinement) -> None:
    sandbox = await make_run(workspace, 1)
    view = worker_view(sandbox)
    command = Command(("/bin/sh", "-c", "echo up; exec sleep 100"), tag=str(view.home))
    announced = await plan_cleanup(workspace, settled(1), NOTHING)
    async with start_confined(confinement, view, command) as process:
        async for _ in process:
            break
        plan = await plan_cleanup(workspace, settled(1), NOTHING)
        assert plan.staying[0].reason == "its processes still run"
        await clean_up(workspace, announced)  # announced before the process came to life
        assert (sandbox.work_dir / "made.bin").exists()
    assert going(await plan_cleanup(workspace, settled(1), NOTHING)) == [run_id(1)]


async def test_the_pool_goes_first_when_the_disk_is_to_be_freed(workspace: Path) -> None:
    sandbox = await make_run(workspace, 1)
    await retire_sandbox(sandbox)
    await make_run(workspace, 2)
    plan = await plan_cleanup(workspace, settled(1, 2), Keep(runs=10, bytes=10**9))
    assert (plan.pool, going(plan)) == (0, [])
    use = await disk_use(workspace)
    plan = await plan_cleanup(workspace, settled(1, 2), Keep(runs=10, bytes=use.bytes - 1))
    assert plan.pool > 0
    assert going(plan) == []
    await clean_up(workspace, plan)
    assert pooled_trees(workspace) == []


@pytest.mark.parametrize("step", range(9))
async def test_a_removal_that_is_cut_off_never_looks_whole_and_is_finished_next_time(
    workspace: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_run(workspace, 1)
    kept = await make_run(workspace, 2)
    left = iter(range(step))

    def failing(path: Path) -> None:
        """Remove half of a tree, then fail, as a killed process would."""
        if next(left, None) is None:
            halves = sorted(path.iterdir()) if path.is_dir() else []
            for half in halves[: len(halves) // 2]:
                remove_path(half)
            raise OSError(5, "Input/output error")
        remove_path(path)

    plan = await plan_cleanup(workspace, settled(1, 2), Keep(runs=1))
    with monkeypatch.context() as patch:
        patch.setattr(cleanup, "remove_path", failing)
        with suppress(SandboxError):  # the later steps are beyond its end
            await clean_up(workspace, plan)
    with pytest.raises(SandboxError):
        await open_sandbox(workspace, run_id(1), "coder")
    with pytest.raises(SandboxError):
        await load_generation(workspace, run_id(1), 0)
    again = await plan_cleanup(workspace, settled(1, 2), Keep(runs=1))
    await clean_up(workspace, again)
    assert not trash_folder(workspace).exists()
    proposal = workspace / ".agentcanvas/sandboxes" / run_id(1) / "coder/proposal/changes.patch"
    assert proposal.read_text() == "patch 1"
    assert await open_sandbox(workspace, run_id(2), "coder") == kept


async def test_what_waits_in_the_trash_is_counted_and_emptied(workspace: Path) -> None:
    write(trash_folder(workspace), {"0-work/big": b"x" * 300_000, "1-input/file": "f"})
    plan = await plan_cleanup(workspace, {}, Keep())
    assert plan.trash > 300_000
    assert await finish_removals(workspace) == 2
    assert await finish_removals(workspace) == 0


async def test_a_file_of_several_runs_is_counted_once_for_the_newest(workspace: Path) -> None:
    write(workspace, {"big.bin": b"x" * 1_000_000})
    first = await take_generation(workspace, run_id(1))
    second = await take_generation(workspace, run_id(2), previous=first)
    use = await disk_use(workspace)
    newest, oldest = use.runs
    assert (newest.run_id, oldest.run_id) == (second.run_id, first.run_id)
    assert newest.bytes > 1_000_000 > oldest.bytes
    assert newest.largest[0].path == f".agentcanvas/generations/{run_id(2)}/g0"
    assert use.bytes < 1_500_000
    await clean_up(workspace, await plan_cleanup(workspace, settled(1, 2), Keep(runs=1)))
    assert tree_of(second.tree) == tree_of(workspace)


@given(
    sizes=st.lists(st.integers(0, 10**10), max_size=12),
    held=st.sets(st.integers(0, 11)),
    runs=st.integers(0, 12),
    most=st.integers(0, 5 * 10**10),
)
def test_no_plan_removes_what_is_held_or_more_than_it_has_to(
    sizes: list[int], held: set[int], runs: int, most: int
) -> None:
    names = [run_id(number) for number in range(len(sizes))]
    newest_first = names[::-1]
    reasons = {name: "held" for number, name in enumerate(names) if number in held}
    order = sorted(newest_first, key=lambda name: name not in reasons)
    use = DiskUse(tuple(RunUse(name, sizes[names.index(name)], 0, ()) for name in order), 0, 0)
    plan = cleanup._planned(use, reasons, set(newest_first[:runs]), most)
    gone = going(plan)
    assert not set(gone) & reasons.keys()
    assert sorted(gone + [run.run_id for run in plan.staying]) == names
    left = sum(sizes) - plan.frees
    young = [name for name in gone if name in newest_first[:runs]]
    if young:  # taken only for want of room, the oldest first
        last = max(young)
        assert left + sizes[names.index(last)] > most
    free_to_go = [n for n in names if n not in reasons and sizes[names.index(n)]]
    assert left <= most or set(gone) == set(free_to_go)


def test_sizes_are_said_so_that_people_can_compare_them() -> None:
    assert [in_words(n) for n in (0, 999, 1_500, 2_500_000, 3_100_000_000)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "2.5 MB",
        "3.1 GB",
    ]


@pytest.mark.parametrize("name", ["trash", "pool", "sandboxes", "generations"])
async def test_nothing_is_removed_through_a_link(
    workspace: Path, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "precious"
    write(outside, {"file": "1", f"{run_id(1)}/coder/input/file": "2", ".growing-x/file": "3"})
    before = tree_of(outside)
    (workspace / ".agentcanvas").mkdir()
    (workspace / ".agentcanvas" / name).symlink_to(outside)
    with pytest.raises(SandboxError, match=f"{name} is a link"):
        await clean_up(workspace, await plan_cleanup(workspace, settled(1), NOTHING))
    with pytest.raises(SandboxError, match=f"{name} is a link"):
        await clean_up(workspace, Plan((Going(run_id(1), 1),), (), pool=1, trash=1))
    assert tree_of(outside) == before


async def test_a_link_among_the_runs_and_sandboxes_is_neither(
    workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "precious"
    write(outside, {"work/file": "1", "coder/input/file": "2", "g0/tree/file": "3"})
    before = tree_of(outside)
    folder = (await make_run(workspace, 1)).paths.root
    (folder.parent / "other").symlink_to(outside)
    (folder.parent.parent / run_id(2)).symlink_to(outside)
    plan = await plan_cleanup(workspace, settled(1, 2), NOTHING)
    assert going(plan) == [run_id(1)]
    await clean_up(workspace, plan)
    assert tree_of(outside) == before
