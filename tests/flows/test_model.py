"""The model: the format's own example, and every model through YAML and back."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from agentcanvas.flows.axes import MaxRounds, MessageForm, QualityGate, Sync, Topology
from agentcanvas.flows.document import read_document
from agentcanvas.flows.ground import Setup
from agentcanvas.flows.guards import Escalation
from agentcanvas.flows.model import Dependency, DependencyType, Flow, Layout, Observability
from agentcanvas.flows.reconcile import flow_text
from agentcanvas.flows.shape import made
from agentcanvas.flows.team import CwdMode, Network, NetworkMode
from agentcanvas.proposals import review
from tests.flows.writing import AC_FLOW, checked, values_of, with_team

pytestmark = pytest.mark.req("F1")


@pytest.mark.req("I1")
def test_the_formats_own_example_is_read_exactly() -> None:
    flow = checked(AC_FLOW.decode()).sound()
    assert flow.version == "0.2"
    assert flow.common_rules.rule_chain_refs == (
        "CODEX_GLOBAL:~/.codex/AGENTS.md",
        "PROJECT:./AGENTS.md",
    )
    planner, coder = flow.agents
    assert (planner.id, planner.name, planner.role) == ("a1", "Planner", "orchestrator")
    assert (planner.rules, planner.skills, planner.mcp) == ((), ("requirements_refine",), ("jira",))
    assert (coder.id, coder.name, coder.role) == ("a2", "Coder", "worker")
    (interaction,) = flow.interactions
    assert (interaction.id, interaction.pattern_id) == ("i1", "manager_worker")
    (edge,) = interaction.edges
    assert (edge.id, edge.source, edge.target) == (None, "a1", "a2")
    assert edge.data.topology is Topology.MANAGER_WORKER
    assert edge.data.message_form is MessageForm.NL_TEXT
    assert edge.data.sync is Sync.REQ_RES
    assert edge.data.termination == (MaxRounds(2),)
    assert edge.data.params == {"task_template": "Implement feature X"}
    assert edge.data.observability == Observability(logs=True, traces=False)
    assert flow.layout == Layout(nodes={}, edges={})


@given(values_of(Flow))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_model_comes_back_from_its_yaml(flow: Flow) -> None:
    document = read_document(flow_text(flow))
    assert document.problems == ()
    again, problems = made(document.data, Flow)
    assert problems == []
    assert again == flow


def test_the_version_may_be_a_number_or_a_text() -> None:
    assert checked("version: 0.2\n").sound() == checked('version: "0.2"\n').sound()


@pytest.mark.req("I1")
def test_a_termination_is_one_object_or_a_list() -> None:
    flow = with_team("""
        interactions:
          - id: i1
            patternId: manager_worker
            roles: {worker: coder}
            data:
              termination:
                - {type: max_rounds, rounds: 3}
                - {type: quality_gate, metric: tests_passed, op: ">=", value: 1}
    """).sound()
    data = flow.interactions[0].data
    assert data
    assert data.termination == (MaxRounds(3), QualityGate("tests_passed", ">=", 1))


def test_abbreviations_mean_the_long_form() -> None:
    flow = with_team("""
        interactions:
          - id: i1
            patternId: manager_worker
            roles: {worker: [coder, tester]}
            tasks:
              - {id: t1, agent: coder, description: x, scope: [a]}
              - id: t2
                agent: tester
                description: y
                scope: [b]
                depends_on: [t1, {task: t1, type: soft}]
    """).sound()
    assert flow.interactions[0].tasks[1].depends_on == (
        Dependency(task="t1"),
        Dependency(task="t1", type=DependencyType.SOFT),
    )
    assert checked("version: 0.2\nsetup: make it\n").sound().setup == Setup(command="make it")
    networks = [
        checked(f"version: 0.2\nagents: [{{id: a, runtime: {{network: {words}}}}}]\n")
        for words in ("open", "{hosts: [pypi.org]}")
    ]
    assert [each.sound().agents[0].runtime for each in networks] == [
        structs.replace(runtime, network=network)
        for runtime, network in zip(
            [each.sound().agents[0].runtime for each in networks],
            [Network(mode=NetworkMode.OPEN), Network(mode=NetworkMode.HOSTS, hosts=("pypi.org",))],
            strict=True,
        )
        if runtime
    ]


def test_an_orchestrator_stands_in_the_workspace_and_a_worker_in_its_home() -> None:
    flow = checked("""
        version: 0.2
        agents:
          - {id: a, role: orchestrator}
          - {id: b, role: worker}
          - {id: c, role: worker, isOrchestrator: true}
          - {id: d, role: orchestrator, runtime: {cwdMode: agentHome}}
    """).sound()
    assert [agent.cwd_mode for agent in flow.agents] == [
        CwdMode.WORKSPACE,
        CwdMode.AGENT_HOME,
        CwdMode.WORKSPACE,
        CwdMode.AGENT_HOME,
    ]


def test_a_flow_and_the_gate_have_the_same_words_for_an_escalation() -> None:
    assert [each.value for each in Escalation] == [each.value for each in review.Escalation]
