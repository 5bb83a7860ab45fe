"""The Python API: a team of functions works in a real repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import agentcanvas
from agentcanvas import Message, Team, run_flow
from agentcanvas.agents.runtime import Turn
from agentcanvas.errors import ValidationError
from agentcanvas.protocol.envelope import AgentRef
from agentcanvas.protocol.kinds import Kind, TaskAssign
from agentcanvas.runs.state import RunStatus, TaskStatus
from tests.runs.workspaces import repository, solo


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n"})


def writes(turn: Turn, name: str, text: str) -> str:
    assert turn.place is not None
    (turn.place.tree / name).write_text(text)
    return f"wrote {name}"


def test_a_team_of_one_function_lands_what_you_approve(root: Path) -> None:
    team = Team(checks={"greeting": "grep -q world greeting.txt"})
    asked: list[str] = []

    @team.worker("coder")
    def coder(turn: Turn) -> str:
        return writes(turn, "greeting.txt", "hello world\n")

    def review(ask: Any) -> str:
        asked.append(ask.text)
        return "apply"

    result = team.run("Greet the world", workspace=root, review=review)
    assert result.done
    assert "greeting: red → green" in asked[0]
    assert (root / "greeting.txt").read_text() == "hello world\n"
    assert "✅ Applied" in result.report


@pytest.mark.req("R3", "C2")
def test_a_planner_two_workers_and_a_reviewer(root: Path) -> None:
    team = Team()
    judged: list[str] = []

    @team.planner("boss")
    async def boss(turn: Turn) -> Any:
        if turn.form is None:
            return "All done."
        tasks = [
            {
                "task_id": name,
                "agent": name,
                "description": f"Write {name}.txt",
                "scope": [f"{name}.txt"],
            }
            for name in ("ann", "bob")
        ]
        return {"tasks": tasks}

    @team.worker("ann")
    def ann(turn: Turn) -> str:
        return writes(turn, "ann.txt", f"revision {turn.revision}\n")

    @team.worker("bob")
    def bob(turn: Turn) -> str:
        return writes(turn, "bob.txt", "bob\n")

    @team.reviewer("judge")
    def judge(turn: Turn) -> str:
        judged.append(f"{turn.task_id} {turn.revision}")
        first = turn.task_id == "review-ann" and turn.revision == 0
        return "REVISE: once more" if first else "Fine.\nAPPLY"

    result = team.run("Write two files", workspace=root)
    assert result.done, result.report
    assert sorted(judged) == ["review-ann 0", "review-ann 1", "review-bob 0"]
    assert (root / "ann.txt").read_text() == "revision 1\n"
    assert (root / "bob.txt").read_text() == "bob\n"
    assert {task.status for task in result.state.tasks.values()} == {TaskStatus.APPLIED}
    assert result.state.tasks["ann"].attempts == 2


def test_a_flow_runs_by_its_name_and_is_left_parked_when_nobody_answers(root: Path) -> None:
    flows = root / ".agentcanvas" / "flows"
    flows.mkdir(parents=True)
    (flows / "greet.yaml").write_text(solo("echo hello world > greeting.txt"))

    async def play(answer: Any) -> Any:
        return await run_flow("greet", "Greet the world", workspace=root, answer=answer)

    parked = anyio.run(play, None)
    assert parked.state.status is RunStatus.PARKED
    assert not parked.done
    assert anyio.run(play, lambda _: "apply").done


def test_a_team_without_a_worker_is_refused() -> None:
    with pytest.raises(ValidationError, match="no worker"):
        Team().flow()


def test_two_members_of_one_name_are_refused() -> None:
    team = Team()
    team.worker("ann")
    with pytest.raises(ValidationError, match="ann already"):
        team.worker("ann")


def test_the_public_names_are_there_and_are_imported_late() -> None:
    assert set(agentcanvas.__all__) <= set(dir(agentcanvas))
    message = Message(
        id="m1",
        kind=Kind.TASK_ASSIGN,
        time="2026-01-31T09:30:00.000Z",
        sender=AgentRef("a"),
        body=TaskAssign(task_id="t1"),
    )
    assert msgspec.structs.replace(message, id="m2").id == "m2"
    with pytest.raises(AttributeError, match="nothing"):
        _ = agentcanvas.nothing


def test_the_program_in_the_readme_works_as_written(tmp_path: Path) -> None:
    tests = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self): pass\n"
    root = repository(tmp_path / "repo", {"test_it.py": tests})
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert "✅ Applied" in told.stdout
    assert (root / "hello.txt").read_text() == "hello\n"
