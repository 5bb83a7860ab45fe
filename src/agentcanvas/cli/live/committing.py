"""The command that commits what a run landed, and nothing else, from wherever the person stands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.words import quoted
from agentcanvas.errors import AgentCanvasError
from agentcanvas.runs.shelf import kept_list

_MOST_NAMED: Final = 20
_MAGIC: Final = frozenset("*?[\\")


def commit_lines(run_id: str, files: Sequence[str], root: Path, here: Path) -> list[str]:
    """One command for each repository that has some of the files, its submodules first."""
    by_repository: dict[Path, list[str]] = {}
    for file in files:
        folder = _repository_of(root, file)
        by_repository.setdefault(folder, []).append(os.path.relpath(root / file, folder))
    deepest_first = sorted(by_repository, key=lambda folder: -len(folder.parts))
    found = [
        _command(run_id, folder, by_repository[folder], root, here) for folder in deepest_first
    ]
    return [line for line in found if line]


def _repository_of(root: Path, file: str) -> Path:
    """The folder of the submodule that a file is in, else the workspace."""
    for folder in (root / file).parents:
        if folder == root or (folder / ".git").exists():
            return folder
    return root


def _command(run_id: str, folder: Path, paths: Sequence[str], root: Path, here: Path) -> str:
    """Empty where the files are too many to name and cannot be listed either."""
    git = "git"
    if folder != here:
        git += f" -C {quoted(_place(folder, root, here))}"
    literal = "--literal-pathspecs " if any(map(_is_magic, paths)) else ""
    if len(paths) <= _MOST_NAMED and all(one_line(path) == path for path in paths):
        dashes = "-- " if any(path.startswith("-") for path in paths) else ""
        return f"{git} {literal}add {dashes}{' '.join(map(quoted, paths))} && {git} commit"
    name = "landed" if folder == root else f"landed-{os.path.relpath(folder, root)}"
    try:
        listed = kept_list(root, run_id, name, paths)
    except (OSError, AgentCanvasError):
        return ""
    listing = os.path.relpath(listed, folder) if folder == here else str(listed)
    return (
        f"{git} {literal}add --pathspec-from-file={quoted(listing)} --pathspec-file-nul"
        f" && {git} commit"
    )


def _place(folder: Path, root: Path, here: Path) -> str:
    return os.path.relpath(folder, root) if here == root else str(folder)


def _is_magic(path: str) -> bool:
    """Whether git would take a name for a pattern."""
    return path.startswith(":") or bool(_MAGIC & set(path))
