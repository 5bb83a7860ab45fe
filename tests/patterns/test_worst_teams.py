"""A declared worst case can come about: for each pattern, a team that takes every turn of it.

A bound that is too low is found by adversaries that aim at nothing (``runs/test_random_flows``);
one that is too high helps nobody to decide, and is found here. Whoever is asked for a form breaks
it once. What each pattern declares and what its team needs is printed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.pattern import Answer, Fate, Measure, Size
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.bilateral_negotiation_offer_counteroffer import Offer
from agentcanvas.patterns.blackboard_shared_state import Volunteer
from agentcanvas.patterns.broker_facilitator import Query, Registration
from agentcanvas.patterns.contract_net_auction import Bid
from agentcanvas.patterns.critic_refiner_curator import Flaw, Lesson
from agentcanvas.patterns.debate_judge import Position
from agentcanvas.patterns.factcheck_tool_verifier import Claims, Finding
from agentcanvas.patterns.forms import Score, Steps, Verdict, Vote
from agentcanvas.patterns.hierarchical_tree_of_agents import Gathered, Split
from agentcanvas.patterns.memory_sync_daily_summary import Log, Summary
from agentcanvas.patterns.plan_execute_observe_reflect import Observation, Reflection
from agentcanvas.patterns.publish_subscribe import Publication, Wish
from agentcanvas.patterns.router_targeted import Letter, Routing
from agentcanvas.patterns.scripted import Reply, ScriptedStage
from agentcanvas.patterns.self_consistency_ensemble import Sample
from agentcanvas.patterns.sop_assembly_line import Design, Requirements
from agentcanvas.protocol.plan import Plan, PlannedTask
from agentcanvas.protocol.records import FailureClass
from tests.patterns.team import BY_ID

pytestmark = pytest.mark.req("D19")

REPEATED = ("Your answer does not have the form", "Answer with one of")
TOO_BIG: Answer[None] = Answer(
    "", "", Fate.TIMED_OUT, "it was too big", failure=FailureClass.TIMEOUT
)
GREEN, RED = (Measure("tests_passed", value, holds=bool(value)) for value in (1, 0))
NO = Verdict(accept=False, reason="no")


class Seen(msgspec.Struct, frozen=True):
    """Who is asked what, and the how-manieth answer in this form, or in words, it will be."""

    to: str
    message: str
    number: int


class Worst(msgspec.Struct, frozen=True):
    """A team and what it answers: in words, and in forms."""

    cast: Mapping[str, tuple[str, ...]]
    forms: Mapping[type, Callable[[Seen], object]] = {}
    says: Callable[[Seen], Reply] = lambda seen: f"answer {seen.number}"
    params: Mapping[str, Any] = {}
    measures: tuple[Measure, ...] = ()
    exactly: tuple[str, ...] | None = None
    """The roles that need all that is declared for them; every one, if not said."""


def _plan(seen: Seen) -> Plan:
    """One for somebody who is not there, and then one that can be carried out."""
    who = "ann" if "cannot be carried out" in seen.message else "nobody"
    ids = [f"{seen.number}.{n}" for n in range(3)]
    return Plan(tuple(PlannedTask(id_, who, "do it", scope=(id_,)) for id_ in ids))


def _in_a_line(*roles: str) -> dict[str, tuple[str, ...]]:
    return {role: (role,) for role in roles}


CAST_OF_P06 = _in_a_line("critic", "refiner", "curator")
FORMS_OF_P06: dict[type, Callable[[Seen], object]] = {
    Steps: lambda _: Steps(("a", "b")),
    Verdict: lambda seen: Verdict(accept=seen.number > 3),
    Lesson: lambda _: Lesson("a"),
}
CAST_OF_P08 = {"sampler": ("ann", "bob"), "aggregator": ("agg",)}

WORST: dict[str, Worst] = {
    "manager_worker": Worst(
        {"manager": ("boss",), "worker": ("ann",)},
        {Plan: _plan},
        lambda seen: TOO_BIG if seen.to == "ann" else "so it is",
        {"max_tasks": 3},
        (RED,) * 2,
    ),
    "manager_worker, a worker alone": Worst({"worker": ("ann",)}, measures=(RED,) * 2),
    "role_play_pair": Worst(
        {"user": ("u",), "assistant": ("a",)},
        says=lambda seen: "Instruction: go on" if seen.to == "u" else "Solution: it is done",
    ),
    "chat_chain_pipeline": Worst(
        _in_a_line("planner", "designer", "coder", "tester", "doc_writer"),
        {Verdict: lambda _: NO},
    ),
    "sop_assembly_line": Worst(
        _in_a_line("product_manager", "architect", "engineer", "qa"),
        {
            Requirements: lambda _: Requirements("a", ("b",), ("c",)),
            Design: lambda _: Design("a", ("b",)),
            Verdict: lambda seen: Verdict(accept=seen.number % 4 == 0),
        },
        measures=(GREEN,) * 4,
    ),
    "debate_judge": Worst({"debater": ("ann", "bob"), "judge": ("judy",)}),
    "debate_judge, consensus": Worst(
        {"debater": ("ann", "bob")},
        {Position: lambda _: Position("a", "b")},
        params={"variant": "consensus"},
    ),
    "critic_refiner_curator": Worst(
        CAST_OF_P06 | {"judge": ("judge",)}, {**FORMS_OF_P06, Flaw: lambda _: Flaw(1, "bad")}
    ),
    "critic_refiner_curator, no judge": Worst(
        CAST_OF_P06, {**FORMS_OF_P06, Flaw: lambda seen: Flaw(int(seen.number < 4), "bad")}
    ),
    "majority_vote_with_tiebreak": Worst(
        {"evaluator": ("ann", "bob"), "judge": ("judy",)},
        {Vote: lambda seen: Vote("proposal-1" if seen.to == "ann" else "proposal-2")},
    ),
    "self_consistency_ensemble": Worst(CAST_OF_P08, {Sample: lambda _: Sample("a", "b")}),
    "self_consistency_ensemble, by score": Worst(
        CAST_OF_P08, {Score: lambda _: Score(0)}, params={"select": "score"}
    ),
    "contract_net_auction": Worst(
        {"manager": ("boss",), "bidder": ("ann", "bob")},
        {Bid: lambda _: Bid(propose=True)},
        lambda _: TOO_BIG,
    ),
    "bilateral_negotiation_offer_counteroffer": Worst(
        {"proposer": ("pat",), "responder": ("rob",)},
        {Offer: lambda seen: Offer(10 if seen.to == "pat" else 1)},
    ),
    "blackboard_shared_state": Worst(
        {"agent": ("ann", "bob"), "blackboard": ("bea",)},
        {Volunteer: lambda _: Volunteer(1)},
        params={"max_rounds": 3, "picks": 2},
    ),
    "publish_subscribe": Worst(
        {"publisher": ("pia", "paul"), "subscriber": ("sue",), "broker": ("bea",)},
        {Wish: lambda _: Wish(("news",)), Publication: lambda _: Publication("news", "a")},
    ),
    "broker_facilitator": Worst(
        {"requester": ("rex",), "provider": ("ann", "bob"), "broker": ("bea",)},
        {
            Registration: lambda _: Registration(("washing",)),
            Query: lambda _: Query("washing", "when?"),
            Verdict: lambda _: NO,
        },
    ),
    "router_targeted": Worst(
        {"router": ("rho",), "agent": ("ann", "bob")},
        {
            Routing: lambda _: Routing(("ann", "bob")),
            Letter: lambda _: Letter(ack=True, tags=("ann", "bob"), text="go on"),
        },
        params={"max_messages": 5},
    ),
    "hierarchical_tree_of_agents": Worst(
        {"root": ("top",), "manager": ("m1", "m2"), "worker": ("w1", "w2", "w3")},
        {Split: lambda _: Split(("a", "b")), Gathered: lambda _: Gathered("a", "b")},
        exactly=("root",),
    ),
    "redteam_defender_judge": Worst(
        {"red_team": ("max", "mia"), "defender": ("dan",), "judge": ("judy",)},
        {Score: lambda _: Score(0)},
    ),
    "factcheck_tool_verifier": Worst(
        {"producer": ("pro",), "verifier": ("vic",), "judge": ("judy",)},
        {
            Claims: lambda _: Claims(("a", "b", "c")),
            Finding: lambda _: Finding("refuted"),
            Verdict: lambda _: NO,
        },
        params={"max_claims": 3},
    ),
    "plan_execute_observe_reflect": Worst(
        _in_a_line("planner", "executor", "observer", "reflector"),
        {
            Steps: lambda _: Steps(tuple("abcdefghij")),
            Observation: lambda seen: Observation(progress=seen.number <= 4),
            Reflection: lambda _: Reflection(),
        },
    ),
    "memory_sync_daily_summary": Worst(
        {"agent": ("ann", "bob"), "memory_curator": ("cora",)},
        {Log: lambda _: Log(("a",)), Summary: lambda _: Summary()},
    ),
    "protocol_bridge_mcp_acp_a2a_anp": Worst(
        {"local": ("ann", "bob", "cyd"), "bridge": ("bea",)}, says=lambda _: "no message"
    ),
}


def taken(name: str, worst: Worst, options: Any) -> dict[str, int]:
    """How many turns each role takes."""
    given: dict[object, int] = {}

    def number(kind: object) -> int:
        given[kind] = given.get(kind, 0) + 1
        return given[kind]

    def says(to: str, message: str) -> Reply:
        return worst.says(Seen(to, message, number(str)))

    def fills(to: str, message: str, form: Any) -> Reply:
        if form is not Bid and not any(words in message for words in REPEATED):
            return "no"
        if isinstance(form, tuple):
            return msgspec.json.encode({"choice": form[0]}).decode()
        kind = next(each for each in worst.forms if issubclass(form, each))
        return msgspec.json.encode(worst.forms[kind](Seen(to, message, number(kind)))).decode()

    nobody_lands = {f"c{n}": Fate.REJECTED for n in range(100)}
    stage = ScriptedStage(
        says, typed=fills, patterns=PATTERNS, measures=worst.measures, verdicts=nobody_lands
    )
    anyio.run(stage.perform, BY_ID[name], worst.cast, "Wash up", options)
    asked = [each.to for each in stage.record if each.verb in {"ask", "task"}]
    return {role: sum(map(asked.count, agents)) for role, agents in worst.cast.items()}


def test_every_pattern_has_a_worst_team() -> None:
    assert {case.partition(",")[0] for case in WORST} == set(BY_ID)


@pytest.mark.parametrize("case", WORST)
def test_its_worst_team_takes_every_turn_that_is_declared(
    case: str, record_property: Callable[[str, object], None]
) -> None:
    worst, name = WORST[case], case.partition(",")[0]
    options = msgspec.convert(dict(worst.params), BY_ID[name].options)
    size = Size(players={role: len(agents) for role, agents in worst.cast.items()})
    most = BY_ID[name].most(size, options)
    turns = taken(name, worst, options)
    record_property("pattern bounds", [case, "declared", most.turns])
    record_property("pattern bounds", [case, "needed", sum(turns.values())])
    assert sum(turns.values()) == most.turns
    exactly = worst.cast if worst.exactly is None else worst.exactly
    declared = {role: most.by_role.get(role, 0) for role in exactly}
    assert {role: turns[role] for role in exactly} == declared
