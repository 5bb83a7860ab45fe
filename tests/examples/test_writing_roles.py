"""What a role changes goes through sandbox, proposal and gate, in every pattern (D6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.patterns import PATTERNS
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunOrder
from tests.examples.scenes import flow_of, team
from tests.patterns.scenes import SCENES
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4", "D6")]

WRITING = {
    pattern.id: {role.name for role in pattern.roles if role.writes}
    for pattern in PATTERNS
    if any(role.writes for role in pattern.roles) and pattern.id != "self_consistency_ensemble"
}
"""A majority is of words; drafts that change files are tried in ``test_best_of``."""


def writes(say: Callable[[Turn], str]) -> Callable[[Turn], str]:
    """The same words, and a file named for the task where there is a place for it."""

    def answer(turn: Turn) -> str:
        said = say(turn)
        if turn.task_id and turn.place is not None:
            (turn.place.tree / turn.task_id).write_text(turn.agent_id)
        return said

    return answer


@pytest.mark.parametrize("name", WRITING)
async def test_a_change_is_proposed_judged_and_landed_and_nothing_else_reaches_the_workspace(
    name: str, tmp_path: Path
) -> None:
    scene = SCENES[name]
    root = repository(tmp_path / "repo", {"README.md": "# Here\n"})
    writers = {agent for role in WRITING[name] for agent in scene.cast.get(role, ())}
    functions = {who: writes(say) for who, say in team(scene).items()}
    async with engine_on(root, functions=functions) as engine:
        flow = flow_of(name, scene)
        run_id = await engine.start(RunOrder(flow=name, flow_text=flow, request="Wash up"))
        events = [entry.event async for entry in engine.events(run_id)]
    handed_in = [each for each in events if isinstance(each, e.ProposalSubmitted)]
    assert handed_in
    assert {each.actor for each in handed_in} <= writers
    judged = [each for each in events if isinstance(each, e.ProposalReviewed)]
    assert judged
    landed = {
        path for each in events if isinstance(each, e.ProposalLanded) for path in each.payload.files
    }
    there = {path.name for path in root.iterdir()} - {".git", ".agentcanvas", "README.md"}
    assert there == landed
