"""Where git keeps the repository in another place, and is told where the files are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentcanvas.errors import GitUnusable
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.repository import Repository
from agentcanvas.proposals.ways import Way
from tests.proposals.repositories import (
    BRANCH,
    COMMIT,
    commit_all,
    everything,
    git,
    init,
)
from tests.proposals.workspaces import Files, Link, Scene, Script, diff, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D16", "S6")]

# Contents are handed to git under such names: files of the user by the same name are none of it.
NUMBERS: Files = {str(number): f"{number}, the user's own\n" for number in range(4)}
BEFORE: Files = {**NUMBERS, "a.txt": "a\n", "gone/b.txt": "b\n", "tool": "#!/bin/sh\n"}
AFTER: Files = {
    **NUMBERS,
    "a.txt": "what was reviewed\n",
    "new/c.txt": "c\n",
    "tool": Script("#!/bin/sh\n"),
    "link": Link("a.txt"),
}


def submodule(folder: Path) -> Path:
    source = write_files(init(folder / "source"), BEFORE)
    commit_all(source)
    top = init(folder / "top")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "sub")
    commit_all(top)
    return top / "sub"


def work_tree_named(folder: Path) -> Path:
    workspace = write_files(init(folder / "workspace"), BEFORE)
    commit_all(workspace)
    git(workspace, "config", "core.worktree", str(workspace))
    return workspace


def repository_elsewhere(folder: Path) -> Path:
    workspace = folder / "workspace"
    workspace.mkdir()
    git(workspace, "init", "-q", "-b", "main", "--separate-git-dir", str(folder / "kept.git"))
    git(workspace, "config", "core.worktree", "../workspace")
    commit_all(write_files(workspace, BEFORE))
    return workspace


PLACES: dict[str, Callable[[Path], Path]] = {
    "a submodule": submodule,
    "a work tree that the configuration names": work_tree_named,
    "a repository elsewhere": repository_elsewhere,
}


@pytest.fixture
def in_place(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    workspace = PLACES[request.param](tmp_path)
    git(workspace, "config", "user.name", "Ada")
    git(workspace, "config", "user.email", "ada@analytical.org")
    git_dir = Path(git(workspace, "rev-parse", "--absolute-git-dir").strip())
    (git_dir / "info" / "exclude").write_text(".agentcanvas/\n")
    base = write_files(tmp_path / "base", BEFORE)
    return Scene(workspace, base, diff(tmp_path / "diff", BEFORE, AFTER))


def committed(root: Path, commit: str) -> dict[str, tuple[str, bytes]]:
    """What a commit holds, in the words in which ``shot`` tells what is on the disk."""
    kinds = {"100644": "file", "100755": "script", "120000": "link"}
    found = {}
    for line in git(root, "ls-tree", "-r", "-z", commit).split("\0")[:-1]:
        meta, _, path = line.partition("\t")
        mode, _, oid = meta.split(" ")
        found[path] = (kinds[mode], git(root, "cat-file", "blob", oid).encode())
    return found


@pytest.mark.parametrize("in_place", PLACES, indirect=True)
@pytest.mark.parametrize("way", [COMMIT, BRANCH], ids=["commit", "branch"])
async def test_wherever_the_repository_is_the_commit_holds_what_was_reviewed(
    in_place: Scene, tmp_path: Path, way: Way
) -> None:
    root = in_place.workspace
    start = everything(root)
    receipt = await Landing(root).apply("p1", in_place.patch, in_place.base, way=way)
    assert receipt.commit is not None
    assert committed(root, receipt.commit) == shot(write_files(tmp_path / "after", AFTER))
    assert git(root, "status", "--porcelain") == ""
    git(root, "fsck", "--strict")
    await Landing(root).undo("p1")
    if way is COMMIT:
        assert git(root, "diff", "HEAD~2", "HEAD") == ""
        assert git(root, "status", "--porcelain") == ""
    else:
        assert everything(root) == start


@pytest.mark.parametrize("form", ["sha1", "sha256"])
async def test_a_content_that_git_stores_as_another_is_never_committed(
    tmp_path: Path, form: str
) -> None:
    workspace = init(tmp_path / "workspace", f"--object-format={form}")
    repository = Repository.of(write_files(workspace, BEFORE))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    honest = repository.store([b"one\n", b"two\n"], scratch)
    assert repository.load(honest) == dict(zip(honest, [b"one\n", b"two\n"], strict=True))
    (scratch / "2").symlink_to("/dev/null")  # what is written there is not what git reads
    with pytest.raises(GitUnusable, match="stored another content"):
        repository.store([b"one\n", b"two\n", b"three\n"], scratch)
