"""Where a command is given: a folder, and the workspace that it is in."""

from __future__ import annotations

from pathlib import Path

from agentcanvas.app.workspace import find_root
from agentcanvas.errors import ResourceError


def folder_here() -> Path:
    """The folder that a command is given in."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ResourceError("The folder you are in is gone; go to one that is there: cd") from None


def root_here() -> Path:
    """The workspace that a command is given in."""
    return find_root(folder_here())
