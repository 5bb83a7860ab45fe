"""A command given in a folder that somebody has removed says so, whatever command it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = f"{sys.executable} -c 'from agentcanvas.cli import main; main()'"


@pytest.mark.parametrize(
    "words",
    [
        "doctor",
        "run x --command true",
        "init --here",
        "demo --exit",
        "serve --port 0",
        "runs",
        "flow check ./a.yaml",
        "pattern list",
        "trust",
        "store check",
        "hub --data x --port 0",
        "token list --data x",
    ],
)
def test_a_folder_that_is_gone_is_named_as_the_reason(words: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f'rmdir "$PWD"; exec {PROGRAM} {words}'],
        capture_output=True,
        check=False,
        cwd=gone,
        env={**os.environ, "HOME": str(tmp_path)},
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "agentcanvas: The folder you are in is gone; go to one that is there: cd\n"
    )
    assert done.stdout == ""
