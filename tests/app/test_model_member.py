"""A model as a member of a team: it works in a sandbox, is sent back once, and its change lands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcanvas import run_flow
from agentcanvas.errors import FlowError
from tests.agents.runtimes.model.canned import chat, chat_call, serving
from tests.runs.workspaces import repository

KEY = "sk-test-0123456789"
FLOW = """
version: 0.2
agents:
  - id: coder
    runtime:
      kind: model
      model: stub-1
      url: {url}/v1
      keyEnv: MY_MODEL_KEY
      options: {options}
interactions:
  - id: work
    patternId: manager_worker
    roles: {{worker: coder}}
    data:
      termination:
        - {{type: max_rounds, rounds: 1}}
checks:
  - {{name: greeting, command: grep -q world greeting.txt}}
review: {{reviewer: person, max_iterations: 3}}
"""


def flow(root: Path, url: str, options: str = "{api: chat}") -> str:
    folder = root / ".agentcanvas" / "flows"
    folder.mkdir(parents=True)
    (folder / "greet.yaml").write_text(FLOW.format(url=url, options=options))
    return "greet"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n"})


@pytest.mark.req("D6", "D18")
async def test_a_model_proposes_is_sent_back_and_lands(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_MODEL_KEY", KEY)
    asked: list[str] = []

    def answer(ask: Any) -> str:
        asked.append(ask.text)
        return "revise: greet the world" if len(asked) == 1 else "apply"

    async with serving(
        chat_call("write_file", path="greeting.txt", content="hello you\n"),
        chat({"content": "Greeted."}),
        chat_call("edit_file", path="greeting.txt", old="you", new="world"),
        chat({"content": "Greeted the world."}),
    ) as endpoint:
        name = flow(root, endpoint.url)
        result = await run_flow(name, "Greet the world", workspace=root, answer=answer)
    assert result.done
    assert (root / "greeting.txt").read_text() == "hello world\n"
    revision = endpoint.asked[2].body["messages"]
    assert any("hello you" in str(message) for message in revision), "the conversation goes on"
    for file in (root / ".agentcanvas").rglob("*"):
        if file.is_file() and file.name != "greet.yaml":
            assert KEY.encode() not in file.read_bytes(), file


async def test_a_misspelt_option_is_named_before_anything_starts(root: Path) -> None:
    name = flow(root, "http://127.0.0.1:9", options="{steps: 3}")
    with pytest.raises(FlowError, match="max_steps"):
        await run_flow(name, "Greet", workspace=root)


TEAM = """
version: 0.2
agents:
  - id: coder
    runtime: {{kind: model, model: stub-1, url: {url}/v1, keyEnv: MY_MODEL_KEY}}
  - id: expert
    role: expert
    runtime: {{kind: model, model: stub-2, url: {url}/v1, keyEnv: MY_MODEL_KEY}}
interactions:
  - id: work
    patternId: manager_worker
    roles: {{worker: coder}}
    edges: {edges}
    data:
      termination:
        - {{type: max_rounds, rounds: 1}}
checks:
  - {{name: greeting, command: grep -q world greeting.txt}}
review: {{autoApprove: true}}
"""


@pytest.mark.req("D23")
async def test_a_model_asks_another_member_in_the_middle_of_its_turn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_MODEL_KEY", KEY)
    (root / ".agentcanvas" / "flows").mkdir(parents=True)
    async with serving(
        chat_call("ask_member", to="expert", message="Whom do I greet?"),
        chat({"content": "The world."}),
        chat_call("write_file", path="greeting.txt", content="hello world\n"),
        chat({"content": "Greeted."}),
    ) as endpoint:
        (root / ".agentcanvas" / "flows" / "ask.yaml").write_text(
            TEAM.format(url=endpoint.url, edges="[]")
        )
        result = await run_flow("ask", "Greet", workspace=root)
    assert result.done, result.report
    assert [each.body["model"] for each in endpoint.asked] == [
        "stub-1",
        "stub-2",
        "stub-1",
        "stub-1",
    ]
    assert "The world." in str(endpoint.asked[2].body["messages"])
    log = next((root / ".agentcanvas" / "runs").rglob(f"{result.run_id}.jsonl")).read_text()
    assert '"member_asked"' in log
    assert '"member_answered"' in log
