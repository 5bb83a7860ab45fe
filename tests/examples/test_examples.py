"""Every example runs as it stands, on the real engine, and keeps its pattern's rule."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.flows.check import check
from agentcanvas.flows.load import read_flow
from agentcanvas.patterns import PATTERNS
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.state import RunState, RunStatus
from tests.examples.logs import log_of
from tests.patterns.properties import breaches
from tests.patterns.team import Log
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I4")]

EXAMPLES = Path(__file__).parents[2] / "examples"

ENDS = {
    "manager_worker": "quality_gate: tests_passed >= 1",
    "role_play_pair": "task_done",
    "chat_chain_pipeline": "concluded",
    "sop_assembly_line": "accepted",
    "debate_judge": "judge_decision: SQLite",
    "critic_refiner_curator": "quality_gate: converged >= 1",
    "majority_vote_with_tiebreak": "tie_break: mirror by the judge",
    "self_consistency_ensemble": "majority: 4 of 5",
    "contract_net_auction": "done: careful for 5",
    "bilateral_negotiation_offer_counteroffer": "accepted by frontend",
    "blackboard_shared_state": "nothing to add",
    "publish_subscribe": "nothing to publish",
    "broker_facilitator": "answered",
    "router_targeted": "delivered",
    "hierarchical_tree_of_agents": "gathered",
    "redteam_defender_judge": "quality_gate: score >= 0.7 (0.9)",
    "factcheck_tool_verifier": "quality_gate: citations_count >= 1",
    "plan_execute_observe_reflect": "done",
    "memory_sync_daily_summary": "summarised: 3 entries",
    "protocol_bridge_mcp_acp_a2a_anp": "answered",
}


def test_every_pattern_has_an_example() -> None:
    ids = {pattern.id for pattern in PATTERNS}
    assert ids == set(ENDS) == {flow.parent.name for flow in EXAMPLES.glob("*/flow.yaml")}


@pytest.mark.parametrize("name", ENDS)
def test_a_flow_has_no_problem_at_all(name: str) -> None:
    assert check(read_flow(EXAMPLES / name / "flow.yaml")).problems == ()


@pytest.mark.parametrize("name", ENDS)
async def test_an_example_ends_as_it_says_and_keeps_its_rule(name: str, tmp_path: Path) -> None:
    state, log = await run_of(name, tmp_path / "repo")
    assert (state.reason, state.status) == (ENDS[name], RunStatus.DONE)
    assert log.asked()
    assert breaches(log, name) == []


@pytest.mark.req("D43")
def test_the_commands_of_their_page_do_as_it_says(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"README.md": "# Here\n"})
    shutil.copytree(EXAMPLES, root / "examples")
    page = (EXAMPLES / "README.md").read_text("utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    for line in commands.splitlines():
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=root,
            env=environ,
            input="y\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.req("P18", "P19", "F2", "D46")
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("plan_execute_observe_reflect", "- Compute what can be computed instead of guessing."),
        ("memory_sync_daily_summary", "  - ops:2 DNS took an hour to follow"),
        ("critic_refiner_curator", "- Look whether the year is a leap year"),
    ],
)
async def test_what_was_learnt_is_in_the_days_file(name: str, kept: str, tmp_path: Path) -> None:
    await run_of(name, tmp_path / "repo")
    (page,) = (tmp_path / "repo" / ".agentcanvas" / "memory").iterdir()
    assert kept in page.read_text()


async def run_of(name: str, root: Path) -> tuple[RunState, Log]:
    """How a run of an example ended, in a repository of its own, and its log."""
    repository(root, {"README.md": "# Here\n"})
    shutil.copytree(EXAMPLES / name, root / "examples" / name)
    text = (EXAMPLES / name / "flow.yaml").read_text("utf-8")
    async with engine_on(root) as engine:
        run_id = await engine.start(RunOrder(flow=name, flow_text=text, request=""))
        async for _ in engine.events(run_id):
            pass
        flow = EXAMPLES / name / "flow.yaml"
        log = await log_of(engine._with.store, engine._register.stream(run_id), flow)
        return await engine.state(run_id), log
