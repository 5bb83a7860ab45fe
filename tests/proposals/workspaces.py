"""Small file trees, and patches between them made by git itself."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentcanvas.proposals.apply import STATE_FOLDER


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Script:
    text: str


Content = str | bytes | Link | Script
Files = Mapping[str, Content]
Shot = dict[str, tuple[str, bytes]]


def write_files(root: Path, files: Files) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case Link(target):
                path.symlink_to(target)
            case Script(text):
                path.write_text(text)
                path.chmod(0o755)
            case bytes():
                path.write_bytes(content)
            case str():
                path.write_text(content)
    return root


def shot(root: Path) -> Shot:
    """Every file of a workspace: what it is and what is in it; our own folder is left out."""
    found: Shot = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == root and STATE_FOLDER in folders:
            folders.remove(STATE_FOLDER)
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*names, *linked]:
            path = Path(folder) / name
            key = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[key] = ("link", os.fsencode(path.readlink()))
            elif not path.is_file():
                found[key] = ("special", b"")
            else:
                runs = path.stat().st_mode & stat.S_IXUSR
                found[key] = ("script" if runs else "file", path.read_bytes())
    return found


def diff(scratch: Path, before: Files, after: Files, *options: str) -> bytes:
    """What git prints for the step from one tree to the other."""
    shutil.rmtree(scratch, ignore_errors=True)
    write_files(scratch / "a", before)
    write_files(scratch / "b", after)
    done = subprocess.run(
        [
            *("git", "-c", "core.quotePath=true", "diff", "--no-index", "--binary", "--no-renames"),
            *("--no-prefix", *options, "a", "b"),
        ],
        cwd=scratch,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@dataclass(frozen=True)
class Scene:
    """A workspace, the generation it was frozen as, and a patch made on that."""

    workspace: Path
    base: Path
    patch: bytes

    @property
    def unchanged(self) -> bool:
        return shot(self.workspace) == shot(self.base)


def scene(folder: Path, before: Files, after: Files, *, git: bool = False) -> Scene:
    """``before`` is in the workspace and in the generation; the patch leads to ``after``."""
    workspace = write_files(folder / "workspace", before)
    if git:
        for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "start")):
            subprocess.run(["git", *command], cwd=workspace, check=True)
    base = write_files(folder / "base", before)
    return Scene(workspace, base, diff(folder / "diff", before, after))
