"""Files by the names that people and flows give them: where they lie, and what a flow names.

A flow need not be sound for that, since what it names counts before its patterns are known.
"""

from __future__ import annotations

import os
from pathlib import Path

from agentcanvas.flows.check import said
from agentcanvas.flows.document import read_document


def path_within(workspace: Path, named: Path) -> str:
    """The path of a file in the workspace, whatever way leads to it; empty for one elsewhere.

    A link that lies in the workspace is a file of it, wherever it leads: it came with the others.
    """
    root = workspace.resolve()
    place = Path(root.anchor)
    for part in named.absolute().parts[1:]:
        if part == "..":
            place = place.parent
            continue
        place /= part
        if place.is_relative_to(root):
            if place.is_symlink():
                break
        elif _is(place, root):
            place = root
        elif place.is_symlink():
            place = Path(os.path.realpath(place))  # which ends also where links lead in a circle
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else ""


def _is(place: Path, root: Path) -> bool:
    """Also under another name, as on a disk where letters may be large or small."""
    try:
        return place.samefile(root)
    except (OSError, ValueError):
        return False


def scripts_in(workspace: Path, flow: bytes) -> tuple[str, ...]:
    """The paths of the scripts in the workspace that a flow names."""
    found = said(read_document(flow))
    runtimes = [agent.runtime for agent in found.agents if agent.runtime] if found else []
    names = dict.fromkeys(runtime.script for runtime in runtimes if runtime.script)
    return tuple(filter(None, (path_within(workspace, workspace / name) for name in names)))
