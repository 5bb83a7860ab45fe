"""``agents test`` and ``login``, with doubles of CLIs on the PATH."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_flow import Place

RESULT = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "READY"})
REFUSED = json.dumps(
    {"type": "result", "is_error": True, "api_error_status": 401, "result": "API Error: 401"}
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def tool(folder: Path, name: str, script: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:/bin:/usr/bin"


def claude(answer: str) -> str:
    return f"case $1 in --version) echo 2.1.325;; *) cat >/dev/null; echo '{answer}';; esac"


def test_one_that_answers_can_be_a_member(place: Place, tmp_path: Path) -> None:
    path = tool(tmp_path / "tools", "claude", claude(RESULT))
    done = place.run("agents", "test", "claude", PATH=path, ANTHROPIC_API_KEY="sk-123456789")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "claude: 2.1.325 (tried on 2026-11-18), key in ANTHROPIC_API_KEY",
        "claude: answered 'READY'",
        "It can be a member of a team.",
    ]


def test_one_that_is_refused_is_told_with_what_would_mend_it(place: Place, tmp_path: Path) -> None:
    path = tool(tmp_path / "tools", "claude", claude(REFUSED))
    done = place.run(
        "agents", "test", "claude", "--json", PATH=path, ANTHROPIC_API_KEY="sk-123456789"
    )
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["ok"], told["answer"]) == (False, "Claude Code: API Error: 401")
    assert told["fix"].startswith("mend its key or login: export ANTHROPIC_API_KEY")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("agents", "test", "claud"), "did you mean claude?"),
        (("login", "aider"), "export a key: ANTHROPIC_API_KEY, OPENAI_API_KEY"),
        (("login", "claude"), "Claude Code is not installed"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_next_step(
    place: Place, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = place.run(*words, PATH=tool(tmp_path / "tools", "other", ""))
    assert done.returncode == 1
    assert said in done.stderr


def test_a_login_is_made_in_a_home_of_its_own_and_can_be_forgotten(
    place: Place, tmp_path: Path
) -> None:
    script = 'mkdir -p "$HOME/.codex"; echo "$* $SECRET" > "$HOME/.codex/auth.json"'
    path = tool(tmp_path / "tools", "codex", script)
    data = tmp_path / "data"
    done = place.run("login", "codex", PATH=path, XDG_DATA_HOME=str(data), SECRET="of the user")
    assert done.returncode == 0, done.stderr
    assert "agentcanvas agents test codex" in done.stdout
    made = data / "agentcanvas" / "logins" / "codex" / ".codex" / "auth.json"
    assert made.read_text() == "login \n"
    assert place.run("login", "codex", "--out", XDG_DATA_HOME=str(data)).returncode == 0
    assert not made.exists()


@pytest.mark.req("D12", "D43")
def test_a_login_is_made_away_from_the_files_of_the_repository(
    place: Place, tmp_path: Path
) -> None:
    script = 'mkdir "$HOME/.codex"; pwd > "$HOME/.codex/auth.json"'
    path, data = tool(tmp_path / "tools", "codex", script), tmp_path / "data"
    done = place.run("login", "codex", PATH=path, XDG_DATA_HOME=str(data))
    assert done.returncode == 0, done.stderr
    home = data / "agentcanvas" / "logins" / "codex"
    assert (home / ".codex" / "auth.json").read_text() == f"{home}\n"


def test_a_login_that_was_not_made_is_told(place: Place, tmp_path: Path) -> None:
    path = tool(tmp_path / "tools", "codex", "exit 4")
    done = place.run("login", "codex", PATH=path, XDG_DATA_HOME=str(tmp_path / "data"))
    assert done.returncode == 1
    assert "Codex left no login (exit code 4)" in done.stderr
