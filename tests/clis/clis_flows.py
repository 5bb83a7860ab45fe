"""Real CLIs in real flows: plan, edit, proposal, revise in the same session, apply.

Not collected by ``make test``: ``make clis`` installs the programs and runs these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.app.clis import adapter_of
from agentcanvas.app.team import RunResult, run_flow
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.sandbox.pick import pick
from tests.clis.conftest import KEY_ENV, Need
from tests.model_server.server import KEY, ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.req("S2", "D11", "D18")]

EVERY = (
    "claude",
    "codex",
    "gemini",
    "opencode",
    "qwen",
    "goose",
    "aider",
    "copilot",
    "pi",
    "kimi",
    "cline",
)
RESUMING = frozenset(EVERY) - {"cline"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    (root / "README.md").write_text("hello world\n")
    for words in ("init -q", "add -A", "-c user.name=t -c user.email=t@t commit -qm first"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def member(agent_id: str, role: str, cli: str, model: ModelServer) -> dict[str, Any]:
    runtime = {
        "kind": "cli",
        "backendId": cli,
        "url": model.url,
        "keyEnv": KEY_ENV,
        "model": "stub-model",
    }
    return {"id": agent_id, "role": role, "runtime": runtime}


def write_flow(root: Path, agents: Sequence[dict[str, Any]], reviewer: str) -> Path:
    workers = [agent["id"] for agent in agents if agent["role"] == "worker"]
    flow = {
        "version": "0.2",
        "agents": agents,
        "interactions": [
            {
                "id": "work",
                "patternId": "manager_worker",
                "roles": {"manager": "planner", "worker": workers},
                "data": {"termination": [{"type": "max_rounds", "rounds": 1}]},
            }
        ],
        "checks": [{"name": "there", "command": "test -f README.md"}],
        "review": {"reviewer": reviewer, "max_iterations": 3},
        "budgets": {"turns": 40, "minutes": 30},
    }
    path = root.parent / "flow.yaml"
    path.write_text(json.dumps(flow))
    return path


def plan(*tasks: tuple[str, str, str]) -> str:
    """A plan as a line that the model says; line breaks in it are those of JSON alone."""
    rows = [
        {
            "task_id": task_id,
            "agent": agent,
            "description": description,
            "scope": [f"{task_id}.txt", f"{task_id}-more.txt"],
        }
        for task_id, agent, description in tasks
    ]
    return "SAY " + json.dumps({"tasks": rows}).replace("\\n", "\\u000a")


def transcripts(root: Path) -> str:
    folder = root / ".agentcanvas"
    return "\n".join(path.read_text("utf-8", "replace") for path in folder.rglob("*.jsonl"))


def told(result: RunResult, root: Path) -> str:
    """Why a run did not do what it should, for the message of a failed test."""
    return f"{result.state.status} {result.report}\n{transcripts(root)[-6_000:]}"


async def inside(root: Path, name: str) -> str:
    """A file as the agents see it; some CLIs insist on whole paths."""
    confinement = (await pick()).confinement
    return f"{root}/{name}" if confinement.name == "bubblewrap" else name


@pytest.mark.parametrize("cli", EVERY)
async def test_plan_edit_proposal_revise_apply(
    cli: str, need: Need, model: ModelServer, workspace: Path
) -> None:
    need(cli)
    first, second = await inside(workspace, "one.txt"), await inside(workspace, "one-more.txt")
    agents = [member("planner", "orchestrator", cli, model), member("coder", "worker", cli, model)]
    flow = write_flow(workspace, agents, "person")
    asked: list[PersonAsk] = []

    def answer(ask: PersonAsk) -> str:
        asked.append(ask)
        return f"revise: One is missing.\nWRITE {second} two" if len(asked) == 1 else "apply"

    request = plan(("one", "coder", f"WRITE {first} one"))
    result = await run_flow(flow, request, workspace=workspace, answer=answer)
    assert result.done, told(result, workspace)
    assert len(asked) == 2
    # The stub says the whole script again to a revision, and aider adds to what is there.
    assert set((workspace / "one.txt").read_text().split()) == {"one"}
    assert set((workspace / "one-more.txt").read_text().split()) == {"two"}
    said = transcripts(workspace)
    assert ("prior=1" in said) == (cli in RESUMING), said[-4_000:]
    # The key reached the model, and nobody inside has seen it.
    assert set(model.keys) == {KEY}
    assert KEY not in said
    expected = {".git", ".agentcanvas", ".gitignore", "README.md", "one.txt", "one-more.txt"}
    assert set(os.listdir(workspace)) <= expected  # noqa: PTH208 -- names only


async def test_four_different_clis_are_one_team(
    need: Need, model: ModelServer, workspace: Path
) -> None:
    need("claude", "codex", "gemini", "qwen")
    first, second = await inside(workspace, "one.txt"), await inside(workspace, "two.txt")
    agents = [
        member("planner", "orchestrator", "claude", model),
        member("coder-a", "worker", "codex", model),
        member("coder-b", "worker", "gemini", model),
        member("judge", "reviewer", "qwen", model),
    ]
    flow = write_flow(workspace, agents, "judge")
    request = plan(
        ("one", "coder-a", f"WRITE {first} one\nSAY APPLY"),
        ("two", "coder-b", f"WRITE {second} two\nSAY APPLY"),
    )
    result = await run_flow(flow, request, workspace=workspace)
    assert result.done, told(result, workspace)
    assert (workspace / "one.txt").read_text().strip() == "one"
    assert (workspace / "two.txt").read_text().strip() == "two"


@pytest.mark.parametrize("cli", sorted(set(EVERY) - {"aider"}))
async def test_the_shell_of_an_agent_sees_no_key(
    cli: str, need: Need, model: ModelServer, workspace: Path
) -> None:
    need(cli)
    seen = await inside(workspace, "one.txt")
    agents = [member("planner", "orchestrator", cli, model), member("coder", "worker", cli, model)]
    flow = write_flow(workspace, agents, "person")
    request = plan(("one", "coder", f"SHELL (env; cat /proc/*/environ) > {seen} 2>&1; true"))
    result = await run_flow(flow, request, workspace=workspace, answer=lambda _: "apply")
    assert result.done, told(result, workspace)
    found = (workspace / "one.txt").read_bytes()
    assert b"PATH=" in found
    assert KEY.encode() not in found
    assert os.environ[KEY_ENV] == KEY


SPEAK_MCP = [cli for cli in EVERY if adapter_of(cli).facts.speaks_mcp]


@pytest.mark.parametrize("cli", SPEAK_MCP)
async def test_a_tool_of_the_team_is_used_by_a_real_cli(
    cli: str, need: Need, model: ModelServer, workspace: Path
) -> None:
    need(cli)
    path = await inside(workspace, "one.txt")
    agents = [member("planner", "orchestrator", cli, model), member("coder", "worker", cli, model)]
    flow = write_flow(workspace, agents, "person")
    posted = json.dumps({"topic": "greeting", "text": f"said by {cli}"})
    request = plan(("one", "coder", f"TOOL post_to_board {posted}\nWRITE {path} one"))
    result = await run_flow(flow, request, workspace=workspace, answer=lambda _: "apply")
    assert result.done, told(result, workspace)
    assert '"event":"team_posted"' in transcripts(workspace), told(result, workspace)
    assert f"said by {cli}" in transcripts(workspace)


def test_a_request_and_a_fresh_workspace_need_no_yaml(
    need: Need, model: ModelServer, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("claude")
    monkeypatch.setenv("HOME", str(workspace.parent))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
    program = (sys.executable, "-c", "from agentcanvas.cli import main; main()")

    def give(*words: str) -> str:
        done = subprocess.run(
            [*program, *words], cwd=workspace, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    assert "READY" in give("agents", "test", "claude") or model.requests
    # Without a check a change is unverified, and would wait for a person.
    approve = ("--auto-approve", "--no-input", "--check", "test -f README.md")
    give("run", "WRITE one.txt one", *approve)
    assert (workspace / "one.txt").read_text() == "one\n"
    give("init")
    give("run", "solo", "WRITE two.txt two", "--yes", *approve)
    assert (workspace / "two.txt").read_text() == "two\n"
