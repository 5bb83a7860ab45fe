"""Workspaces to freeze, sandboxes to work in, and every confinement that this machine has."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import anyio
import pytest

from agentcanvas.errors import NoConfinement
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.pick import pick

RUN = "run_20260219_100000"


def git(folder: Path, *arguments: str) -> bytes:
    """Run git as the user of a workspace would."""
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True)
    return done.stdout


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write files by their relative names."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def tree_of(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Give everything in a tree but the internal folders: kind with x-bit, and content."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for path in root.rglob("*"):
        short = path.relative_to(root)
        if short.parts[0] in {".git", ".agentcanvas"}:
            continue
        if path.is_symlink():
            found[os.fsencode(short)] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            kind = "program" if path.stat().st_mode & 0o100 else "file"
            found[os.fsencode(short)] = (kind, path.read_bytes())
    return found


def named(root: Path, name: bytes) -> Path:
    """Give the path of a file whose name need not be text."""
    return root / os.fsdecode(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a workspace without git."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture
def workspace(folder: Path) -> Path:
    """Give a git workspace with one commit."""
    git(folder, "init", "-q", "-b", "main")
    write(
        folder,
        {
            "README.md": "hello\n",
            "src/app.py": "print('one')\n",
            "src/deep/er/mod.py": "x = 1\n",
            "tool.sh": "#!/bin/sh\necho hi\n",
            ".gitignore": "*.log\nbuild/\n",
        },
    )
    (folder / "tool.sh").chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def _machine_has(name: str) -> bool:
    """Ask the machine, not the code under test, which may be broken."""
    if name == "landlock":
        return int(ctypes.CDLL(None).syscall(444, None, 0, 1)) >= 3
    least = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"]
    try:
        return subprocess.run([*least, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@cache
def _picked(name: str) -> Confinement | str:
    try:
        with ThreadPoolExecutor(1) as aside:  # a test that asks may have a loop running here
            return aside.submit(anyio.run, partial(pick, only=name)).result().confinement
    except NoConfinement as refusal:
        return "; ".join(refusal.reasons)


def confinement_or_skip(name: str) -> Confinement:
    """Give a confinement; skip where the machine has none, fail where it has and it was refused."""
    found = _picked(name)
    if not isinstance(found, str):
        return found
    assert not _machine_has(name), f"{name} works here, but was refused: {found}"
    pytest.skip(f"no {name} here: {found}")


@pytest.fixture(params=["bubblewrap", "landlock"])
def confinement(request: pytest.FixtureRequest) -> Confinement:
    """Give each confinement that works on this machine; the others are skipped with the reason."""
    return confinement_or_skip(request.param)


@pytest.fixture
def bubblewrap() -> Confinement:
    """Give the confinement that can mount."""
    return confinement_or_skip("bubblewrap")


@pytest.fixture
def landlock() -> Confinement:
    """Give the confinement that cannot."""
    return confinement_or_skip("landlock")


@pytest.fixture
def bare_view(tmp_path: Path) -> View:
    """Give a view of an empty tree."""
    for name in ("workspace", "tree", "home", "tmp"):
        (tmp_path / name).mkdir(exist_ok=True)
    return View(tmp_path / "workspace", tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")


@pytest.fixture
def applied(tmp_path: Path) -> Callable[[Generation, bytes], Path]:
    """Give a way to apply a patch to a copy of a base with `git apply`, as a user would."""

    def apply(base: Generation, patch: bytes) -> Path:
        target = tmp_path / "applied"
        shutil.copytree(base.tree, target, symlinks=True)
        for path in target.rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
        if patch:
            command = ["git", "apply", "--binary", "-"]
            subprocess.run(command, input=patch, cwd=target, check=True, env=environment)
        return target

    return apply
