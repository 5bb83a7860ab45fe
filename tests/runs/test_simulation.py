"""Simulated teams come to what the closed form says, within the error of so many runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, sqrt
from typing import Any

import msgspec
import pytest

from agentcanvas.errors import ValidationError
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.majority_vote_with_tiebreak import Options as VoteOptions
from agentcanvas.patterns.self_consistency_ensemble import Options as SampleOptions
from agentcanvas.runs.manners import RIGHT, WRONG
from agentcanvas.runs.scene import ends_of
from agentcanvas.runs.simulation import Kind, Simulation, simulate
from tests.patterns.team import BY_ID

pytestmark = pytest.mark.req("I4")

RUNS = 2_000
SIGMAS = 4


def majority(n: int, p: float) -> float:
    """How often most of n agents, each right with probability p, are right; n is odd."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n // 2 + 1, n + 1))


def simulated(
    name: str, cast: Mapping[str, tuple[str, ...]], kind: Kind, options: Any
) -> Simulation:
    kinds = {agent: kind for agents in cast.values() for agent in agents}
    ends = msgspec.structs.replace(ends_of(CATALOGUE[name].termination), consensus=None)
    return simulate(
        BY_ID[name], cast, kinds, options, ends=ends, runs=RUNS, seed=7, patterns=PATTERNS
    )


@pytest.mark.parametrize("p", [0.55, 0.7, 0.9])
@pytest.mark.parametrize("n", [3, 5, 9])
def test_a_majority_vote_is_as_right_as_the_closed_form(n: int, p: float) -> None:
    cast = {"evaluator": tuple(f"e{i}" for i in range(n))}
    options = VoteOptions(choices=(WRONG, RIGHT), threshold=0.5)
    found = simulated("majority_vote_with_tiebreak", cast, Kind(p), options)
    expected = majority(n, p)
    error = sqrt(expected * (1 - expected) / RUNS)
    assert abs(found.results.get("right", 0) / RUNS - expected) <= SIGMAS * error
    assert found.turns == n


@pytest.mark.parametrize("p", [0.55, 0.7, 0.9])
@pytest.mark.parametrize("n", [3, 5])
def test_self_consistency_is_as_right_as_the_closed_form(n: int, p: float) -> None:
    cast = {"sampler": ("s",)}
    found = simulated("self_consistency_ensemble", cast, Kind(p), SampleOptions(samples=n))
    expected = majority(n, p)
    error = sqrt(expected * (1 - expected) / RUNS)
    assert abs(found.results.get("right", 0) / RUNS - expected) <= SIGMAS * error


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
def test_every_pattern_can_be_simulated_and_the_same_seed_says_the_same(pattern: Any) -> None:
    info = CATALOGUE[pattern.id]
    cast = {
        role.name: tuple(f"{role.name}-{i}" for i in range(role.most or max(role.least, 2)))
        for role in info.roles
    }
    kinds = {agent: Kind(0.7, fails=0.05) for agents in cast.values() for agent in agents}

    def once() -> Simulation:
        ends = ends_of(info.termination)
        options = pattern.options()
        return simulate(pattern, cast, kinds, options, ends=ends, runs=30, patterns=PATTERNS)

    found = once()
    assert found == once()
    assert sum(found.results.values()) == sum(found.reasons.values()) == 30
    assert found.turns > 0


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
@pytest.mark.parametrize(("accuracy", "expected"), [(1.0, "right"), (0.0, "wrong")])
def test_what_a_pattern_comes_to_is_what_its_agents_know(
    pattern: Any, accuracy: float, expected: str
) -> None:
    """So whoever compares patterns sees what voting, checking and arguing make of their errors."""
    info = CATALOGUE[pattern.id]
    cast = {
        role.name: tuple(f"{role.name}-{i}" for i in range(role.most or max(role.least, 2)))
        for role in info.roles
    }
    kinds = {agent: Kind(accuracy) for agents in cast.values() for agent in agents}
    ends = ends_of(info.termination)
    found = simulate(pattern, cast, kinds, pattern.options(), ends=ends, runs=10, patterns=PATTERNS)
    assert found.results == {expected: 10}


def test_reasons_are_counted_without_their_figures() -> None:
    cast = {role: (role,) for role in ("planner", "executor", "observer", "reflector")}
    pattern = BY_ID["plan_execute_observe_reflect"]
    kinds = {role: Kind(0.5) for role in cast}
    ends = ends_of(CATALOGUE[pattern.id].termination)
    found = simulate(pattern, cast, kinds, pattern.options(), ends=ends, runs=50)
    assert found.reasons.keys() == {"done", "plan carried out"}


def test_who_chooses_among_proposals_chooses_by_what_they_say() -> None:
    """One voter is always wrong and proposes first; the others know better."""
    cast = {"evaluator": ("e0", "e1", "e2"), "judge": ("j",)}
    kinds = {"e0": Kind(0), "e1": Kind(), "e2": Kind(), "j": Kind()}
    pattern = BY_ID["majority_vote_with_tiebreak"]
    ends = ends_of(CATALOGUE[pattern.id].termination)
    found = simulate(pattern, cast, kinds, pattern.options(), ends=ends, runs=10)
    assert found.results == {"right": 10}


@pytest.mark.parametrize("words", ["noisy", "noisy:2", "noisy:x", "noisy:0.5:0", "loud", ""])
def test_an_agent_nobody_can_simulate_is_named(words: str) -> None:
    with pytest.raises(ValidationError, match=r"is no simulated agent; say noisy:0\.7"):
        Kind.of(words)


def test_an_agent_in_words() -> None:
    assert Kind.of("noisy:0.7:3") == Kind(0.7, wrongs=3)
    assert Kind.of("failing:0.2") == Kind(fails=0.2)
    assert Kind.of("perfect") == Kind()
