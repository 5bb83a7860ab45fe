"""Sandboxes: filled from a generation, found again, taken back (S1, S3, D15, D18)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.sandbox.generation import Generation, take_generation
from agentcanvas.sandbox.manifest import scan
from agentcanvas.sandbox.prepare import (
    copy_generation,
    discard_sandbox,
    open_sandbox,
    prepare_sandbox,
    restore_work,
)
from tests.sandbox.conftest import RUN, git, tree_of, write

pytestmark = pytest.mark.req("S1")


@pytest.fixture
async def base(workspace: Path) -> Generation:
    return await take_generation(workspace, RUN)


async def test_input_and_work_are_the_workspace(workspace: Path, base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    assert tree_of(sandbox.paths.input_dir) == tree_of(workspace)
    assert tree_of(sandbox.work_dir) == tree_of(workspace)
    for folder in (sandbox.paths.proposal_dir, sandbox.paths.home_dir, sandbox.paths.tmp_dir):
        assert list(folder.iterdir()) == []


async def test_work_keeps_modes_and_times_and_shares_no_file(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    for name in ("README.md", "tool.sh"):
        mine, theirs = (sandbox.work_dir / name).stat(), (workspace / name).stat()
        assert (mine.st_mode, mine.st_mtime_ns) == (theirs.st_mode, theirs.st_mtime_ns)
        assert mine.st_ino != theirs.st_ino
        assert mine.st_nlink == 1


async def test_input_costs_no_copy_and_cannot_be_written(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    file = sandbox.paths.input_dir / "README.md"
    assert file.samefile(base.tree / "README.md")
    assert not stat.S_IMODE(file.stat().st_mode) & 0o222


@pytest.mark.req("S3")
async def test_named_files_and_folders_alone_are_given(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder", ["README.md", "src/deep/"])
    names = {b"README.md", b"src/deep/er/mod.py"}
    assert set(tree_of(sandbox.work_dir)) == names
    assert set(tree_of(sandbox.paths.input_dir)) == names


@pytest.mark.req("S3")
@pytest.mark.parametrize(
    "name",
    ["../README.md", "/etc/passwd", ".git/config", ".agentcanvas/x", "node_modules/x", "dist/x"],
)
async def test_a_file_that_may_not_be_named_is_refused_by_name(base: Generation, name: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        await prepare_sandbox(base, "coder", ["README.md", name])
    assert f"'{name}'" in str(refusal.value)
    assert not (base.workspace / ".agentcanvas/sandboxes").exists()


@pytest.mark.req("S3")
async def test_a_file_that_the_base_does_not_have_is_refused_by_name(base: Generation) -> None:
    with pytest.raises(PathRefused, match=r"'nope\.py' is not in g0"):
        await prepare_sandbox(base, "coder", ["nope.py"])


async def test_a_sandbox_is_not_made_twice(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.work_dir, {"README.md": "half a day's work"})
    with pytest.raises(SandboxError, match="already"):
        await prepare_sandbox(base, "coder")
    assert (sandbox.work_dir / "README.md").read_text() == "half a day's work"


async def test_a_half_made_sandbox_is_made_again(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    sandbox.paths.record.unlink()
    write(sandbox.work_dir, {"half": "made"})
    again = await prepare_sandbox(base, "coder")
    assert b"half" not in tree_of(again.work_dir)


@pytest.mark.req("D18")
async def test_a_sandbox_is_found_again_after_a_restart(base: Generation) -> None:
    made = await prepare_sandbox(base, "a:b")
    assert await open_sandbox(base.workspace, RUN, "a:b") == made


async def test_a_sandbox_that_was_never_made_is_said_so(workspace: Path) -> None:
    with pytest.raises(SandboxError, match="'ghost' has no sandbox"):
        await open_sandbox(workspace, RUN, "ghost")


def vandalise(work: Path) -> None:
    """Do to a tree what an agent can do to it."""
    write(work, {"README.md": "changed", "extra/deep/file": "x", "node_modules/m.js": "m"})
    write(work, {"src/.git/config": "c", "dist/out.js": "o"})
    (work / "src/app.py").unlink()
    (work / "tool.sh").chmod(0o600)
    (work / "src/deep/er/mod.py").unlink()
    (work / "src/deep/er").rmdir()
    (work / "src/deep/er").symlink_to("/etc")
    (work / ".gitignore").unlink()
    (work / ".gitignore").mkdir()
    (work / "closed").mkdir()
    write(work, {"closed/inner": "i"})
    (work / "closed").chmod(0)
    os.mkfifo(work / "pipe")


@pytest.mark.req("D15", "D18")
async def test_work_is_taken_back_to_its_base_whatever_was_done_to_it(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    (sandbox.work_dir / ".git").mkdir()
    untouched = (sandbox.work_dir / "src").stat().st_ino
    vandalise(sandbox.work_dir)
    restored = await restore_work(sandbox)
    assert tree_of(restored.work_dir) == tree_of(workspace)
    assert {p.name for p in restored.work_dir.iterdir()} == {
        ".git",
        ".gitignore",
        "README.md",
        "src",
        "tool.sh",
    }
    assert (sandbox.work_dir / "src").stat().st_ino == untouched
    assert scan(restored.work_dir) == restored.filled
    assert await open_sandbox(base.workspace, RUN, "coder") == restored


@pytest.mark.req("D15")
async def test_work_moves_on_to_a_later_generation_at_the_cost_of_what_changed(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    before = scan(sandbox.work_dir)
    write(workspace, {"src/app.py": "landed\n", "new.py": "n"})
    (workspace / "README.md").unlink()
    later = await take_generation(workspace, RUN, previous=base)
    moved = await restore_work(sandbox, later)
    assert tree_of(moved.work_dir) == tree_of(workspace)
    assert tree_of(moved.paths.input_dir) == tree_of(workspace)
    kept = {path for path, stamp in scan(moved.work_dir).items() if before.get(path) == stamp}
    assert kept == {b".gitignore", b"src/deep/er/mod.py", b"tool.sh"}


async def test_a_restored_choice_of_files_stays_a_choice(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder", ["README.md"])
    write(sandbox.work_dir, {"other": "o"})
    restored = await restore_work(sandbox)
    assert set(tree_of(restored.work_dir)) == {b"README.md"}


async def test_many_agents_prepare_at_once(base: Generation) -> None:
    agents = [f"agent:{number}" for number in range(8)] + ["agent_0", "AGENT_0"]
    roots = []

    async def prepare(agent: str) -> None:
        roots.append((await prepare_sandbox(base, agent)).paths.root)

    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(prepare, agent)
    assert len({str(root).casefold() for root in roots}) == len(agents)
    for root in roots:
        assert tree_of(root / "work") == tree_of(base.workspace)


async def test_a_copy_for_evidence_is_writable(base: Generation, tmp_path: Path) -> None:
    stamps = await copy_generation(base, tmp_path / "evidence")
    assert tree_of(tmp_path / "evidence") == tree_of(base.workspace)
    assert scan(tmp_path / "evidence") == stamps


@pytest.mark.req("D15")
async def test_what_is_handed_in_outlives_the_sandbox(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    vandalise(sandbox.work_dir)
    write(sandbox.paths.proposal_dir, {"changes.patch": "p"})
    await discard_sandbox(sandbox.paths)
    assert {path.name for path in sandbox.paths.root.iterdir()} == {"agent_id", "proposal"}
    assert (base.tree / "README.md").read_text() == "hello\n"


async def test_an_edit_of_the_users_tree_never_reaches_a_sandbox(
    workspace: Path, base: Generation, applied: Callable[[Generation, bytes], Path]
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    with (workspace / "README.md").open("r+") as file:
        file.write("HELLO")
    git(workspace, "checkout", "-q", "-b", "other")
    assert (sandbox.paths.input_dir / "README.md").read_text() == "hello\n"
    assert (sandbox.work_dir / "README.md").read_text() == "hello\n"
