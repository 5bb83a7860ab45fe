"""The fold: what a run's state is after its events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import StoreDamaged, ValidationError
from agentcanvas.proposals.model import Decision, ProposalReview
from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunState, RunStatus, TaskStatus, fold
from agentcanvas.store import Event
from tests.runs.test_report import RUN, example_run, started

SYSTEM = e.Provenance.SYSTEM


def at(seq: int, event: e.RunEvent) -> e.Recorded:
    return e.Recorded(seq, 0, RUN, event)


def reviewed(decision: Decision) -> e.ProposalReviewed:
    review = ProposalReview(RUN, "task-1", decision, "because")
    return e.ProposalReviewed(actor="r", provenance=SYSTEM, payload=review)


def landed(*files: str) -> e.ProposalLanded:
    return e.ProposalLanded(actor="x", provenance=SYSTEM, payload=e.Landed("task-1", files))


def ended(*, done: bool) -> e.RunEnded:
    return e.RunEnded(actor="x", provenance=SYSTEM, payload=e.End("tests pass", done))


def test_the_example_run_ends_applied() -> None:
    state = fold(example_run())
    assert state.status is RunStatus.RUNNING
    task = state.tasks["task-1"]
    assert task.status is TaskStatus.APPLIED
    assert task.files == ("src/api.ts", "src/routes.ts", "tests/api.test.ts")


def test_an_apply_verdict_is_not_yet_a_landing() -> None:
    run = [*example_run()[:4], at(9, reviewed(Decision.APPLY))]
    assert fold(run).tasks["task-1"].status is TaskStatus.IN_REVIEW
    assert fold([*run, at(10, landed("src/api.ts"))]).tasks["task-1"].status is TaskStatus.APPLIED


def test_a_revised_task_counts_its_attempts_and_keeps_its_instruction() -> None:
    again = e.TaskDispatched(
        actor="o", provenance=SYSTEM, payload=e.Dispatch("task-1", "custom:coder-1", "Add a test")
    )
    state = fold([*example_run()[:4], at(9, reviewed(Decision.REVISE)), at(10, again)])
    task = state.tasks["task-1"]
    assert (task.status, task.attempts) == (TaskStatus.DISPATCHED, 2)
    assert task.instruction == "Refactor src/api.ts"


def test_what_is_undone_is_no_longer_landed() -> None:
    undone = e.ProposalUndone(actor="u", provenance=SYSTEM, payload=e.Undone("task-1", ("a",)))
    state = fold([*example_run(), at(9, landed("a", "b")), at(10, undone)])
    assert state.landed == ("b",)
    assert state.tasks["task-1"].status is TaskStatus.UNDONE


def test_a_parked_run_says_whom_it_waits_for() -> None:
    parked = e.RunParked(actor="x", provenance=SYSTEM, payload=e.Waiting("you", "apply task-1?"))
    state = fold([*example_run(), at(9, parked)])
    assert (state.status, state.waits_for) == (RunStatus.PARKED, "you: apply task-1?")
    resumed = fold([at(10, e.RunResumed(actor="x", provenance=SYSTEM))], state)
    assert (resumed.status, resumed.waits_for) == (RunStatus.RUNNING, "")


def test_an_ended_run_does_not_go_on() -> None:
    run = [*example_run(), at(9, ended(done=True))]
    assert fold(run).status is RunStatus.DONE
    with pytest.raises(ValidationError, match=r"is done cannot become stopped; .*nothing"):
        fold([*run, at(10, ended(done=False))])


@given(st.integers(0, 6))
def test_folding_in_two_parts_gives_the_same_state(cut: int) -> None:
    run = example_run()
    assert fold(run[cut:], fold(run[:cut])) == fold(run)


def test_folding_leaves_the_earlier_state_as_it_was() -> None:
    before = fold(example_run()[:2])
    fold(example_run()[2:], before)
    assert before == fold(example_run()[:2])
    assert RunState().tasks == {}


def test_an_event_that_cannot_be_read_is_named_with_the_way_out() -> None:
    row = Event(7, f"team-alpha/{RUN}", "run_started", 0, e.to_json(started())[:-9] + b"}")
    with pytest.raises(StoreDamaged, match=r"Event 7 of team-alpha/run_.*store restore BACKUP"):
        e.from_row(row)
