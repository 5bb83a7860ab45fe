"""The settings that hold in a workspace: those of its own file once it is trusted (D41, D43).

A file that came with a repository could let hosts be called, drop seals and consents, or raise
limits. What is read, and how, is ``settings``; whether this may be is ``trust``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agentcanvas.app.settings import WORKSPACE_FILE, Settings, load_settings
from agentcanvas.app.trust import standing
from agentcanvas.errors import ResourceError

NOT_YET = f"{WORKSPACE_FILE} does not hold yet: nobody has trusted it as it is"
LOOK = "agentcanvas trust"


def settings_here(root: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of a workspace, without those of a file that nobody has looked at."""
    return load_settings(root, environ=environ, own_file=own_file_holds(root, environ))


def own_file_holds(root: Path, environ: Mapping[str, str]) -> bool:
    """Whether the workspace's file is the one that was trusted, or there is none."""
    if not os.path.lexists(root / WORKSPACE_FILE):
        return True
    try:
        found = standing(root, environ)
    except ResourceError:  # without a home there is no record of trust
        return False
    digest = found.now.files.get(WORKSPACE_FILE)
    before = found.before.files if found.before else {}
    return digest is not None and before.get(WORKSPACE_FILE) == digest
