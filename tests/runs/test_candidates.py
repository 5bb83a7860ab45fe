"""Candidates: proposals that wait for ``land``, and work that builds on them (D6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agentcanvas.app.office
from agentcanvas.agents.runtime import Turn
from agentcanvas.pattern import Answer, Cast, Outcome, Role, Stage, Work
from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunStatus
from tests.runs.workspaces import engine_on, order, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D6")]

FLOW = """
version: 0.2
agents:
  - {id: ann, role: worker, runtime: {kind: python, call: "team:ann"}}
  - {id: bob, role: worker, runtime: {kind: python, call: "team:bob"}}
interactions:
  - id: work
    patternId: manager_worker
    roles: {worker: [ann, bob]}
    data: {termination: [{type: max_rounds, rounds: 1}]}
checks:
  - {name: there, command: "test -d ."}
review: {autoApprove: true}
"""


class Options(msgspec.Struct, frozen=True):
    """None."""


class Drafts:
    """Two drafts; the second builds on the first, and only it is landed."""

    id = "manager_worker"
    options: type[msgspec.Struct] = Options
    roles = (Role("worker", "drafts", most=None, writes=True),)

    def __init__(self, land: Callable[[Answer[None], Answer[None]], list[Answer[None]]]) -> None:
        self._land = land

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        del cast, options
        first = await stage.ask("ann", request, work=Work("a"), land=False)
        assert first.proposal is not None
        second = await stage.ask("bob", request, work=Work("b"), land=False, on=[first.proposal])
        for chosen in self._land(first, second):
            assert chosen.proposal is not None
            assert (await stage.land(chosen.proposal)).done
        return Outcome("drafted", done=True)


def ann(turn: Turn) -> str:
    assert turn.place is not None
    (turn.place.tree / "ann.txt").write_text("ann\n")
    return "ann"


def bob(turn: Turn) -> str:
    assert turn.place is not None
    seen = (turn.place.tree / "ann.txt").read_text()
    (turn.place.tree / "bob.txt").write_text(f"after {seen}")
    return "bob"


async def play(root: Path, pattern: Drafts, monkeypatch: pytest.MonkeyPatch) -> list[e.RunEvent]:
    monkeypatch.setattr(agentcanvas.app.office, "PATTERNS", (pattern,))
    async with engine_on(root, functions={"ann": ann, "bob": bob}) as engine:
        run_id = await engine.start(order(FLOW))
        entries = [entry.event async for entry in engine.events(run_id)]
        state = await engine.state(run_id)
        assert state.status is RunStatus.DONE, state.reason
        return entries


async def test_work_on_a_candidate_finds_it_and_is_handed_in_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo", {"README.md": "hi\n"})
    events = await play(root, Drafts(lambda _, second: [second]), monkeypatch)
    assert (root / "ann.txt").read_text() == "ann\n"
    assert (root / "bob.txt").read_text() == "after ann\n"
    landed = [each.payload for each in events if isinstance(each, e.ProposalLanded)]
    assert [set(each.files) for each in landed] == [{"ann.txt", "bob.txt"}]
    let_go = [each.payload for each in events if isinstance(each, e.ProposalDiscarded)]
    assert [each.proposal_id for each in let_go] == ["a.r0"]


async def test_candidates_that_nobody_lands_leave_the_workspace_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "repo", {"README.md": "hi\n"})
    events = await play(root, Drafts(lambda _, __: []), monkeypatch)
    assert sorted(path.name for path in root.iterdir()) == [".agentcanvas", ".git", "README.md"]
    let_go = [each.payload for each in events if isinstance(each, e.ProposalDiscarded)]
    assert sorted(each.proposal_id for each in let_go) == ["a.r0", "b.r0"]
