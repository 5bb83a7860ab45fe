"""What is wrong with a flow: all of it at once, each with its place and a way out."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import FlowError
from agentcanvas.flows import problem
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.emit import lines
from agentcanvas.flows.problem import Rule, Severity
from tests.flows.styles import VALUES
from tests.flows.writing import AC_FLOW, checked, found, only, with_team

pytestmark = pytest.mark.req("F1")

SOUND = read_document(AC_FLOW).data | {
    "budgets": {"turns": 9},
    "review": {"reviewer": "person", "max_iterations": 2},
    "checks": [{"name": "t", "command": "pytest"}],
}
WORK = """
interactions:
  - id: i1
    patternId: manager_worker
    roles: {manager: planner, worker: [coder, tester]}
"""


def test_all_problems_come_at_once_in_the_order_of_the_text() -> None:
    result = checked("""
        version: 0.3
        agents:
          - {id: coder, skils: []}
          - {id: a b}
        interactions:
          - id: i1
            patternId: manager_wrker
            edges: [{source: a b, target: codr}]
          - id: i2
            patternId: manager_worker
            data: {termination: {type: max_round, rounds: 2}}
        land: comit
    """)
    assert result.flow is None
    assert found(result) == [
        "1:10 version",
        "3:17 unknown-key",
        "4:10 id-form",
        "7:16 unknown-pattern",
        "8:35 unknown-agent",
        "11:32 choice",
        "12:7 choice",
    ]
    assert [each.suggestion for each in result.problems] == [
        "did you mean 0.2?",
        "did you mean skills?",
        "use letters, digits, - and _, without spaces, colons or slashes",
        "did you mean manager_worker?",
        "did you mean coder?",
        "did you mean max_rounds?",
        "did you mean commit?",
    ]
    with pytest.raises(FlowError, match="There are 7 problems") as raised:
        result.sound()
    assert raised.value.problems[0].startswith("flow.yaml:1:10: version cannot be 0.3; did you")


def test_a_part_that_cannot_be_read_does_not_make_others_wrong() -> None:
    result = checked("""
        version: 0.2
        agents:
          - {id: a, role: orchestrator, rules: 3}
          - {id: b}
        interactions:
          - {id: i1, patternId: manager_worker, edges: [{source: a, target: b}], tasks: 4}
          - {id: i2, patternId: manager_worker, edges: [{source: a, target: b}], after: [i1]}
    """)
    assert found(result) == ["3:40 type", "6:81 type"]


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        ("interactions: [{patternId: manager_worker}]", "7:16 missing", "id is missing"),
        ("agents: []", "7:1 yaml-duplicate-key", "first in line 2"),
        ("interactions: [{id: i1, patternId: p, edges: {}}]", "7:46 type", "must be a list"),
        ("budgets: {turns: 0}", "7:18 range", "1 or more"),
        ("budgets: {cost: -1}", "7:17 range", "more than 0"),
        ("checks: [{name: '', command: x}]", "7:17 range", "is empty"),
        ("land: branches", "7:7 choice", "did you mean branch?"),
        ("scope: src", "7:8 type", "write [src]"),
    ],
)
def test_a_wrong_shape_is_named_with_its_place(text: str, expected: str, words: str) -> None:
    result = with_team(text)
    errors = [f"{each.line}:{each.column} {each.rule}" for each in result.errors]
    assert errors == [expected]
    assert words in str(result.errors[0])


@pytest.mark.parametrize(
    ("runtime", "rule", "words"),
    [
        ("{kind: cmd}", Rule.RUNTIME, "did you mean command?"),
        ("{kind: command}", Rule.RUNTIME, "needs command"),
        ("{kind: python}", Rule.RUNTIME, "needs call"),
        ("{kind: human, call: a:b}", Rule.RUNTIME, "does not read call"),
        ("{env: [sk-secret-123]}", Rule.SECRET, "the name only"),
        ("{kind: model, model: m, keyEnv: 'sk 1'}", Rule.SECRET, "never holds a secret"),
        ("{timeout_ms: 30}", Rule.UNIT, "30 seconds are 30000"),
        ("{network: hosts}", Rule.RUNTIME, "list them in hosts:"),
        ("{network: {mode: model, hosts: [x.org]}}", Rule.RUNTIME, "say mode: hosts"),
        ("{network: {hosts: [x.org, '*.org']}}", Rule.RUNTIME, "name a domain after"),
        ("{network: {hosts: ['https://x.org']}}", Rule.RUNTIME, "write api.example.org"),
        ("{network: {hosts: ['x.org:99999']}}", Rule.RUNTIME, "a port that does not exist"),
        ("{network: {hosts: [all]}}", Rule.RUNTIME, "for everything write network: open"),
    ],
)
def test_a_runtime_says_what_it_needs(runtime: str, rule: Rule, words: str) -> None:
    result = checked(f"version: 0.2\nagents: [{{id: a, runtime: {runtime}}}]\n")
    (told,) = [each for each in result.problems if each.rule is not Rule.NOTHING_TO_RUN]
    assert told.rule is rule
    assert words in told.suggestion or words in told.sentence
    assert "secret-123" not in str(told)


@pytest.mark.parametrize(
    ("line", "rule", "words"),
    [
        ("setup: {command: x, network: model}", Rule.RUNTIME, "name the hosts it needs"),
        ("setup: {command: x, network: hosts}", Rule.RUNTIME, "list them in hosts:"),
        ("setup: {command: x, env: ['a b']}", Rule.SECRET, "the name only"),
        ("setup: {command: x, timeout_ms: 30}", Rule.UNIT, "30 seconds are 30000"),
        ("bring: [/etc/passwd]", Rule.SCOPE, "write a path from its root"),
        ("bring: ['../secrets']", Rule.SCOPE, "write a path from its root"),
        ("bring: [.git/config]", Rule.SCOPE, "remove it"),
    ],
)
def test_what_a_team_stands_on_is_looked_at_too(line: str, rule: Rule, words: str) -> None:
    (told,) = [
        each
        for each in checked(f"version: 0.2\n{line}\n").problems
        if each.rule is not Rule.NOTHING_TO_RUN
    ]
    assert told.rule is rule
    assert words in told.suggestion or words in told.sentence


def test_a_runtime_of_a_third_party_is_known_when_it_is_named() -> None:
    document = read_document("version: 0.2\nagents: [{id: a, runtime: {kind: mine, url: x}}]\n")
    assert check(document).errors
    assert not check(document, runtimes=["mine"]).errors


@pytest.mark.parametrize("name", ["broadcast", "person", "a b", "x/y", "engine:1", "a\tb"])
def test_an_id_is_a_word_that_means_nothing_else(name: str) -> None:
    result = checked(f'version: 0.2\nagents: [{{id: "{name}"}}]\n')
    assert [each.rule for each in result.errors] == [Rule.ID_FORM]


def test_ids_are_unique_among_agents_interactions_edges_and_tasks() -> None:
    result = with_team("""
        interactions:
          - id: i1
            patternId: manager_worker
            edges:
              - {source: planner, target: coder, id: e2}
              - {source: planner, target: tester}
            tasks:
              - {id: t, agent: coder, description: x}
              - {id: t, agent: coder, description: y}
          - {id: i1, patternId: manager_worker, roles: {worker: coder}}
        checks: [{name: c, command: x}, {name: c, command: y}]
    """)
    assert (
        found(result)[:4]
        == [
            "6:5 unused-agent",
            "12:9 duplicate-id",
            "15:14 duplicate-id",
            "16:10 duplicate-id",
        ]
        or [each.rule for each in result.errors] == [Rule.DUPLICATE_ID] * 4
    )
    assert [each.line for each in result.errors] == [12, 15, 16, 17]


def test_an_agent_that_takes_part_in_nothing_is_a_warning() -> None:
    result = with_team("""
        interactions:
          - {id: i1, patternId: manager_worker, roles: {worker: coder}, review: {reviewer: person}}
    """)
    assert result.flow is not None
    assert [(each.rule, each.line) for each in result.warnings] == [
        (Rule.UNUSED_AGENT, 3),
        (Rule.UNUSED_AGENT, 5),
        (Rule.UNUSED_AGENT, 6),
    ]


def test_a_flow_without_interactions_can_be_saved_but_is_told_so() -> None:
    result = checked("version: 0.2\n")
    assert result.flow is not None
    assert only(result).rule is Rule.NOTHING_TO_RUN


@pytest.mark.req("D21")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("{messageForm: structured_json, sync: async, observability: {traces: true}}", []),
        ("{params: {rate_limit_per_min: 5}}", []),
        ("{params: {task_template: other}}", ["edge-differs"]),
        ("{termination: {type: max_rounds, rounds: 9}}", ["edge-differs"]),
        ("{patternId: debate_judge}", ["edge-differs"]),
        ("{intent: verify}", ["edge-differs"]),
        ("{topology: manager_worker, patternId: manager_worker}", []),
    ],
)
def test_an_edge_may_differ_in_a_few_things_only(data: str, expected: list[str]) -> None:
    result = with_team(f"""
        interactions:
          - id: i1
            patternId: manager_worker
            edges:
              - source: planner
                target: coder
                data:
                  intent: solve
                  termination: {{type: max_rounds, rounds: 2}}
                  params: {{task_template: one, rate_limit_per_min: 20}}
              - source: planner
                target: tester
                data: {data}
    """)
    assert [each.rule for each in result.errors] == expected


@pytest.mark.parametrize(
    ("words", "rule", "advice"),
    [
        ("roles: {debator: [coder, tester]}", Rule.ROLES, "did you mean debater?"),
        ("roles: {debater: coder}", Rule.ROLES, "say who"),
        ("roles: {debater: [coder, codr]}", Rule.UNKNOWN_AGENT, "did you mean coder?"),
        ("roles: {debater: [coder, coder]}", Rule.DUPLICATE_ID, "rename"),
        ("after: []", Rule.ROLES, "roles: {debater: …}"),
        ("data: {topology: pipeline}", Rule.TOPOLOGY, "use debate_judge"),
        ("edges: [{source: coder, target: coder}]", Rule.EDGE_LOOP, "another target"),
    ],
)
@pytest.mark.req("D21")
def test_players_must_fit_the_pattern(words: str, rule: Rule, advice: str) -> None:
    result = with_team(f"interactions:\n  - id: i1\n    patternId: debate_judge\n    {words}\n")
    assert rule in [each.rule for each in result.errors]
    assert any(advice in each.suggestion for each in result.errors if each.rule is rule)


def test_a_built_in_node_may_stand_at_the_end_of_an_edge() -> None:
    assert not with_team("""
        interactions:
          - id: i1
            patternId: majority_vote_with_tiebreak
            edges:
              - {source: coder, target: judge}
              - {source: tester, target: judge}
    """).errors


DEBATE = """
    interactions:
      - id: i1
        patternId: debate_judge
        roles: {debater: [coder, tester]%s}
        data: {params: {%s}}
"""


@pytest.mark.req("I5")
def test_a_debate_without_a_judge_is_refused_before_it_is_paid_for() -> None:
    (problem,) = with_team(DEBATE % ("", "")).errors
    assert problem.rule is Rule.ROLES
    assert problem.sentence == "debate_judge has no judge, and no built-in rule can play it"
    assert "judge: …" in problem.suggestion
    assert "params.variant: consensus" in problem.suggestion


def test_a_debate_to_consensus_needs_no_judge_and_says_so_if_it_has_one() -> None:
    assert not with_team(DEBATE % ("", "variant: consensus")).errors
    (found,) = [
        each
        for each in with_team(DEBATE % (", judge: planner", "variant: consensus")).warnings
        if each.rule is Rule.ROLES
    ]
    assert found.sentence == "with variant: consensus debate_judge never asks its judge"


@pytest.mark.req("I2")
@pytest.mark.parametrize("place", ["data: {sync: async}", "data: {}"])
def test_who_needs_every_answer_before_the_next_step_cannot_run_async(place: str) -> None:
    edge = "{sync: async}" if place == "data: {}" else "{}"
    result = with_team(f"""
        interactions:
          - id: i1
            patternId: role_play_pair
            {place}
            edges: [{{source: planner, target: coder, data: {edge}}}]
    """)
    (problem,) = result.errors
    assert problem.rule is Rule.SYNC
    assert problem.sentence == (
        "role_play_pair needs every answer before its next step and cannot run async"
    )
    assert problem.suggestion == "use req_res, turn_based or streaming"
    assert problem.pointer.endswith("/data/sync")


@pytest.mark.req("I2")
def test_who_goes_on_meanwhile_may_run_async() -> None:
    flow = (
        "interactions: [{id: i1, patternId: manager_worker, "
        "roles: {worker: coder}, data: {sync: %s}}]"
    )
    for sync in ("async", "streaming", "req_res", "turn_based"):
        assert not with_team(flow % sync).errors


GATE = """
    checks: [{name: lint, command: make lint}]
    interactions:
      - id: i1
        patternId: %s
        roles: {%s}
        data: {termination: [{type: max_rounds, rounds: 2}, %s]}
"""
PAIR = ("role_play_pair", "user: planner, assistant: coder")
VOTE = ("majority_vote_with_tiebreak", "evaluator: [coder, tester]")
TREE = ("redteam_defender_judge", "red_team: coder, defender: tester, judge: planner")


@pytest.mark.req("I1", "I5")
@pytest.mark.parametrize(
    ("played", "metric", "says"),
    [
        (PAIR, "tests_passed", ""),
        (PAIR, "lint", ""),
        (TREE, "score", ""),
        (PAIR, "score", "nothing in i1 measures score, so that this gate never holds"),
        (VOTE, "lint", "has no rounds after which lint would be measured"),
    ],
)
def test_a_gate_that_nobody_measures_is_told(
    played: tuple[str, str], metric: str, says: str
) -> None:
    gate = f"{{type: quality_gate, metric: {metric}, op: '>=', value: 1}}"
    result = with_team(GATE % (*played, gate))
    told = [each for each in result.warnings if each.rule is Rule.GATE]
    assert [says in each.sentence for each in told] == ([True] if says else [])
    assert not result.errors


def test_circles_of_interactions_are_shown_as_a_whole() -> None:
    result = with_team("""
        interactions:
          - {id: i1, patternId: manager_worker, roles: {worker: coder}, after: [i3]}
          - {id: i2, patternId: manager_worker, roles: {worker: coder}, after: [i1, i9]}
          - {id: i3, patternId: manager_worker, roles: {worker: coder}}
    """)
    circle, unknown = result.errors
    assert circle.rule is Rule.AFTER_CYCLE
    assert {"i1", "i2", "i3"} <= set(circle.sentence.split())
    assert "i3 follows by its place" in circle.suggestion
    assert (unknown.rule, unknown.line, unknown.column) == (Rule.AFTER, 9, 77)


@pytest.mark.parametrize(
    ("tasks", "expected", "words"),
    [
        ("{id: t1, agent: codr, description: x}", "unknown-agent", "did you mean coder?"),
        ("{id: t1, agent: planner, description: x}", "tasks", "give the task to coder or tester"),
        ("{id: t1, agent: coder, description: x, depends_on: [t0]}", "tasks", "known here: t1"),
        ("{id: t1, agent: coder, description: x, depends_on: [t1]}", "task-cycle", "dependency"),
        ("{id: t1, agent: coder, description: x, scope: [../x]}", "scope", "from its root"),
        ("{id: t1, agent: coder, description: x, scope: [.git/**]}", "scope", "remove"),
        ("{id: t1, agent: coder, description: x, scope: ['!a']}", "scope", "what may change"),
    ],
)
def test_a_task_names_what_exists(tasks: str, expected: str, words: str) -> None:
    result = with_team(f"{WORK.lstrip()}    tasks:\n      - {tasks}\n")
    assert [each.rule for each in result.errors] == [expected]
    assert words in result.errors[0].suggestion


def test_a_plan_is_for_a_pattern_that_takes_one() -> None:
    result = with_team("""
        interactions:
          - id: i1
            patternId: role_play_pair
            roles: {user: planner, assistant: coder}
            tasks: [{id: t1, agent: coder, description: x}]
    """)
    assert [each.rule for each in result.errors] == [Rule.TASKS]
    assert "use manager_worker" in result.errors[0].suggestion


@pytest.mark.parametrize(
    ("second", "overlaps"),
    [
        ("{id: t2, agent: tester, description: y, scope: [src/a/*.py]}", True),
        ("{id: t2, agent: tester, description: y, scope: [docs]}", False),
        ("{id: t2, agent: tester, description: y}", True),
        ("{id: t2, agent: coder, description: y, scope: [src/**]}", False),
        ("{id: t2, agent: tester, description: y, scope: [src/**], depends_on: [t1]}", False),
        (
            "{id: t2, agent: tester, description: y, scope: [src/**], "
            "depends_on: [{task: t1, type: soft}]}",
            True,
        ),
    ],
)
def test_parallel_tasks_in_the_same_files_are_a_warning(second: str, *, overlaps: bool) -> None:
    first = "{id: t1, agent: coder, description: x, scope: [src/a]}"
    result = with_team(f"{WORK.lstrip()}    tasks:\n      - {first}\n      - {second}\n")
    assert result.flow is not None
    warned = [each for each in result.warnings if each.rule is Rule.SCOPE_OVERLAP]
    assert bool(warned) is overlaps


def test_a_worker_that_stands_in_the_workspace_cannot_work() -> None:
    result = with_team("""
        interactions:
          - {id: i1, patternId: manager_worker, roles: {worker: planner}}
    """)
    assert [each.rule for each in result.errors] == [Rule.RUNTIME]
    assert "read-only" in result.errors[0].sentence


@pytest.mark.parametrize(
    ("review", "severity", "rule"),
    [
        ("{reviewer: coder}", Severity.ERROR, Rule.OWN_REVIEW),
        ("{reviewer: nobody}", Severity.ERROR, Rule.UNKNOWN_AGENT),
        ("{escalation_on_max: force_approve}", Severity.WARNING, Rule.REVIEW),
        ("{allowUnverified: true}", Severity.WARNING, Rule.REVIEW),
        ("{autoApprove: true, reviewer: critic}", Severity.WARNING, Rule.REVIEW),
    ],
)
def test_nobody_reviews_their_own_work(review: str, severity: Severity, rule: Rule) -> None:
    result = with_team(f"{WORK.lstrip()}review: {review}\n")
    told = [each for each in result.problems if each.rule is not Rule.UNUSED_AGENT]
    assert [(each.severity, each.rule) for each in told] == [(severity, rule)]


def test_budgets_that_cannot_hold_are_told() -> None:
    tasks = "".join(f"      - {{id: t{i}, agent: coder, description: x}}\n" for i in range(3))
    result = with_team(
        f"{WORK.lstrip()}    budgets: {{turns: 2, minutes: 90}}\n"
        f"    tasks:\n{tasks}budgets: {{minutes: 60, turns: 9}}\n"
    )
    assert [(each.rule, each.severity) for each in result.problems] == [
        (Rule.BUDGET, Severity.ERROR),
        (Rule.BUDGET, Severity.WARNING),
    ]


def _mutated(data: Any, random: Random, fresh: Any) -> Any:
    """The flow with something put, renamed or taken out anywhere."""
    root = copy.deepcopy(data)
    holder: Any = root
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = random.choice(keys) if keys else None
        if key is not None and isinstance(holder[key], dict | list) and random.random() < 0.8:
            holder = holder[key]
            continue
        match random.randrange(4):
            case 0 if key is not None:
                del holder[key]
            case 1 if isinstance(holder, dict) and key is not None:
                holder[f"{key}x"] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.append(fresh)
            case _ if key is not None:
                holder[key] = fresh
            case _:
                pass
        return root


@given(st.randoms(use_true_random=False), st.lists(VALUES, min_size=1, max_size=5))
def test_no_mutation_of_a_sound_flow_does_more_than_report(
    random: Random, fresh: list[Any]
) -> None:
    data = SOUND
    for value in fresh:
        data = _mutated(data, random, value)
    result = check(read_document(lines(data, 0) if data else "{}", "flow.yaml"))
    assert (result.flow is None) == bool(result.errors)
    for each in result.problems:
        assert each.file == "flow.yaml"
        assert each.line >= 1
        assert each.sentence
    if result.flow is None:
        with pytest.raises(FlowError):
            result.sound()


@given(st.integers(0, len(AC_FLOW) - 1), st.binary(max_size=6), st.integers(0, 4))
def test_no_damage_to_the_bytes_does_more_than_report(at: int, put: bytes, cut: int) -> None:
    result = check(read_document(AC_FLOW[:at] + put + AC_FLOW[at + cut :], "flow.yaml"))
    assert (result.flow is None) == bool(result.errors)


@given(st.text(max_size=60))
def test_no_text_does_more_than_report(text: str) -> None:
    result = check(read_document(text, "flow.yaml"))
    assert result.flow is None


def test_a_slip_is_recognised_whatever_the_capitals() -> None:
    assert problem.did_you_mean("PatternID", ["patternId", "id"]) == "did you mean patternId?"
    assert problem.did_you_mean("debat", ["debate_judge", "p2p"]) == "did you mean debate_judge?"
