"""Running a few lines as a user for whom permissions count, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

_DROP_FROM_BOUNDING_SET = 24
_OVERRIDE, _READ_SEARCH = 1, 2


def _without_override() -> None:
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (_OVERRIDE, _READ_SEARCH):
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


def as_ordinary_user(script: str, *arguments: str) -> str:
    """Run a script; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        preexec_fn=_without_override,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
