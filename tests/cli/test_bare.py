"""``agentcanvas`` without a command."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.app.doctor import Finding, Grade
from agentcanvas.cli.bare import greeting
from tests.cli.pseudo_terminal import Person
from tests.runs.workspaces import repository

PROGRAM = [sys.executable, "-u", "-c", "from agentcanvas.cli import main; main()"]


@pytest.mark.req("D44")
def test_in_a_terminal_it_says_what_is_here_and_serves_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"tests/test_it.py": "def test_it(): pass\n"})
    master, slave = pty.openpty()
    env = {**os.environ, "BROWSER": "true", "COLUMNS": "100"}
    with subprocess.Popen(
        PROGRAM, cwd=root, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
    ) as process:
        os.close(slave)
        person = Person(process, master)
        person.sees("python3 -m pytest")
        person.sees("agentcanvas init")
        person.sees("AgentCanvas is at http://127.0.0.1:")
        person.sees("Ctrl-C ends it")
        process.send_signal(signal.SIGTERM)
        assert person.leaves() == 0
    os.close(master)


def test_without_a_terminal_it_prints_its_help(tmp_path: Path) -> None:
    done = subprocess.run(PROGRAM, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage:") == 1
    assert "review" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_is_said_and_a_flow_is_offered() -> None:
    lines = greeting((Finding("git", Grade.FAIL, "not found"),), ["team"])
    assert lines[0] == "git          not found"
    assert lines[1].endswith("agentcanvas run team")


def test_a_command_that_is_misspelt_is_guessed(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "rnu"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean run" in done.stderr


def test_a_reader_who_leaves_early_is_told_nothing(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM[-1], "pattern", "list"],
            cwd=tmp_path,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
