"""Frozen images of a workspace: what is in them, what they cost, what changed since (D7)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.sandbox import copying
from agentcanvas.sandbox.changes import Change, Status
from agentcanvas.sandbox.generation import (
    edits_since,
    generation_numbers,
    load_generation,
    take_generation,
)
from tests.sandbox.conftest import RUN, git, named, tree_of, write

pytestmark = pytest.mark.req("D7")


async def test_the_first_generation_is_the_workspace_with_uncommitted_edits(
    workspace: Path,
) -> None:
    write(workspace, {"src/app.py": "edited\n", "new file.txt": "untracked\n", "x.log": "ignored"})
    (workspace / "README.md").unlink()
    base = await take_generation(workspace, RUN)
    names = set(tree_of(base.tree))
    assert names == {
        b".gitignore",
        b"src/app.py",
        b"src/deep/er/mod.py",
        b"tool.sh",
        b"new file.txt",
    }
    assert (base.tree / "src/app.py").read_text() == "edited\n"
    assert base.name == "g0"
    assert base.git_head == git(workspace, "rev-parse", "HEAD").decode().strip()


async def test_a_folder_without_git_is_walked_without_the_internal_folders(folder: Path) -> None:
    write(
        folder,
        {
            "a.txt": "a",
            "lib/node_modules/x.js": "x",
            "node_modules/y.js": "y",
            "dist/z.js": "z",
            "src/dist/kept.py": "k",
            ".agentcanvas/settings": "s",
            "sub/.git/config": "c",
        },
    )
    base = await take_generation(folder, RUN)
    assert set(tree_of(base.tree)) == {b"a.txt", b"src/dist/kept.py"}
    assert base.git_head is None


@pytest.mark.req("S3")
async def test_tracked_internal_folders_are_left_out_and_told(workspace: Path) -> None:
    write(workspace, {"dist/a.js": "a", "dist/b.js": "b", "src/dist/c.py": "c"})
    git(workspace, "add", "-f", "dist", "src/dist")
    base = await take_generation(workspace, RUN)
    assert b"src/dist/c.py" in base.seen
    assert not any(path.startswith(b"dist/") for path in base.seen)
    assert "dist/ is left out: internal (2 files)" in base.notes


async def test_odd_names_modes_and_links_survive(workspace: Path) -> None:
    odd = [b"two words", "ünï😀".encode(), b"new\nline", b'quo"te', b"\xff\xfe", b"-dash", b"t\tab"]
    for name in odd:
        named(workspace, name).write_bytes(name)
    (workspace / "dangling").symlink_to("nowhere")
    (workspace / "outward").symlink_to("/etc/passwd")
    (workspace / "to-folder").symlink_to("src")
    (workspace / "empty").touch()
    before = tree_of(workspace)
    base = await take_generation(workspace, RUN)
    assert tree_of(base.tree) == before
    assert len(before) == 5 + len(odd) + 4


async def test_frozen_files_cannot_be_written_and_keep_the_right_to_run(workspace: Path) -> None:
    base = await take_generation(workspace, RUN)
    assert stat.S_IMODE((base.tree / "README.md").stat().st_mode) == 0o444
    assert stat.S_IMODE((base.tree / "tool.sh").stat().st_mode) == 0o555


async def test_a_tracked_file_that_became_a_pipe_is_left_out_and_told(workspace: Path) -> None:
    write(workspace, {"queue": ""})
    git(workspace, "add", "queue")
    (workspace / "queue").unlink()
    os.mkfifo(workspace / "queue")
    base = await take_generation(workspace, RUN)
    assert "queue is left out: neither a file nor a link" in base.notes
    assert b"queue" not in base.seen


async def test_a_folder_that_became_a_link_does_not_lead_the_copy_away(
    workspace: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"secret/app.py": "secret"})
    for name in ("app.py", "deep/er/mod.py"):
        (workspace / "src" / name).unlink()
    (workspace / "src/deep/er").rmdir()
    (workspace / "src/deep").rmdir()
    (workspace / "src").rmdir()
    (workspace / "src").symlink_to(tmp_path / "secret")
    base = await take_generation(workspace, RUN)
    assert b"src/app.py" not in base.seen
    assert (base.tree / "src").is_symlink()


async def test_a_later_generation_links_what_did_not_change(workspace: Path) -> None:
    first = await take_generation(workspace, RUN)
    write(workspace, {"src/app.py": "changed\n", "more.txt": "more"})
    (workspace / "README.md").unlink()
    second = await take_generation(workspace, RUN, previous=first)
    shared = {
        path
        for path in second.seen
        if os.path.samestat(
            os.lstat(os.fsencode(first.tree) + b"/" + path)
            if path in first.seen
            else os.lstat("/"),
            os.lstat(os.fsencode(second.tree) + b"/" + path),
        )
    }
    assert shared == {b".gitignore", b"src/deep/er/mod.py", b"tool.sh"}
    assert (first.tree / "src/app.py").read_text() == "print('one')\n"
    assert (second.tree / "src/app.py").read_text() == "changed\n"
    assert tree_of(second.tree) == tree_of(workspace)
    assert generation_numbers(workspace, RUN) == [0, 1]


async def test_edits_since_a_generation_are_found_whatever_they_pretend(workspace: Path) -> None:
    base = await take_generation(workspace, RUN)
    assert await edits_since(base) == ()
    readme = workspace / "README.md"
    times = readme.stat()
    readme.write_text("HELLO\n")  # as long as before, in place
    os.utime(readme, ns=(times.st_atime_ns, times.st_mtime_ns))
    (workspace / "src/app.py").unlink()
    write(workspace, {"added.py": "a", "made.log": "ignored"})
    (workspace / "tool.sh").chmod(0o644)
    assert await edits_since(base) == (
        Change(b"README.md", Status.MODIFIED),
        Change(b"added.py", Status.ADDED),
        Change(b"src/app.py", Status.DELETED),
        Change(b"tool.sh", Status.MODIFIED),
    )


async def test_a_touched_file_is_no_edit(workspace: Path) -> None:
    base = await take_generation(workspace, RUN)
    os.utime(workspace / "README.md")
    assert await edits_since(base) == ()


async def test_a_generation_is_found_again(workspace: Path) -> None:
    taken = await take_generation(workspace, RUN, include=["README.md"])
    assert await load_generation(workspace, RUN, 0) == taken


async def test_a_generation_that_is_not_there_is_said_so(workspace: Path) -> None:
    with pytest.raises(SandboxError, match="g7"):
        await load_generation(workspace, RUN, 7)


async def test_an_ignored_file_belongs_to_the_base_when_named(workspace: Path) -> None:
    write(workspace, {"settings.log": "needed"})
    base = await take_generation(workspace, RUN, include=["settings.log"])
    assert b"settings.log" in base.seen
    write(workspace, {"settings.log": "edited"})
    assert await edits_since(base) == (Change(b"settings.log", Status.MODIFIED),)
    (workspace / "settings.log").unlink()
    assert await edits_since(base) == (Change(b"settings.log", Status.DELETED),)


@pytest.mark.req("S3")
@pytest.mark.parametrize("name", ["../x", "/etc/passwd", ".git/config", "missing.txt"])
async def test_what_cannot_be_included_is_refused_by_name(workspace: Path, name: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        await take_generation(workspace, RUN, include=[name])
    assert f"'{name}'" in str(refusal.value)
    assert generation_numbers(workspace, RUN) == []


async def test_a_half_made_generation_has_no_name(workspace: Path) -> None:
    leftover = workspace / ".agentcanvas/generations" / RUN / "g0.growing" / "tree"
    leftover.mkdir(parents=True)
    (leftover / "half").write_text("half")
    assert generation_numbers(workspace, RUN) == []
    base = await take_generation(workspace, RUN)
    assert base.number == 0
    assert b"half" not in tree_of(base.tree)


async def test_a_file_that_changes_while_it_is_copied_is_copied_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = iter([b"second version\n", b"third\n"])
    copy = copying.copy_open_file

    def interrupted(reading: int, target: bytes, *rest: object, **places: object) -> object:
        made = copy(reading, target, *rest, **places)  # type: ignore[arg-type]  # as it came
        if target.endswith(b"README.md") and (edit := next(edits, None)):
            (workspace / "README.md").write_bytes(edit)
        return made

    monkeypatch.setattr(copying, "copy_open_file", interrupted)
    base = await take_generation(workspace, RUN)
    assert (base.tree / "README.md").read_bytes() == b"third\n"
    assert await edits_since(base) == ()


async def test_a_workspace_inside_a_larger_repository_holds_its_own_files_only(
    workspace: Path,
) -> None:
    base = await take_generation(workspace / "src", RUN)
    assert set(base.seen) == {b"app.py", b"deep/er/mod.py"}
    assert base.git_head


async def test_a_repository_around_that_ignores_the_workspace_does_not_count(
    workspace: Path,
) -> None:
    inner = workspace / "build" / "demo"
    write(inner, {"a.txt": "a"})
    base = await take_generation(inner, RUN)
    assert set(base.seen) == {b"a.txt"}
    assert base.repository is None


async def test_a_repository_without_a_commit_can_be_frozen(folder: Path) -> None:
    git(folder, "init", "-q")
    write(folder, {"a.txt": "a"})
    base = await take_generation(folder, RUN)
    assert set(base.seen) == {b"a.txt"}
    assert base.git_head is None


async def test_a_broken_repository_is_refused_in_gits_own_words(workspace: Path) -> None:
    (workspace / ".git/HEAD").write_text("nonsense")
    with pytest.raises(SandboxError, match="git cannot read this repository"):
        await take_generation(workspace, RUN)


async def test_the_users_fsmonitor_and_variables_of_git_take_no_part(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    git(workspace, "config", "core.fsmonitor", str(hook))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    base = await take_generation(workspace, RUN)
    assert len(base.seen) == 5
    assert not (tmp_path / "ran").exists()
