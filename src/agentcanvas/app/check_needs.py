"""What the checks that are found in a workspace need of this machine and do not have.

Nothing of the workspace is run or imported for that: nobody may have trusted it yet. An environment
in it is looked into; the machine's own Python is asked from a folder of its own, and without the
packages of the user's home, which no sandbox shows.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentcanvas.proposals.checks import Check

_ANSWER_S: Final = 10.0
_MISSING: Final = 3
_ASKED: Final = f"""
import sys
from importlib.util import find_spec
sys.exit({_MISSING} if find_spec(sys.argv[1]) is None else 0)
"""
_HAS: Final = {
    "npm": "Node.js, which has it",
    "cargo": "Rust, which has it",
    "python3": "Python",
}


class Lack(Struct, frozen=True):
    """What a check lacks, and how to mend it."""

    sentence: str
    next_step: str


def lack_of(check: Check, root: Path, environ: Mapping[str, str]) -> Lack | None:
    """Give what is known to be missing; None also where nothing can be known."""
    program, *words = shlex.split(check.command)
    found = shutil.which(
        str(root / program) if "/" in program else program, path=environ.get("PATH", "")
    )
    if found is None:
        return Lack(f"there is no {program} on the PATH", f"install {_HAS.get(program, program)}")
    module = words[1] if words[:1] == ["-m"] else ""
    if not module or module in sys.stdlib_module_names:
        return None
    python = Path(found)
    is_inside = _is_inside(python, root)
    has = _holds(python, module) if is_inside else _answers(python, module, environ)
    if has is not False:
        return None
    sentence = f"{module} is not installed for {program}, as it is seen in a sandbox"
    if is_inside:
        return Lack(sentence, f"install it there: {program} -m pip install {module}")
    environment = f"python3 -m venv .venv && .venv/bin/python -m pip install {module}"
    return Lack(sentence, f"install it for the project: {environment}")


def _is_inside(program: Path, root: Path) -> bool:
    """Whether a program comes from the workspace, by any of its names."""
    names = (program, program.parent.resolve(), program.resolve())
    return not program.is_absolute() or any(
        name.is_relative_to(place) for name in names for place in (root, root.resolve())
    )


def _holds(python: Path, module: str) -> bool | None:
    """Look for a module in the environment that an interpreter belongs to."""
    environment = python.parent.parent
    try:
        settings = (environment / "pyvenv.cfg").read_text("utf-8", "replace").lower()
    except OSError:
        return None
    if "include-system-site-packages=true" in settings.replace(" ", ""):
        return None
    for packages in environment.glob("lib*/python*"):
        for folder in (packages, packages / "site-packages"):
            if any((folder / name).exists() for name in (module, f"{module}.py")):
                return True
    return False


def _answers(python: Path, module: str, environ: Mapping[str, str]) -> bool | None:
    """Ask an interpreter of the machine, isolated and from an empty folder."""
    with tempfile.TemporaryDirectory(prefix="agentcanvas-") as empty:
        try:
            done = subprocess.run(  # noqa: S603 -- the user's own interpreter, on their PATH
                [python, "-I", "-c", _ASKED, module],
                cwd=empty,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ANSWER_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return {0: True, _MISSING: False}.get(done.returncode)
