"""Worst cases: capped by ends and budgets, added up along the order, unbounded by name."""

from __future__ import annotations

import msgspec
import pytest

from agentcanvas.flows.bounds import Bound, bounds
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.pattern_info import Case, Cost, PatternInfo
from tests.flows.writing import with_team


def worst(case: Case) -> Cost:
    """Each round: a plan, and every task in all its rounds of review."""
    steps = case.tasks or case.players["worker"]
    turns = (case.rounds or 1) * (1 + steps * case.iterations * 2)
    return Cost(turns, 2 * turns)


KNOWN: dict[str, PatternInfo] = CATALOGUE | {
    "manager_worker": msgspec.structs.replace(CATALOGUE["manager_worker"], worst_case=worst)
}


def interaction(name: str, worker: str, words: str = "") -> str:
    rounds = "data: {termination: {type: max_rounds, rounds: 1}}"
    review = "review: {reviewer: person, max_iterations: 1}"
    roles = f"roles: {{worker: {worker}}}"
    more = f", {words}" if words else ""
    return f"  - {{id: {name}, patternId: manager_worker, {roles}, {rounds}, {review}{more}}}\n"


def found(text: str, *, max_parallel: int = 5) -> dict[str, Bound]:
    result = bounds(with_team(text, KNOWN).sound(), KNOWN, max_parallel=max_parallel)
    return {each.name: each for each in (*result.interactions, result.total)}


def test_a_patterns_worst_case_is_taken_and_turned_into_minutes() -> None:
    one = found(f"interactions:\n{interaction('i1', 'coder')}")["i1"]
    assert (one.turns, one.messages) == (3, 6)
    # 30 minutes a turn (D32) and one check found in the project, before and after.
    assert one.minutes == 3 * (30 + 2 * 10)


def test_the_runtimes_and_the_checks_own_times_count() -> None:
    checks = "checks: [{name: c, command: x, timeout_ms: 60000}]"
    one = found(f"interactions:\n{interaction('i1', 'coder')}{checks}\n")["i1"]
    assert one.minutes == 3 * (30 + 2 * 1)


def test_ends_and_budgets_cap_the_worst_case() -> None:
    words = "budgets: {turns: 2, messages: 3, minutes: 7.5, tokens: 1000, cost: 2}"
    one = found(f"interactions:\n{interaction('i1', 'coder', words)}")["i1"]
    assert (one.turns, one.messages, one.minutes) == (2, 3, 7.5)
    assert one.tokens_in_words == "1,000 + one turn of each of up to 1 running agents"
    assert one.unbounded == ()


def test_interactions_in_a_row_add_up() -> None:
    all_ = found(f"interactions:\n{interaction('i1', 'coder')}{interaction('i2', 'tester')}")
    assert all_["total"].turns == 6
    assert all_["total"].minutes == 300


def test_side_by_side_the_longest_way_counts() -> None:
    text = "interactions:\n" + "".join(
        [
            interaction("i1", "coder", "after: []"),
            interaction("i2", "tester", "after: []"),
            interaction("i3", "coder", "after: [i1, i2]"),
        ]
    )
    assert found(text)["total"].minutes == 300
    assert found(text)["total"].turns == 9


def test_agents_that_are_shared_make_it_the_sum() -> None:
    text = "interactions:\n" + "".join(
        interaction(name, "coder", "after: []") for name in ("i1", "i2", "i3")
    )
    assert found(text)["total"].minutes == 450


def test_too_few_places_at_once_make_it_the_sum() -> None:
    text = "interactions:\n" + "".join(
        [interaction("i1", "coder", "after: []"), interaction("i2", "tester", "after: []")]
    )
    assert found(text, max_parallel=2)["total"].minutes == 150
    assert found(text, max_parallel=1)["total"].minutes == 300


def test_a_flows_budget_caps_the_whole() -> None:
    all_ = found(
        f"interactions:\n{interaction('i1', 'coder')}{interaction('i2', 'tester')}"
        "budgets: {turns: 4, tokens: 500}\n"
    )
    assert (all_["i1"].turns, all_["i2"].turns, all_["total"].turns) == (3, 3, 4)
    assert all_["total"].tokens == 500


def test_what_has_no_bound_is_said_by_name() -> None:
    text = (
        "interactions:\n  - {id: i1, patternId: debate_judge, "
        "roles: {debater: [coder, tester], judge: planner}}\n"
    )
    one = found(text)["total"]
    assert one.turns is None
    assert one.minutes == 15  # its timeout is a bound of its own
    assert one.tokens_in_words == "unbounded"
    assert one.unbounded == (
        "i1: no bound on turns; set budgets.turns",
        "i1: no bound on messages; set budgets.messages",
        "i1: no bound on tokens; set budgets.tokens",
    )


@pytest.mark.req("D19")
def test_turns_that_no_pattern_asks_for_are_told_by_the_agents_that_take_them() -> None:
    one = found(f"interactions:\n{interaction('i1', 'coder')}")["total"]
    assert one.on_top == (
        "coder: a turn that runs into a limit of the service, or is handed over, is taken up "
        "again, at most 4 times",
        "coder: may ask others in the middle of a turn; each question is a turn; set "
        "budgets.turns to hold them",
    )
    held = f"interactions:\n{interaction('i1', 'coder', 'budgets: {turns: 9}')}"
    assert found(held)["total"].on_top[1].endswith("a turn; budgets.turns holds them")


def test_agents_of_nobodys_service_take_no_turns_of_their_own() -> None:
    flow = """
version: 0.2
agents: [{id: ann, runtime: {kind: script, script: a.yaml}}]
interactions: [{id: i1, patternId: manager_worker, roles: {worker: ann}}]
"""
    total = bounds(check(read_document(flow.encode(), "f.yaml"), KNOWN).sound(), KNOWN).total
    assert total.on_top == ()


@pytest.mark.req("I2")
def test_parts_that_are_streamed_count_as_messages() -> None:
    edges = "edges: [{source: planner, target: coder, data: {sync: streaming}}]"
    plain = found(f"interactions:\n{interaction('i1', 'coder')}")["i1"]
    streamed = found(f"interactions:\n{interaction('i1', 'coder', edges)}")["i1"]
    assert plain.messages is not None
    assert streamed.turns == plain.turns == 3
    assert streamed.messages == plain.messages + 3 * 16
