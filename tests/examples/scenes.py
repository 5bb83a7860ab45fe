"""The scenes of the patterns as flows of the real engine, with functions as their teams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from agentcanvas.agents.runtime import Turn
from agentcanvas.pattern import Answer
from tests.patterns.scenes import Scene
from tests.patterns.team import script


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
