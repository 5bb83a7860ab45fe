"""Trees of ended sandboxes become the trees of new ones, whatever was done to them (D15)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox import prepare
from agentcanvas.sandbox.confine import Command, Confinement
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import Generation, take_generation
from agentcanvas.sandbox.manifest import scan
from agentcanvas.sandbox.paths import generations_folder
from agentcanvas.sandbox.pool import MOST_TREES, pool_folder, pooled_trees
from agentcanvas.sandbox.prepare import (
    Sandbox,
    open_sandbox,
    prepare_sandbox,
    retire_sandbox,
)
from agentcanvas.sandbox.process import start_confined
from agentcanvas.sandbox.trees import remove_path
from agentcanvas.sandbox.views import worker_view
from tests.sandbox.conftest import RUN, git, tree_of, write
from tests.sandbox.test_prepare import vandalise

pytestmark = pytest.mark.req("D15")

NEXT = "run_20260220_100000"


@pytest.fixture
async def base(workspace: Path) -> Generation:
    return await take_generation(workspace, RUN)


async def retired(base: Generation, agent: str = "coder") -> Sandbox:
    sandbox = await prepare_sandbox(base, agent)
    (sandbox.work_dir / ".git").mkdir()
    assert await retire_sandbox(sandbox)
    return sandbox


def inodes(tree: Path) -> dict[bytes, int]:
    return {path: stamp[4] for path, stamp in scan(tree).items()}


async def test_a_retired_sandbox_keeps_its_proposal_and_nothing_else(base: Generation) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.paths.proposal_dir, {"changes.patch": "p"})
    assert await retire_sandbox(sandbox)
    assert {path.name for path in sandbox.paths.root.iterdir()} == {"agent_id", "proposal"}
    with pytest.raises(SandboxError, match="has no sandbox"):
        await open_sandbox(base.workspace, RUN, "coder")


async def test_the_next_run_gets_the_trees_and_not_one_byte_of_what_was_done_in_them(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    vandalise(sandbox.work_dir)
    (sandbox.work_dir / "src").chmod(0o2555)
    write(sandbox.paths.home_dir, {".history": "secret"})
    sandbox.paths.sessions_dir.mkdir()
    write(sandbox.paths.sessions_dir, {"s1.json": "secret"})
    assert await retire_sandbox(sandbox)
    later = await take_generation(workspace, NEXT, previous=base)
    again = await prepare_sandbox(later, "writer")
    assert pooled_trees(workspace) == []
    assert tree_of(again.work_dir) == tree_of(workspace)
    assert tree_of(again.paths.input_dir) == tree_of(workspace)
    assert scan(again.work_dir) == again.filled
    names = {".gitignore", "README.md", "src", "tool.sh"}
    assert {path.name for path in again.work_dir.iterdir()} == names
    assert list(again.paths.home_dir.iterdir()) == []
    assert not sandbox.paths.sessions_dir.exists()
    assert (again.work_dir / "src").stat().st_mode & 0o7700 == 0o700
    assert (await make_patch(again)).changes == ()
    assert await open_sandbox(workspace, NEXT, "writer") == again


async def test_untouched_files_are_kept_and_everything_else_is_made_anew(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    before = scan(sandbox.work_dir)
    inputs = inodes(sandbox.paths.input_dir)
    write(sandbox.work_dir, {"README.md": "by the agent"})
    assert await retire_sandbox(sandbox)
    write(workspace, {"src/app.py": "by the user\n", "new.py": "n"})
    (workspace / ".gitignore").unlink()
    again = await prepare_sandbox(await take_generation(workspace, NEXT), "writer")
    kept = {path for path, stamp in scan(again.work_dir).items() if before.get(path) == stamp}
    assert kept == {b"tool.sh", b"src/deep/er/mod.py"}
    same = {p for p, inode in inodes(again.paths.input_dir).items() if inputs.get(p) == inode}
    assert same == {b"tool.sh", b"src/deep/er/mod.py", b"README.md"}
    assert tree_of(again.work_dir) == tree_of(workspace)
    assert tree_of(again.paths.input_dir) == tree_of(workspace)


async def test_an_edit_that_hides_its_traces_is_not_passed_on(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    file = sandbox.work_dir / "README.md"
    times = file.stat()
    file.write_text("HELLO\n")  # as long as before
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    (sandbox.work_dir / "linked").hardlink_to(sandbox.work_dir / "tool.sh")
    assert await retire_sandbox(sandbox)
    again = await prepare_sandbox(await take_generation(workspace, NEXT), "writer")
    assert (again.work_dir / "README.md").read_text() == "hello\n"
    assert (again.work_dir / "tool.sh").stat().st_nlink == 1


async def test_what_was_noted_on_folders_is_not_passed_on(
    workspace: Path, base: Generation
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    for folder in (sandbox.work_dir, sandbox.work_dir / "src"):
        folder.chmod(0o777)
        try:
            os.setxattr(folder, "user.note", b"from the run before")
        except OSError:
            pytest.skip("this disk keeps no attributes")
    assert await retire_sandbox(sandbox)
    again = await prepare_sandbox(await take_generation(workspace, NEXT, previous=base), "writer")
    for folder in (again.work_dir, again.work_dir / "src"):
        assert os.listxattr(folder) == []
        assert folder.stat().st_mode & 0o777 == 0o755
    assert scan(again.work_dir) == again.filled


@pytest.mark.parametrize("where", ["pkg", "pkg/a", "pkg/a/node_modules"])
async def test_a_sandbox_that_is_given_up_takes_nothing_along_that_its_links_lead_to(
    workspace: Path, where: str
) -> None:
    """An agent may replace the folder above its dependencies by a link to the user's own."""
    write(workspace, {".gitignore": "node_modules\n", "pkg/a/package.json": "{}"})
    write(workspace, {"pkg/a/node_modules/left/index.js": "precious"})
    base = await take_generation(workspace, RUN)
    assert base.not_compared == {b"pkg/a/node_modules"}
    sandbox = await prepare_sandbox(base, "coder")
    remove_path(sandbox.work_dir / where)
    (sandbox.work_dir / where).symlink_to(workspace / where)
    assert await retire_sandbox(sandbox)
    assert (workspace / "pkg/a/node_modules/left/index.js").read_text() == "precious"
    again = await prepare_sandbox(await take_generation(workspace, NEXT), "writer")
    assert scan(again.work_dir) == again.filled
    assert not (again.work_dir / "pkg/a/node_modules").exists()


async def test_the_generation_a_tree_came_from_need_not_be_there_any_more(
    workspace: Path, base: Generation
) -> None:
    sandbox = await retired(base)
    remove_path(generations_folder(workspace, RUN))
    again = await prepare_sandbox(await take_generation(workspace, NEXT), "writer")
    assert tree_of(again.work_dir) == tree_of(workspace)
    assert tree_of(again.paths.input_dir) == tree_of(workspace)
    assert not sandbox.work_dir.exists()


async def test_a_workspace_that_was_copied_elsewhere_is_not_taken_for_the_same(
    workspace: Path, base: Generation, tmp_path: Path
) -> None:
    await retired(base)
    other = tmp_path / "other"
    shutil.copytree(workspace, other, symlinks=True)
    write(other, {"README.md": "HELLO\n"})
    sandbox = await prepare_sandbox(await take_generation(other, NEXT), "coder")
    assert tree_of(sandbox.work_dir) == tree_of(other)


async def test_a_sandbox_whose_processes_live_is_not_given_up(
    base: Generation, confinement: Confinement
) -> None:
    sandbox = await prepare_sandbox(base, "coder")
    view = worker_view(sandbox)
    command = Command(("/bin/sh", "-c", "echo up; exec sleep 100"), tag=str(view.home))
    async with start_confined(confinement, view, command) as process:
        async for _ in process:
            break
        with pytest.raises(SandboxError, match="still run"):
            await retire_sandbox(sandbox)
        assert sandbox.paths.record.exists()
    assert await retire_sandbox(sandbox)


async def test_a_choice_of_files_and_a_full_pool_are_just_removed(base: Generation) -> None:
    part = await prepare_sandbox(base, "part", ["README.md"])
    assert not await retire_sandbox(part)
    assert not part.work_dir.exists()
    sandboxes = [await prepare_sandbox(base, f"a{number}") for number in range(MOST_TREES + 1)]
    assert [await retire_sandbox(each) for each in sandboxes] == [*[True] * MOST_TREES, False]
    assert len(pooled_trees(base.workspace)) == MOST_TREES
    assert not any(each.work_dir.exists() for each in sandboxes)


async def test_two_sandboxes_never_get_the_same_tree(workspace: Path, base: Generation) -> None:
    sandboxes = [await prepare_sandbox(base, f"a{number}") for number in range(3)]
    for each in sandboxes:
        assert await retire_sandbox(each)
    later = await take_generation(workspace, NEXT, previous=base)
    made: list[Sandbox] = []

    async def make(agent: str) -> None:
        made.append(await prepare_sandbox(later, agent))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(make, f"b{number}")
    assert pooled_trees(workspace) == []
    found = [inode for each in made for inode in inodes(each.work_dir).values()]
    assert len(found) == len(set(found)) == 8 * 5
    for each in made:
        assert tree_of(each.work_dir) == tree_of(workspace)


@pytest.mark.parametrize("harm", ["record", "work", "input", "nonsense", "growing"])
async def test_half_a_tree_in_the_pool_is_no_tree(
    workspace: Path, base: Generation, harm: str
) -> None:
    await retired(base)
    (entry,) = pooled_trees(workspace)
    match harm:
        case "nonsense":
            (entry / "tree.msgpack").write_bytes(b"\xc1")
        case "growing":
            entry.rename(pool_folder(workspace) / f".growing-{entry.name}")
        case "record":
            (entry / "tree.msgpack").unlink()
        case _:
            remove_path(entry / harm)
    again = await prepare_sandbox(await take_generation(workspace, NEXT), "writer")
    assert tree_of(again.work_dir) == tree_of(workspace)
    assert tree_of(again.paths.input_dir) == tree_of(workspace)


@pytest.mark.parametrize("step", range(6))
async def test_giving_up_a_sandbox_can_be_cut_off_anywhere(
    workspace: Path, base: Generation, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever moves next fails: nothing half moved looks whole, and all can go on."""
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.work_dir, {"README.md": "half"})
    left = iter(range(step))
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        try:
            await retire_sandbox(sandbox)
        except SandboxError:
            assert step < 3
    assert not sandbox.paths.record.exists()
    again = await prepare_sandbox(base, "coder")
    other = await prepare_sandbox(base, "other")
    for each in (again, other):
        assert tree_of(each.work_dir) == tree_of(workspace)
        assert tree_of(each.paths.input_dir) == tree_of(workspace)


async def test_a_tree_that_cannot_be_brought_up_to_date_is_made_anew(
    workspace: Path, base: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await retired(base)

    def refused(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(prepare, "refill_work", refused)
    again = await prepare_sandbox(base, "writer")
    assert tree_of(again.work_dir) == tree_of(workspace)


NAMES = st.sampled_from(["a", "b/c", "b/d", "e/f/g", "README.md", "src/app.py", "tool.sh"])
EDITS = st.lists(
    st.tuples(NAMES, st.sampled_from(["write", "remove", "link", "mode", "folder"])), max_size=8
)


def edit(root: Path, edits: list[tuple[str, str]]) -> None:
    for name, what in edits:
        path = root / name
        try:
            if what == "write":
                write(root, {name: f"{name} {len(edits)}"})
            elif what == "mode" and path.is_file():
                path.chmod(path.stat().st_mode ^ 0o100)
            elif what != "mode":
                remove_path(path)
                if what == "link":
                    path.symlink_to("nowhere")
                elif what == "folder":
                    path.mkdir(parents=True)
        except (FileExistsError, NotADirectoryError, FileNotFoundError, IsADirectoryError):
            continue  # a file where a folder would have to be


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(by_agent=EDITS, while_waiting=EDITS, by_user=EDITS)
async def test_whatever_was_done_a_used_tree_is_as_good_as_a_new_one(
    tmp_path_factory: pytest.TempPathFactory,
    by_agent: list[tuple[str, str]],
    while_waiting: list[tuple[str, str]],
    by_user: list[tuple[str, str]],
) -> None:
    workspace = tmp_path_factory.mktemp("used")
    git(workspace, "init", "-q")
    write(workspace, {"README.md": "r", "src/app.py": "a", "tool.sh": "t", "b/c": "c"})
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    edit(sandbox.work_dir, by_agent)
    assert await retire_sandbox(sandbox)
    (entry,) = pooled_trees(workspace)
    edit(entry / "work", while_waiting)
    edit(workspace, by_user)
    later = await take_generation(workspace, NEXT, previous=base)
    again = await prepare_sandbox(later, "writer")
    assert tree_of(again.work_dir) == tree_of(later.tree) == tree_of(again.paths.input_dir)
    assert scan(again.work_dir) == again.filled
    assert (await make_patch(again)).changes == ()
