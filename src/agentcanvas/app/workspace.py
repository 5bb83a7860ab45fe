"""Where a workspace is, and where it keeps what belongs to AgentCanvas (D42)."""

from __future__ import annotations

from pathlib import Path

FOLDER = ".agentcanvas"


def find_root(start: Path) -> Path:
    """The nearest parent that is a workspace already, else the git top level, else ``start``."""
    start = start.resolve()
    parents = [start, *start.parents]
    for mark in (FOLDER, ".git"):
        for parent in parents:
            # A worktree and a submodule have a .git file, a repository a folder.
            if (parent / mark).exists():
                return parent
    return start


def store_path(root: Path) -> Path:
    """The one file that holds what must survive (D2)."""
    return root / FOLDER / "agentcanvas.db"
