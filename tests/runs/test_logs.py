"""The interaction log of a real run has the lines that the documents show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.protocol.person import PersonAnswer
from tests.runs.workspaces import engine_on, order, repository, solo

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[1] / "protocol" / "examples"


def shapes(lines: list[dict[str, Any]]) -> dict[str, dict[str, type]]:
    """The names and types of each kind of line."""
    return {line["event"]: {name: type(value) for name, value in line.items()} for line in lines}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def logged(tmp_path: Path, flow: str) -> list[dict[str, Any]]:
    """The interaction log of a run of a flow."""
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow))
        async for _ in engine.events(run_id):
            pass
    (log,) = root.glob(".agentcanvas/logs/*/*.jsonl")
    return read(log)


@pytest.mark.req("V3")
async def test_the_interaction_log_has_the_lines_of_the_examples(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    async with engine_on(root) as engine:
        for verdict in ("apply", "reject"):
            run_id = await engine.start(order(solo("date +world-%N > greeting.txt")))
            async for _ in engine.events(run_id):
                pass
            while asks := await engine.asks(run_id):
                after = (await engine.state(run_id)).seq
                answer = PersonAnswer({"decision": verdict, "reason": "so"}, "you")
                await engine.answer(asks[0].ask_id, answer)
                async for _ in engine.events(run_id, after=after):
                    pass
    (log,) = (root / ".agentcanvas" / "logs" / "solo").iterdir()
    written = shapes(read(log))
    for name in ("ac_interaction_events.jsonl", "ac_proposal_events.jsonl"):
        for event, shape in shapes(read(EXAMPLES / name)).items():
            assert written[event] == shape, event
    assert log.name.endswith(".jsonl")


DEBATE = """
version: 0.2
agents:
  - {id: ann, runtime: {kind: command, command: "cat >/dev/null; echo because"}}
  - {id: bob, runtime: {kind: command, command: "cat >/dev/null; echo although"}}
  - id: eve
    role: judge
    runtime: {kind: command, command: "cat >/dev/null; echo against"}
interactions:
  - id: i1
    patternId: debate_judge
    edges: [{source: ann, target: eve}, {source: bob, target: eve}]
    data: {termination: [{type: max_rounds, rounds: 1}, {type: timeout_ms, ms: 60000}]}
"""


@pytest.mark.req("V3", "D22")
async def test_what_goes_along_an_edge_is_from_speaker_to_speaker(tmp_path: Path) -> None:
    log = await logged(tmp_path, DEBATE)
    steps = [line for line in log if line["event"] == "step"]
    assert [(line["edgeId"], line["from"], line["to"]) for line in steps] == [
        ("", "engine", "ann"),
        ("", "ann", "engine"),
        ("", "engine", "bob"),
        ("", "bob", "engine"),
        ("e1", "ann", "eve"),
        ("e1", "eve", "ann"),
    ]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    assert log[-1]["reason"] == "judge_decision: against"


ASKED = """
version: 0.2
agents:
  - {id: ann, runtime: {kind: command, command: "cat >/dev/null; echo why?"}}
  - {id: bob, runtime: {kind: command, command: "cat >/dev/null; echo because"}}
interactions:
  - id: i1
    patternId: role_play_pair
    edges: [{source: ann, target: bob}]
    data: {termination: [{type: max_rounds, rounds: 1}, {type: timeout_ms, ms: 60000}]}
"""


@pytest.mark.req("V3")
async def test_every_line_of_an_interaction_with_one_edge_names_the_edge(tmp_path: Path) -> None:
    named = {line["event"]: line["edgeId"] for line in await logged(tmp_path, ASKED)}
    assert (named["configured"], named["terminated"]) == ("e1", "e1")
