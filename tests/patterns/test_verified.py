"""Whatever the pattern, its result is looked at as the flow says before it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from agentcanvas.pattern import Measure, Outcome, Size
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.scripted import ScriptedStage
from agentcanvas.patterns.verified import Ballot, Critique, Looks, Verified
from tests.patterns.scenes import SCENES
from tests.patterns.team import BY_ID, script

pytestmark = [pytest.mark.anyio, pytest.mark.req("I1")]

CAST = {"user": ("eve",), "assistant": ("sam",)}
TALK = {
    "eve": ["Instruction: wash", "TASK_DONE", "Instruction: wash again", "TASK_DONE"],
    "sam": ["Solution: washed", "Solution: washed twice"],
}


async def looked_at(
    looks: Looks, parts: Mapping[str, Any], measures: Sequence[Measure] = ()
) -> tuple[Outcome, ScriptedStage]:
    pattern = BY_ID["role_play_pair"]
    stage = ScriptedStage(script({**TALK, **parts}), measures=measures, patterns=PATTERNS)
    outcome = await stage.perform(Verified(pattern, looks), CAST, "Wash up", pattern.options())
    return outcome, stage


async def test_a_critic_sends_it_back_once_with_what_is_wrong() -> None:
    parts = {"carl": [Critique(accept=False, flaw="still dirty"), Critique(accept=True)]}
    outcome, stage = await looked_at(Looks(kinds=("critic_loop",), critic="carl"), parts)
    assert (outcome.reason, outcome.done) == ("task_done", True)
    assert outcome.result == "Solution: washed twice"
    assert any("still dirty" in said.text for said in stage.record if said.to == "eve")


async def test_what_the_critic_still_finds_wrong_is_the_reason_and_the_result_is_kept() -> None:
    parts = {"carl": Critique(accept=False, flaw="still dirty")}
    outcome, _ = await looked_at(Looks(kinds=("critic_loop",), critic="carl"), parts)
    assert outcome == Outcome(
        "critic_loop: still dirty", done=False, result="Solution: washed twice"
    )


async def test_a_critic_without_a_form_is_no_critic() -> None:
    outcome, _ = await looked_at(Looks(kinds=("critic_loop",), critic="carl"), {"carl": "hm"})
    assert outcome.reason.startswith("critic_loop: no critique")
    assert not outcome.done


@pytest.mark.parametrize(("agree", "done"), [(2, True), (1, False)])
async def test_most_of_those_who_check_have_to_agree(agree: int, done: bool) -> None:
    checkers = ("c1", "c2", "c3")
    parts = {
        who: Ballot(agree=index < agree, reason=f"as {who} sees it")
        for index, who in enumerate(checkers)
    }
    looks = Looks(kinds=("cross_check_vote",), checkers=checkers)
    outcome, stage = await looked_at(looks, parts)
    assert outcome.done is done
    assert outcome.result == "Solution: washed"
    if not done:
        assert outcome.reason.startswith("cross_check_vote: 1 of 3 agree. as c2")
    ballots = [said for said in stage.record if said.to in checkers]
    assert not any(f"as {who}" in said.text for said in ballots for who in checkers), "blind"


@pytest.mark.parametrize(
    ("kind", "metric", "asked"),
    [
        ("tool_based", "lint", 3),
        ("audit_log", "audit_log", 3),
        ("sandbox_constraints", "sandbox_constraints", 0),
    ],
)
async def test_a_measure_that_does_not_hold_ends_it(kind: str, metric: str, asked: int) -> None:
    looks = Looks(kinds=(kind,), metric="lint")
    bad, good = Measure(metric, 0, holds=False, detail="so"), Measure(metric, 1, holds=True)
    outcome, stage = await looked_at(looks, {}, [bad])
    assert not outcome.done
    assert outcome.reason.startswith(f"{kind}:")
    assert sum(said.verb in ("ask", "task") for said in stage.record) == asked
    assert [said.text for said in stage.record if said.verb == "check"] == [metric]
    assert (await looked_at(looks, {}, [good]))[0].done


@pytest.mark.parametrize("name", BY_ID)
async def test_it_can_be_put_around_any_pattern_and_its_bound_holds(name: str) -> None:
    scene, pattern = SCENES[name], BY_ID[name]
    looks = Looks(
        kinds=("sandbox_constraints", "critic_loop", "cross_check_vote", "tool_based", "audit_log"),
        critic="carl",
        checkers=("c1", "c2"),
    )
    parts = {
        **scene.parts,
        "carl": Critique(accept=True),
        "c1": Ballot(agree=True),
        "c2": Ballot(agree=True),
    }
    given = {key: value for key, value in scene.stage.items() if key != "measures"}
    green: Callable[[str], Measure] = lambda metric: Measure(metric, 1, holds=True)  # noqa: E731
    stage = ScriptedStage(script(parts), measures=[green("x")] * 20, patterns=PATTERNS, **given)
    wrapped = Verified(pattern, looks)
    options = scene.options or pattern.options()
    outcome = await stage.perform(wrapped, scene.cast, "Wash up", options)
    assert outcome.reason
    players = {role: len(agents) for role, agents in scene.cast.items()}
    asked = sum(said.verb in ("ask", "task") for said in stage.record)
    assert asked <= wrapped.most(Size(players=players), options).turns
