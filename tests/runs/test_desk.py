"""What counts as done when a person has let a red check pass (D13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.runs.state import RunStatus
from tests.chaos.driving import ask_of, flow, judged, kinds, order, rests, so_far, writing
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("C4", "D13")]

CODER = {"coder": writing("greeting.txt", "hello\n")}
STAYS = {"name": "stays", "command": "grep -q hi greeting.txt"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hi\n"})


async def test_a_red_change_that_a_person_accepts_with_a_reason_ends_the_run(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow(checks=[STAYS], rounds=2)))
        await rests(engine, run_id)
        after = await judged(engine, run_id, decision="apply", reason="because")
        state = await engine.state(run_id)
        assert state.status is RunStatus.DONE, state.reason
        assert "red, which a person accepted: stays" in state.reason
        assert "turn_started" not in kinds(after), "nobody is asked to mend what was accepted"


async def test_what_fails_in_another_way_than_before_needs_a_reason(root: Path) -> None:
    otherwise = {"name": "odd", "command": "grep -q hi greeting.txt && exit 1 || exit 2"}
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow(checks=[otherwise])))
        await rests(engine, run_id)
        assert kinds(await judged(engine, run_id, decision="apply"))[-1] == "run_parked"
        assert (
            "in another way than before: odd: red → red" in (await ask_of(engine, run_id)).problem
        )
        await judged(engine, run_id, decision="apply", reason="because")
        assert (await engine.state(run_id)).status is RunStatus.DONE


async def test_what_is_red_as_before_is_landed_for_the_asking(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow(checks=[{"name": "red", "command": "false"}])))
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert "proposal_applied" in kinds(await so_far(engine, run_id))
