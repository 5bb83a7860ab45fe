"""Programs of a user for whom permissions count, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_DROP_FROM_BOUNDING_SET = 24
_OVERRIDE, _READ_SEARCH, _PTRACE = 1, 2, 19
_IDLE = f"""
import ctypes, os
for capability in range(64):
    ctypes.CDLL(None).prctl({_DROP_FROM_BOUNDING_SET}, capability, 0, 0, 0)
os.execv("/bin/sh", ["sh", "-c", "echo ready; exec cat"])
"""


def _without_privileges() -> None:
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (_OVERRIDE, _READ_SEARCH, _PTRACE):
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


@contextmanager
def ordinary_process() -> Iterator[int]:
    """Run a program that does nothing, as the user's others do; gives its number."""
    with subprocess.Popen(
        [sys.executable, "-c", _IDLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.communicate()


def as_ordinary_user(script: str, *arguments: str) -> str:
    """Run a script; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        preexec_fn=_without_privileges,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
