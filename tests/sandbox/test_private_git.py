"""The repository inside work/: everything a tool asks git for, nothing of the user's (D10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox
from agentcanvas.sandbox.private_git import make_private_git, object_folders
from tests.sandbox.conftest import RUN, git, write

pytestmark = pytest.mark.req("D10")


async def with_git(workspace: Path) -> Sandbox:
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    assert await make_private_git(base, sandbox.work_dir, object_folders(base))
    return sandbox


async def test_a_tool_finds_head_branch_index_and_tags(workspace: Path) -> None:
    git(workspace, "tag", "-a", "v1.2", "-m", "one two")
    git(workspace, "checkout", "-q", "-b", "feature/x")
    work = (await with_git(workspace)).work_dir
    assert git(work, "rev-parse", "HEAD") == git(workspace, "rev-parse", "HEAD")
    assert git(work, "branch", "--show-current") == b"feature/x\n"
    assert git(work, "describe") == b"v1.2\n"
    assert git(work, "status", "--porcelain") == b""
    assert git(work, "log", "--format=%s") == b"first\n"
    assert git(work, "show", "HEAD:README.md") == b"hello\n"


async def test_git_shows_the_users_uncommitted_state(workspace: Path) -> None:
    write(workspace, {"README.md": "edited\n", "staged.py": "s\n", "loose.py": "l\n"})
    git(workspace, "add", "staged.py")
    work = (await with_git(workspace)).work_dir
    assert git(work, "status", "--porcelain") == git(workspace, "status", "--porcelain").replace(
        b"?? .agentcanvas/\n", b""
    )


async def test_the_index_holds_without_reading_every_file(workspace: Path) -> None:
    work = (await with_git(workspace)).work_dir
    # diff-files trusts the stat data alone: a stale index would name every file
    assert git(work, "diff-files", "--name-only") == b""


async def test_neither_remotes_hooks_nor_settings_come_along(workspace: Path) -> None:
    git(workspace, "remote", "add", "origin", "https://user:secret@example.invalid/x.git")
    git(workspace, "config", "user.email", "me@example.invalid")
    git(workspace, "config", "alias.x", "!touch sprung")
    write(workspace, {".git/hooks/post-commit": "#!/bin/sh\ntouch sprung\n"})
    (workspace / ".git/hooks/post-commit").chmod(0o755)
    sandbox = await with_git(workspace)
    work = sandbox.work_dir
    assert git(work, "remote") == b""
    assert b"secret" not in (work / ".git/config").read_bytes()
    assert not (work / ".git/hooks").exists()
    write(work, {"README.md": "by the agent\n"})
    git(work, "commit", "-qam", "inside")
    assert not (work / "sprung").exists()


async def test_a_commit_inside_stays_inside(workspace: Path) -> None:
    sandbox = await with_git(workspace)
    objects = sorted((workspace / ".git/objects").rglob("*"))
    head = git(workspace, "rev-parse", "HEAD")
    write(sandbox.work_dir, {"README.md": "by the agent\n"})
    git(sandbox.work_dir, "commit", "-qam", "inside")
    assert sorted((workspace / ".git/objects").rglob("*")) == objects
    assert git(workspace, "rev-parse", "HEAD") == head
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"README.md"]


async def test_a_folder_of_a_larger_repository_gets_a_history_of_its_own(workspace: Path) -> None:
    sandbox = await with_git(workspace / "src")
    assert git(sandbox.work_dir, "ls-files").split() == [b"app.py", b"deep/er/mod.py"]
    assert git(sandbox.work_dir, "status", "--porcelain") == b""


async def test_a_detached_head_stays_detached(workspace: Path) -> None:
    git(workspace, "checkout", "-q", "--detach")
    work = (await with_git(workspace)).work_dir
    assert git(work, "branch", "--show-current") == b""
    assert git(work, "rev-parse", "HEAD") == git(workspace, "rev-parse", "HEAD")


async def test_a_repository_without_commits_is_one_inside_too(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "trunk")
    write(folder, {"a": "a"})
    work = (await with_git(folder)).work_dir
    assert git(work, "status", "--porcelain", "--branch").splitlines()[0] == (
        b"## No commits yet on trunk"
    )


async def test_names_of_objects_are_as_long_as_the_users_also_before_the_first_commit(
    folder: Path,
) -> None:
    git(folder, "init", "-q", "-b", "trunk", "--object-format=sha256")
    write(folder, {"a": "a"})
    git(folder, "add", "a")
    work = (await with_git(folder)).work_dir
    assert git(work, "rev-parse", "--show-object-format") == b"sha256\n"
    assert git(work, "status", "--porcelain") == b"A  a\n"


async def test_a_split_index_is_replaced_by_one_of_head(workspace: Path) -> None:
    git(workspace, "update-index", "--split-index")
    work = (await with_git(workspace)).work_dir
    assert git(work, "status", "--porcelain") == b""


async def test_a_linked_worktree_works_as_a_workspace(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(workspace, "worktree", "add", "-q", "-b", "side", str(other))
    work = (await with_git(other)).work_dir
    assert git(work, "log", "--format=%s") == b"first\n"
    assert git(work, "status", "--porcelain") == b""


async def test_borrowed_objects_are_found_through_all_stores(
    workspace: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--shared", str(workspace), str(clone))
    base = await take_generation(clone, RUN)
    assert object_folders(base) == (clone / ".git/objects", workspace / ".git/objects")
    sandbox = await prepare_sandbox(base, "coder")
    await make_private_git(base, sandbox.work_dir, object_folders(base))
    assert git(sandbox.work_dir, "show", "HEAD:README.md") == b"hello\n"


async def test_a_workspace_without_git_gets_none(folder: Path) -> None:
    write(folder, {"a": "a"})
    base = await take_generation(folder, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    assert not await make_private_git(base, sandbox.work_dir, ())
    assert not (sandbox.work_dir / ".git").exists()


async def test_what_an_agent_made_of_it_is_replaced(workspace: Path, tmp_path: Path) -> None:
    sandbox = await with_git(workspace)
    precious = tmp_path / "precious"
    write(precious, {"file": "f"})
    git_dir = sandbox.work_dir / ".git"
    git_dir.rename(tmp_path / "moved")
    git_dir.symlink_to(precious)
    assert await make_private_git(sandbox.base, sandbox.work_dir, object_folders(sandbox.base))
    assert not git_dir.is_symlink()
    assert (precious / "file").read_text() == "f"
    assert git(sandbox.work_dir, "status", "--porcelain") == b""
