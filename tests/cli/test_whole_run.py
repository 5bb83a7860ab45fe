"""From a request to a landed change and back, with the real engine behind the commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = "sed -i 's/old/new/' greeting.txt && echo 'The greeting is new.'"


def give(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from agentcanvas.cli import main; main()", *words],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "greeting.txt").write_text("an old greeting\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.req("R1", "D20", "D25")
def test_a_change_is_proposed_judged_landed_and_taken_back(repository: Path) -> None:
    greeting = repository / "greeting.txt"
    check = ("--check", "grep -q new greeting.txt")
    ran = give(repository, "run", "renew it", "--command", AGENT, *check, "--unsafe")
    assert ran.returncode == 3, ran
    assert greeting.read_text() == "an old greeting\n"
    listed = give(repository, "review", "--list").stdout
    run_id = listed.split()[0]
    assert f"agentcanvas review {run_id} task-1 --apply" in ran.stdout
    looked = give(repository, "review", "task-1")
    assert "-an old greeting\n+an new greeting\n" in looked.stdout
    applied = give(repository, "review", run_id, "task-1", "--apply")
    assert applied.returncode == 0, applied
    assert greeting.read_text() == "an new greeting\n"
    assert "git add greeting.txt && git commit" in applied.stdout
    (summary,) = [
        json.loads(line) for line in give(repository, "runs", "--json").stdout.split("\n")[:-1]
    ]
    assert (summary["status"], summary["applied"]) == ("done", 1)
    assert "The greeting is new." in give(repository, "transcript", "coder").stdout
    undone = give(repository, "undo", "--yes")
    assert undone.returncode == 0, undone
    assert greeting.read_text() == "an old greeting\n"
    assert "taken back" in give(repository, "show").stdout


@pytest.mark.req("R1")
def test_a_rejected_change_leaves_no_trace_and_the_run_ends_with_4(repository: Path) -> None:
    assert give(repository, "run", "renew it", "--command", AGENT, "--unsafe").returncode == 3
    rejected = give(repository, "review", "--reject", "the old one was fine")
    assert rejected.returncode == 4, rejected
    assert (repository / "greeting.txt").read_text() == "an old greeting\n"
    assert "None of your files was changed." in rejected.stdout


@pytest.mark.req("D1")
def test_a_detached_run_goes_on_with_a_server_of_its_own(repository: Path) -> None:
    ran = give(repository, "run", "renew it", "--command", AGENT, "--unsafe", "--detach", "--json")
    assert ran.returncode == 0, ran
    run_id = json.loads(ran.stdout)["runId"]
    info = json.loads((repository / ".agentcanvas" / "server.json").read_text())
    try:
        assert (repository / ".agentcanvas" / "logs" / "serve.log").stat().st_mode & 0o077 == 0
        followed = give(repository, "transcript", run_id, "coder", "--follow")
        assert "The greeting is new." in followed.stdout
        assert give(repository, "stop", run_id).returncode == 0
    finally:
        os.kill(info["pid"], signal.SIGTERM)
    assert (repository / "greeting.txt").read_text() == "an old greeting\n"
