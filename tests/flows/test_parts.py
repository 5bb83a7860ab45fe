"""Interactions within interactions, params and verification: what is refused, and what it costs."""

from __future__ import annotations

import pytest

from agentcanvas.app.patterns import KNOWN
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.check import Checked
from agentcanvas.flows.problem import Problem, Rule
from agentcanvas.flows.settle import settle
from tests.flows.writing import with_team

pytestmark = pytest.mark.req("I1", "I5")

VOTE = """\
  - id: vote
    patternId: majority_vote_with_tiebreak
    roles: {evaluator: [planner, critic]}
    data: {params: {choices: [a, b]}}
"""


def debate(judge: str, words: str = "") -> str:
    return (
        "interactions:\n  - id: debate\n    patternId: debate_judge\n"
        f"    roles: {{debater: [coder, tester], judge: {judge}}}\n{words}"
    )


def flow(text: str) -> Checked:
    return with_team(text, KNOWN)


def error(of: Checked) -> Problem:
    (problem,) = of.errors
    return problem


def test_an_interaction_that_fills_a_role_is_played_there_and_counted_there() -> None:
    sound = flow(debate("vote") + VOTE).sound()
    assert [each.is_part for each in settle(sound, KNOWN)] == [False, True]
    (one,) = bounds(sound, KNOWN).interactions
    alone = bounds(flow(debate("critic")).sound(), KNOWN).total
    vote = bounds(flow(f"interactions:\n{VOTE}").sound(), KNOWN).total
    assert one.turns is not None
    assert alone.turns is not None
    assert vote.turns is not None
    # The judge is asked twice at most: for a decision, and for one that is among the choices.
    assert one.turns == alone.turns - 2 + 2 * vote.turns
    assert one.messages == 2 * one.turns


def test_only_what_is_asked_of_the_role_that_it_fills_multiplies() -> None:
    """A tree of which the root alone is counted apart: what is left may be any other role's."""
    agents = "root: [planner], manager: [vote], worker: [coder]"
    tree = f"  - {{id: i, patternId: hierarchical_tree_of_agents, roles: {{{agents}}}}}\n"
    plain = bounds(flow(f"interactions:\n{tree.replace('vote', 'tester')}").sound(), KNOWN).total
    (one,) = bounds(flow(f"interactions:\n{tree}{VOTE}").sound(), KNOWN).interactions
    vote = bounds(flow(f"interactions:\n{VOTE}").sound(), KNOWN).total
    assert plain.turns is not None
    assert one.turns is not None
    assert vote.turns is not None
    # In each round of the root two of the manager: a split and a gathering, both typed, and a task.
    below = 2 * 2 * (2 * 2 + 1)
    assert one.turns == plain.turns + below * (vote.turns - 1)


def test_a_task_that_an_interaction_carries_out_is_one_question() -> None:
    """It plays with retries and reviews of its own; nobody reviews what it says once more."""
    rounds = "data: {termination: {type: max_rounds, rounds: 1}}"
    work = f"  - {{id: i, patternId: manager_worker, roles: {{worker: [vote]}}, {rounds}}}\n"
    alone = bounds(flow(f"interactions:\n{work.replace('vote', 'coder')}").sound(), KNOWN).total
    (one,) = bounds(flow(f"interactions:\n{work}{VOTE}").sound(), KNOWN).interactions
    assert alone.turns is not None
    assert one.turns == alone.turns + 3  # the vote takes four turns, one in place of the question


def test_a_role_that_is_asked_nothing_costs_nothing_whatever_fills_it() -> None:
    words = "    data: {params: {variant: consensus}}\n"
    (one,) = bounds(flow(debate("vote", words) + VOTE).sound(), KNOWN).interactions
    assert one.turns == 2 * 3 * 2


def test_a_part_without_a_bound_leaves_none_to_those_who_ask_it() -> None:
    unknown = {**KNOWN, "majority_vote_with_tiebreak": CATALOGUE["majority_vote_with_tiebreak"]}
    (one,) = bounds(flow(debate("vote") + VOTE).sound(), unknown).interactions
    assert (one.turns, one.messages) == (None, None)


@pytest.mark.req("D19")
@pytest.mark.parametrize(
    ("review", "turns"),
    [
        ("{reviewer: critic}", 2 + 2),  # work and a retry; a verdict, and one that can be read
        ("{reviewer: person}", 2),
        ("{reviewer: critic, autoApprove: true}", 2),
    ],
)
def test_only_an_agent_who_reviews_takes_turns(review: str, turns: int) -> None:
    rounds = "data: {termination: {type: max_rounds, rounds: 1}}"
    judged = f"review: {review.replace('}', ', max_iterations: 3}')}"
    work = f"  - {{id: i, patternId: manager_worker, roles: {{worker: coder}}, {rounds}, {judged}}}"
    assert bounds(flow(f"interactions:\n{work}\n").sound(), KNOWN).total.turns == 3 * turns


def test_nothing_is_a_part_of_itself() -> None:
    circle = VOTE.replace("[planner, critic]", "[planner, debate]")
    problem = error(flow(debate("vote") + circle))
    assert problem.rule is Rule.PART_CYCLE
    assert "debate in vote in debate" in problem.sentence
    assert error(flow(debate("debate"))).rule is Rule.UNKNOWN_AGENT


def test_nothing_comes_after_a_part() -> None:
    problem = error(flow(debate("vote", "    after: [vote]\n") + VOTE))
    assert problem.rule is Rule.AFTER
    assert "is played when a role asks for it" in problem.sentence


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ("{max_rounds: many}", "max_rounds"),
        ("{variant: loud}", "variant"),
        ("{sides: [a]}", "sides"),
    ],
)
def test_params_a_pattern_cannot_take_are_named_where_they_stand(params: str, name: str) -> None:
    problem = error(flow(debate("critic", f"    data:\n      params: {params}\n")))
    assert problem.rule is Rule.PARAMS
    assert f"params.{name}" in problem.sentence
    assert problem.line == 12
    assert "agentcanvas pattern show debate_judge" in problem.suggestion


def test_params_of_others_are_left_alone() -> None:
    assert flow(debate("critic", "    data: {params: {task_template: x, seed: 3}}\n")).errors == ()


def test_a_slip_of_the_pen_in_a_param_is_told_and_other_words_are_not() -> None:
    checked = flow(debate("critic", "    data: {params: {varient: judge, ticket: 7}}\n"))
    assert checked.errors == ()
    (problem,) = [each for each in checked.problems if each.rule is Rule.PARAMS]
    assert problem.sentence == "varient is no option of debate_judge and has no effect"
    assert problem.suggestion == "did you mean variant?"


def test_a_verification_needs_somebody_to_do_it() -> None:
    words = "    data: {verification: [critic_loop], params: {critic: nobody}}\n"
    problem = error(flow(debate("critic", words)))
    assert problem.rule is Rule.VERIFICATION
    assert "set params.critic" in problem.suggestion
    words = "    data: {verification: [cross_check_vote], params: {checkers: []}}\n"
    assert error(flow(debate("critic", words))).rule is Rule.VERIFICATION


def test_a_verification_is_part_of_the_worst_case() -> None:
    plain = bounds(flow(debate("critic")).sound(), KNOWN).total.turns
    assert plain is not None
    words = (
        "    data: {verification: [critic_loop, cross_check_vote], params: {checkers: [planner]}}\n"
    )
    looked_at = bounds(flow(debate("critic", words)).sound(), KNOWN).total.turns
    # Played twice, a critique each, and one vote; a typed answer is asked for once more.
    assert looked_at == 2 * plain + 2 * 2 + 2
