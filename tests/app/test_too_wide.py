"""What is no project is refused before anything is written into it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.app.too_wide import refuse_no_project
from agentcanvas.errors import FlowError
from tests.cli.test_flow import Place

pytestmark = pytest.mark.req("D42")

RUN = ("run", "fix it", "--command", "cat")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)


@pytest.mark.parametrize("is_named", [False, True])
def test_the_top_of_the_file_system_is_nobodys_project(is_named: bool) -> None:
    with pytest.raises(FlowError, match="/ is no project: all of it would be copied"):
        refuse_no_project(Path("/"), {"HOME": "/nowhere"}, is_named=is_named)


@pytest.mark.parametrize("words", [RUN, ("init",), ("sandbox", "make"), ("serve", "--port", "0")])
def test_a_home_folder_is_refused_even_with_a_repository_in_it(
    place: Place, words: tuple[str, ...]
) -> None:
    git("init", "-q", cwd=place.home)
    (place.home / "deep").mkdir()
    done = place.run(*words, cwd=place.home / "deep")
    assert done.returncode == 1
    assert f"{place.home} is no project: all of it would be copied." in done.stderr
    assert "agentcanvas init --here" in done.stderr
    assert not (place.home / ".agentcanvas").exists()


def test_a_home_folder_that_somebody_names_becomes_a_workspace(place: Place) -> None:
    git("init", "-q", cwd=place.home)
    assert place.run("init", "--here", cwd=place.home).returncode == 0
    assert "is a workspace already" in place.run("init", cwd=place.home).stdout


@pytest.mark.parametrize("below", [".", "hooks"])
def test_a_bare_repository_is_told_as_one(place: Place, below: str) -> None:
    git("init", "-q", "--bare", "bare.git", cwd=place.root)
    bare = place.root / "bare.git"
    before = sorted(bare.rglob("*"))
    done = place.run(*RUN, cwd=bare / below)
    assert done.returncode == 1
    assert f"{bare} is a bare git repository, which has no files to work on." in done.stderr
    assert sorted(bare.rglob("*")) == before


def test_a_working_tree_in_a_bare_repository_is_a_project(place: Place) -> None:
    git("init", "-q", "--bare", "bare.git", cwd=place.root)
    bare = place.root / "bare.git"
    tree = bare / "tree"
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    git("hash-object", "-t", "tree", "-w", "/dev/null", cwd=bare)
    commit = subprocess.run(
        ["git", *identity, "commit-tree", empty, "-m", "x"],
        cwd=bare,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    git("worktree", "add", "-q", "--detach", str(tree), commit, cwd=bare)
    assert place.run("init", cwd=tree).returncode == 0


_MOUNT = """
mount -t tmpfs -o size=1m tmpfs "$1" && mkdir "$1/.agentcanvas" && mount -o remount,ro "$1" \\
&& cd "$1" && exec "$2" -c 'from agentcanvas.cli import main; main()' doctor
"""


def test_a_read_only_file_system_is_told_as_one(place: Place) -> None:
    """In a mount namespace of its own, which is gone with the process."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh"]
    try:
        done = subprocess.run(
            [*words, str(place.root), sys.executable],
            env={**os.environ, "HOME": str(place.home), "NO_COLOR": "1"},
            capture_output=True,
            check=False,
            text=True,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if "workspace" not in done.stdout:
        pytest.skip(f"nothing can be mounted here: {done.stderr[:200]}")
    assert "its file system is read-only: mount it for writing" in done.stdout
