"""The HANDOFF is written from the answer and the facts, and only when something changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.agents.handoff import make_handoff
from agentcanvas.protocol.forms import Handoff, StandardResponse, check, parse, write

WORK = ".agentcanvas/sandboxes/run_20260219_100000/coder-1/work"
PROPOSAL = ".agentcanvas/sandboxes/run_20260219_100000/coder-1/proposal/proposal.json"


def handoff(**more: object) -> Handoff | None:
    plain: dict[str, object] = {
        "task": "Split the endpoints\nand add error handling",
        "response": StandardResponse(
            intent="Split src/api.ts",
            plan=("Move the routes",),
            risks=("Callers that import internals",),
            next_steps=("Document the routes",),
        ),
        "sandbox_work_dir": WORK,
        "proposal_json": PROPOSAL,
        "changed_files": ["src/api.ts", "src/routes.ts"],
        "acceptance_criteria": ["npm test passes", "0 lint errors"],
        "tests": ["npm test"],
    }
    return make_handoff(**(plain | more))  # type: ignore[arg-type]  # a test names what it varies


@pytest.mark.req("T2", "T3")
def test_it_says_what_the_worker_meant_and_what_is_known() -> None:
    made = handoff()
    assert made == Handoff(
        context="Split src/api.ts",
        goal="Split the endpoints\nand add error handling",
        dod="npm test passes; 0 lint errors",
        sandbox_work_dir=WORK,
        proposal_json=PROPOSAL,
        changed_files=("src/api.ts", "src/routes.ts"),
        tests=("npm test",),
        next=(
            "Orchestrator: review + apply or request changes",
            "Risk: Callers that import internals",
            "Document the routes",
        ),
    )
    assert made is not None
    assert check(made) == ()


@pytest.mark.req("C12")
def test_there_is_none_without_a_change() -> None:
    assert handoff(changed_files=[]) is None


@pytest.mark.req("T3")
def test_criteria_nobody_can_check_do_not_become_the_definition_of_done() -> None:
    made = handoff(acceptance_criteria=["works well"])
    assert made is not None
    assert made.dod == "works well; the declared checks pass on base + patch"
    assert check(made) == ()


def test_it_is_written_even_where_the_worker_gave_no_response() -> None:
    made = handoff(response=None, acceptance_criteria=[], tests=[])
    assert made is not None
    assert made.context == made.goal
    assert check(made) == ()


@given(st.text(), st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_whatever_text_comes_in_it_can_be_written_and_read(
    task: str, criteria: list[str], tests: list[str]
) -> None:
    made = handoff(task=task, acceptance_criteria=criteria, tests=tests)
    assert made is not None
    assert parse(write(made), Handoff) == made
