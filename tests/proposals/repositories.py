"""Real repositories for proposals to land in, and everything of them that must not change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agentcanvas.proposals.ways import Branch, Commit, Message
from tests.proposals.workspaces import Files, Scene, diff, shot, write_files

MESSAGE = Message(
    summary="# Count from one\n\nUsers do.", proposal_id="prop-1", run_id="run-1", agent_id="coder"
)
COMMIT = Commit(MESSAGE)
BRANCH = Branch("agentcanvas/prop-1", MESSAGE)


def git(cwd: Path, *arguments: str, stdin: bytes | None = None, fine: bool = False) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, input=stdin, capture_output=True, check=False
    )
    assert fine or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="surrogateescape")


def init(root: Path, *options: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main", *options)
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@analytical.org")
    (root / ".git" / "info" / "exclude").write_text(".agentcanvas/\n")
    return root


def commit_all(root: Path, what: str = "start") -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", what)
    return git(root, "rev-parse", "HEAD").strip()


def repository(folder: Path, before: Files, after: Files, *options: str) -> Scene:
    """A workspace that is a repository with ``before`` committed, and a patch to ``after``."""
    workspace = write_files(init(folder / "workspace", *options), before)
    commit_all(workspace)
    base = write_files(folder / "base", before)
    return Scene(workspace, base, diff(folder / "diff", before, after))


def files(root: Path) -> dict[str, tuple[str, bytes]]:
    """What is in the working tree."""
    return {path: what for path, what in shot(root).items() if not path.startswith(".git/")}


def everything(root: Path) -> dict[str, object]:
    """Tree, status, index, refs and reflogs: all that a refusal must leave, byte for byte."""
    git_dir = Path(git(root, "rev-parse", "--absolute-git-dir").strip())
    return {
        "files": files(root),
        "folders": sorted(
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if path.is_dir() and not {".git", ".agentcanvas"} & set(path.relative_to(root).parts)
        ),
        "index": (git_dir / "index").read_bytes() if (git_dir / "index").exists() else None,
        "status": git(root, "--no-optional-locks", "status", "--porcelain=v2", "--branch"),
        "refs": git(root, "for-each-ref", "--format=%(refname) %(objectname)"),
        "head": (git_dir / "HEAD").read_bytes(),
        "reflog": git(root, "reflog", "--all", fine=True),
        "ours": sorted(p.name for p in git_dir.iterdir() if "agentcanvas" in p.name),
        "lock": (git_dir / "index.lock").exists(),
    }


def state(root: Path) -> tuple[object, ...]:
    """What tells old from new: files, index, refs by their trees, and how many commits there are.

    Times in the index, ids of commits and reflogs differ from one try to the next.
    """
    return (
        files(root),
        git(root, "ls-files", "--stage"),
        git(root, "for-each-ref", "--format=%(refname) %(tree) %(subject)"),
        git(root, "rev-list", "--count", "--all", "HEAD"),
        (root / ".git" / "HEAD").read_text(),
    )


def message(root: Path, commit: str = "HEAD") -> str:
    return git(root, "log", "-1", "--format=%B", commit).rstrip("\n")


def trailers(root: Path, commit: str = "HEAD") -> dict[str, str]:
    said = git(root, "log", "-1", "--format=%(trailers:only,unfold)", commit)
    return dict(line.split(": ", 1) for line in said.splitlines() if line)


def parentless() -> dict[str, str]:
    """An environment in which git knows nobody."""
    return {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
