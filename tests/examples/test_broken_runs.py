"""The log of a real run shows it when a pattern breaks its rule, for each of the twenty."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.app import office
from agentcanvas.pattern import Answer
from agentcanvas.runs.office import RunOrder
from tests.examples.logs import log_of
from tests.patterns.broken import BROKEN
from tests.patterns.properties import breaches
from tests.patterns.scenes import SCENES, Scene
from tests.patterns.team import script
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4")]


def flow_of(name: str, scene: Scene) -> str:
    """The scene as a flow; JSON is YAML too."""
    agents = sorted({agent for agents in scene.cast.values() for agent in agents})
    runtime = {"kind": "python", "call": "team:say"}
    params = msgspec.to_builtins(scene.options) if scene.options is not None else {}
    interaction = {
        "id": "main",
        "patternId": name,
        "roles": {role: list(agents) for role, agents in scene.cast.items()},
        "data": {"params": {**params, "rate_limit_per_min": 1000}},
    }
    flow = {
        "version": "0.2",
        "agents": [{"id": agent, "role": "member", "runtime": runtime} for agent in agents],
        "interactions": [interaction],
        "review": {"autoApprove": True, "allowUnverified": True},
        "budgets": {"turns": 60, "minutes": 5},
    }
    return json.dumps(flow)


def team(scene: Scene) -> dict[str, Callable[[Turn], str]]:
    """Agents that answer as the scene says."""
    say = script(scene.parts)

    def member(agent: str) -> Callable[[Turn], str]:
        def answer(turn: Turn) -> str:
            reply: Any = say(agent, turn.prompt)
            if isinstance(reply, Answer):
                if not reply.done:
                    raise RuntimeError(reply.reason)
                return reply.text
            return str(reply)

        return answer

    return {agent: member(agent) for agents in scene.cast.values() for agent in agents}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_variant_is_seen_in_the_log_of_a_real_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office, "PATTERNS", tuple(BROKEN.values()))
    scene = SCENES[name]
    root = repository(tmp_path / "repo", {"README.md": "# Here\n"})
    flow = tmp_path / "flow.yaml"
    flow.write_text(flow_of(name, scene))
    async with engine_on(root, functions=team(scene)) as engine:
        order = RunOrder(flow=name, flow_text=flow.read_text(), request="Wash up")
        run_id = await engine.start(order)
        async for _ in engine.events(run_id):
            pass
        log = await log_of(engine._with.store, engine._register.stream(run_id), flow)
    assert log.said
    assert breaches(log, name)
