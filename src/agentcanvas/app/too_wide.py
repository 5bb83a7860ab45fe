"""Folders that are no project, and are not made a workspace by being where somebody stood.

A workspace takes in every project below it, and a run copies all of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentcanvas.errors import FlowError

_OF_A_BARE_ONE: Final = ("HEAD", "objects", "refs")


def refuse_no_project(root: Path, environ: Mapping[str, str], *, is_named: bool = False) -> None:
    """Refuse a folder that is not a workspace yet; ``is_named`` where somebody chose this very one.

    A home folder may be chosen, since some keep their dotfiles in git there; the top of the file
    system is nobody's project.
    """
    root = root.resolve()
    if root == Path(root.anchor):
        raise FlowError(
            f"{root} is no project: all of it would be copied. Go into the folder of one and say "
            "it there."
        )
    home = environ.get("HOME", "")
    if home and root == Path(home).resolve() and not is_named:
        raise FlowError(
            f"{root} is no project: all of it would be copied. Go into one, or: agentcanvas init "
            "--here"
        )
    if bare := _bare_repository(root):
        raise FlowError(
            f"{bare} is a bare git repository, which has no files to work on. Clone it, and go "
            "into the clone."
        )


def _bare_repository(root: Path) -> Path | None:
    """The bare repository that a folder is, or lies in; a working tree in one is a tree."""
    if (root / ".git").exists():
        return None
    for folder in (root, *root.parents):
        if all((folder / name).exists() for name in _OF_A_BARE_ONE):
            return folder
    return None
