"""The commit command under a run commits what landed and only that, wherever the person stands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentcanvas.cli.live.committing import commit_lines
from tests.runs.workspaces import GIT, git, repository

pytestmark = pytest.mark.req("D20")

RUN = "run_20260301_101500"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"a.txt": "a\n", "sub/b.txt": "b\n", "mine.txt": "m\n"})


def change(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed\n")


def give(here: Path, command: str) -> None:
    """Run a command as a shell takes it; the message is given on the way."""
    words = command.replace(" commit", " commit -qm landed").replace("git ", f"git {IDENTITY} ")
    subprocess.run(["/bin/sh", "-ec", words], cwd=here, check=True, capture_output=True)


IDENTITY = " ".join(f"'{word}'" for word in GIT)


def committed(root: Path) -> set[str]:
    return set(git(root, "show", "--format=", "--name-only", "-z", "HEAD").strip("\0").split("\0"))


@pytest.mark.parametrize("folder", [".", "sub"])
def test_it_works_in_the_workspace_and_below_it(root: Path, folder: str) -> None:
    change(root, "a.txt", "sub/b.txt", "mine.txt")
    (line,) = commit_lines(RUN, ["a.txt", "sub/b.txt"], root, (root / folder).resolve())
    give(root / folder, line)
    assert committed(root) == {"a.txt", "sub/b.txt"}


@pytest.mark.parametrize("name", ["-n", ":(top)x", "*.txt", "a b", "x" * 210, "t\tab"])
def test_any_name_stands_for_itself_alone(root: Path, name: str) -> None:
    change(root, name, "mine.txt", "other.txt")
    (line,) = commit_lines(RUN, [name], root, root)
    give(root, line)
    assert committed(root) == {name}


@pytest.mark.parametrize("folder", [".", "sub"])
def test_many_files_are_listed_apart_and_nothing_else_comes_along(root: Path, folder: str) -> None:
    names = [f"new/{number}.txt" for number in range(25)]
    change(root, *names, "mine.txt", "other.txt")
    (root / ".gitignore").write_text(".agentcanvas/\n")
    (line,) = commit_lines(RUN, names, root, (root / folder).resolve())
    give(root / folder, line)
    assert committed(root) == set(names)


@pytest.mark.parametrize("folder", [".", "sub"])
def test_files_of_a_submodule_are_committed_there(root: Path, tmp_path: Path, folder: str) -> None:
    other = repository(tmp_path / "other", {"x.txt": "x\n"})
    allow = ("-c", "protocol.file.allow=always")
    git(root, *allow, "submodule", "add", "-q", str(other), "lib")
    git(root, "commit", "-qm", "lib")
    change(root, "a.txt", "lib/x.txt")
    lines = commit_lines(RUN, ["a.txt", "lib/x.txt"], root, (root / folder).resolve())
    assert len(lines) == 2
    for line in lines:
        give(root / folder, line)
    assert committed(root / "lib") == {"x.txt"}
    assert committed(root) == {"a.txt"}


def test_files_that_cannot_be_listed_are_not_offered(root: Path) -> None:
    (root / ".agentcanvas").mkdir()
    (root / ".agentcanvas" / "proposals").symlink_to(root)
    assert commit_lines(RUN, [f"{number}.txt" for number in range(25)], root, root) == []
