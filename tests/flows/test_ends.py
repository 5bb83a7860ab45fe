"""Every interaction ends: the defaults of the twenty patterns, and what is refused without one."""

from __future__ import annotations

import msgspec
import pytest

from agentcanvas.app.patterns import KNOWN
from agentcanvas.flows.axes import (
    HARD_ENDS,
    ConsensusThreshold,
    JudgeDecision,
    MaxRounds,
    QualityGate,
    Termination,
    TimeoutMs,
    Topology,
)
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.pattern_info import PatternInfo, RoleInfo
from agentcanvas.flows.problem import Rule
from agentcanvas.flows.settle import Settled, settle
from tests.flows.writing import checked, with_team

pytestmark = pytest.mark.req("I5", "PR5")

ENDLESS = PatternInfo("mine", (Topology.P2P,))
ARGUING = PatternInfo("mine", (Topology.DEBATE_JUDGE,))
SHOUTING = PatternInfo("mine", (Topology.BROKER,), termination=(MaxRounds(1),))

MINUTES = {
    "debate_judge": 15,
    "critic_refiner_curator": 15,
    "contract_net_auction": 5,
    "bilateral_negotiation_offer_counteroffer": 25,
    "blackboard_shared_state": 5,
    "publish_subscribe": 5,
    "broker_facilitator": 5,
    "router_targeted": 5,
    "redteam_defender_judge": 10,
    "protocol_bridge_mcp_acp_a2a_anp": 5,
}


def settled(words: str, pattern: str = "debate_judge") -> Settled:
    roles = "{debater: [coder, tester], judge: planner}" if pattern == "debate_judge" else "{}"
    result = with_team(
        f"interactions:\n  - {{id: i1, patternId: {pattern}, roles: {roles}, {words}}}\n"
    )
    return settle(result.sound(), CATALOGUE)[0]


def everybody(info: PatternInfo) -> str:
    """A flow that says nothing but who plays."""
    agents, roles = [], []
    for role in info.roles:
        names = [f"{role.name}_{number}" for number in range(role.needed or bool(role.unless))]
        agents += names
        roles += [f"{role.name}: [{', '.join(names)}]"] if names else []
    team = "\n".join(f"  - {{id: {name}}}" for name in agents)
    players = "{" + ", ".join(roles) + "}"
    return (
        f"version: 0.2\nagents:\n{team}\n"
        f"interactions:\n  - {{id: i1, patternId: {info.id}, roles: {players}}}\n"
    )


@pytest.mark.req("I4a")
@pytest.mark.parametrize("info", CATALOGUE.values(), ids=list(CATALOGUE))
def test_each_of_the_twenty_is_valid_without_further_settings(info: PatternInfo) -> None:
    result = checked(everybody(info))
    assert not result.errors
    (each,) = settle(result.sound(), CATALOGUE)
    assert any(isinstance(end, HARD_ENDS) for end in each.termination)
    if info.id in MINUTES:
        assert each.timeout_ms == MINUTES[info.id] * 60_000
    if each.topology is Topology.BLACKBOARD:
        assert each.params["keep_last_n"] == 100
    if each.topology in (Topology.BROKER, Topology.ROUTER_TARGETED):
        assert each.params["rate_limit_per_min"] == 10


@pytest.mark.req("I4a")
def test_there_are_twenty_patterns_and_their_ends_are_those_of_the_table() -> None:
    assert len(CATALOGUE) == 20
    assert CATALOGUE["manager_worker"].termination == (
        MaxRounds(2),
        QualityGate("tests_passed", ">=", 1),
    )
    assert CATALOGUE["redteam_defender_judge"].termination == (
        MaxRounds(2),
        QualityGate("score", ">=", 0.7),
        TimeoutMs(600_000),
    )
    assert CATALOGUE["broker_facilitator"].topologies[0] is Topology.ROUTER_TARGETED


@pytest.mark.req("I4a")
def test_a_timeout_follows_from_the_rounds_that_are_given() -> None:
    each = settled("data: {termination: {type: max_rounds, rounds: 7}}")
    assert each.termination == (MaxRounds(7), TimeoutMs(2_100_000))


@pytest.mark.req("I4a")
def test_an_end_that_may_never_come_gets_the_patterns_hard_ends_beside_it() -> None:
    each = settled("data: {termination: {type: judge_decision}}")
    assert each.termination == (JudgeDecision(), MaxRounds(3), TimeoutMs(900_000))


@pytest.mark.req("I4a")
@pytest.mark.parametrize(
    ("pattern", "roles", "params", "ends"),
    [
        (
            "debate_judge",
            "debater: [coder, tester], judge: planner",
            "max_rounds: 5",
            (MaxRounds(5), JudgeDecision(), TimeoutMs(1_500_000)),
        ),
        (
            "majority_vote_with_tiebreak",
            "evaluator: [coder, tester]",
            "threshold: 0.9",
            (ConsensusThreshold(0.9), MaxRounds(1)),
        ),
        (
            "redteam_defender_judge",
            "red_team: coder, defender: tester, judge: planner",
            "pass_at: 0.95",
            (MaxRounds(2), QualityGate("score", ">=", 0.95), TimeoutMs(600_000)),
        ),
        (
            "factcheck_tool_verifier",
            "producer: coder, verifier: tester",
            "citations: 4",
            (QualityGate("citations_count", ">=", 4), MaxRounds(3)),
        ),
        (
            "manager_worker",
            "manager: planner, worker: [coder]",
            "gate: lint, max_rounds: 1",
            (MaxRounds(1), QualityGate("lint", ">=", 1)),
        ),
        (
            "debate_judge",
            "debater: [coder, tester], judge: planner",
            "max_rounds: none",
            (MaxRounds(3), JudgeDecision(), TimeoutMs(900_000)),
        ),
    ],
)
def test_an_option_that_says_when_it_ends_is_that_end(
    pattern: str, roles: str, params: str, ends: tuple[Termination, ...]
) -> None:
    result = with_team(
        f"interactions:\n  - {{id: i1, patternId: {pattern}, roles: {{{roles}}}, "
        f"data: {{params: {{{params}}}}}}}\n"
    )
    (each,) = settle(result.sound(), CATALOGUE)
    assert each.termination == ends


@pytest.mark.req("I4a")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{params: {max_rounds: 1}}", 0),
        ("{params: {max_rounds: 2}, termination: {type: max_rounds, rounds: 2}}", 0),
        ("{params: {max_rounds: 1}, termination: {type: max_rounds, rounds: 2}}", 1),
        ("{params: {max_rounds: 1}, termination: {type: timeout_ms, ms: 60000}}", 0),
    ],
)
def test_an_option_that_an_end_overrules_is_told(data: str, told: int) -> None:
    result = with_team(
        "interactions:\n  - {id: i1, patternId: debate_judge, "
        f"roles: {{debater: [coder, tester], judge: planner}}, data: {data}}}\n",
        patterns=KNOWN,
    )
    assert not result.errors
    found = [each for each in result.problems if each.rule is Rule.PARAMS]
    assert len(found) == told
    assert all("max_rounds has no effect beside the max_rounds" in str(each) for each in found)


def test_an_end_that_is_given_replaces_the_default() -> None:
    each = settled("data: {termination: {type: timeout_ms, ms: 60000}}")
    assert each.termination == (TimeoutMs(60_000),)


@pytest.mark.parametrize(
    ("info", "data", "rules"),
    [
        (ENDLESS, "{}", [Rule.NO_END]),
        (ENDLESS, "{termination: []}", [Rule.NO_END]),
        (ENDLESS, "{termination: {type: judge_decision}}", [Rule.NO_END]),
        (ENDLESS, "{termination: {type: max_rounds, rounds: 2}}", []),
        (ARGUING, "{termination: {type: max_rounds, rounds: 2}}", [Rule.NO_TIMEOUT]),
        (ARGUING, "{termination: {type: timeout_ms, ms: 9000}}", []),
        (SHOUTING, "{params: {rate_limit_per_min: 0}}", [Rule.NO_RATE_LIMIT]),
        (SHOUTING, "{params: {rate_limit_per_min: none}}", [Rule.NO_RATE_LIMIT]),
        (SHOUTING, "{}", []),
    ],
)
def test_without_a_default_everything_must_be_said(
    info: PatternInfo, data: str, rules: list[Rule]
) -> None:
    text = f"interactions:\n  - {{id: i1, patternId: mine, data: {data}}}\n"
    result = with_team(text, {"mine": info})
    assert [each.rule for each in result.errors] == rules
    assert all(each.suggestion for each in result.errors)


@pytest.mark.parametrize("retention", ["keep_last_n: 0", "keep_last_n: ", "keep_last_days: many"])
def test_a_blackboard_that_never_forgets_is_refused(retention: str) -> None:
    result = with_team(f"""
        interactions:
          - id: i1
            patternId: blackboard_shared_state
            roles: {{agent: coder}}
            data: {{params: {{{retention}}}}}
    """)
    assert [each.rule for each in result.errors] == [Rule.NO_RETENTION]


@pytest.mark.req("D21")
def test_roles_are_bound_by_the_order_of_the_edges() -> None:
    flow = with_team("""
        interactions:
          - id: i1
            patternId: manager_worker
            edges:
              - {source: planner, target: coder}
              - {source: planner, target: tester}
    """).sound()
    (each,) = settle(flow, CATALOGUE)
    assert each.roles == {"manager": ("planner",), "worker": ("coder", "tester")}
    assert [edge.id for edge in each.edges] == ["e1", "e2"]
    assert each.players == {"planner", "coder", "tester", "critic"}


@pytest.mark.req("D21")
def test_an_edges_own_words_win_over_the_interactions() -> None:
    flow = with_team("""
        interactions:
          - id: i1
            patternId: broker_facilitator
            roles: {requester: planner, provider: [coder, tester]}
            data: {sync: async, params: {rate_limit_per_min: 20}}
            edges:
              - {source: planner, target: coder}
              - source: planner
                target: tester
                data: {sync: streaming, params: {rate_limit_per_min: 3}}
    """).sound()
    (each,) = settle(flow, CATALOGUE)
    assert [(edge.sync.value, edge.rate_limit_per_min) for edge in each.edges] == [
        ("async", 20),
        ("streaming", 3),
    ]


def test_defaults_of_review_and_landing() -> None:
    each = settled("after: []")
    assert msgspec.to_builtins(each.review) == {
        "reviewer": "critic",
        "auto_approve": False,
        "allow_unverified": False,
        "max_iterations": 3,
        "escalation_on_max": "human_review",
    }
    assert each.land == "worktree"


def test_a_label_names_the_pattern_and_its_key_parameter() -> None:
    assert settled("after: []").label == "debate_judge (3r)"


def test_a_system_role_needs_nobody() -> None:
    assert RoleInfo("judge", 0, 1, system=True).needed == 0
