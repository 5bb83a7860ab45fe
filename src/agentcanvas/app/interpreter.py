"""Programs of ours in an interpreter of their own, whatever lies in the folder they start in.

Python looks for modules in its current folder first, and that folder may be anybody's repository.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def program(*words: str) -> list[str]:
    """A command line of our own interpreter that leaves the current folder out."""
    return [sys.executable, "-P", *words]


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for it: of PYTHONPATH only whole paths, since all others begin here."""
    said = environ.get("PYTHONPATH", "").split(os.pathsep)
    whole = os.pathsep.join(filter(os.path.isabs, said))
    kept = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
    return kept | {"PYTHONPATH": whole} if whole else kept
