"""Several drafts that change files, of which only the best lands: on the real engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.state import RunStatus, TaskStatus
from tests.runs.workspaces import engine_on, git, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("P08", "D6")]

FLOW = """\
version: 0.2
agents: [{id: ann}, {id: bob}, {id: judge, role: reviewer}]
interactions:
  - id: draft
    patternId: self_consistency_ensemble
    roles: {sampler: [ann, bob], aggregator: judge}
    data: {params: {samples: 2, select: score}}
checks: [{name: motto, command: test -s motto.txt}]
review: {autoApprove: true}
budgets: {turns: 20, minutes: 5}
"""


def writes(text: str) -> Any:
    def agent(turn: Any) -> str:
        (turn.place.tree / "motto.txt").write_text(f"{text}\n")
        return f"It says: {text}"

    return agent


def judge(turn: Any) -> dict[str, float]:
    return {"score": 0.9 if "less is more" in turn.prompt else 0.3}


async def test_the_best_scored_draft_is_the_only_one_that_lands(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"motto.txt": "?\n"})
    team = {"ann": writes("more is more"), "bob": writes("less is more"), "judge": judge}
    async with engine_on(root, functions=team) as engine:
        run_id = await engine.start(RunOrder(flow="draft", flow_text=FLOW, request="A motto"))
        async for _ in engine.events(run_id):
            pass
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.DONE, "best of 2: 0.9")
        assert state.result == "It says: less is more"
        assert state.tasks["draft-2"].status is TaskStatus.APPLIED
    assert (root / "motto.txt").read_text() == "less is more\n"
    assert git(root, "status", "--porcelain") == "M motto.txt"
