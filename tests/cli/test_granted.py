"""What a flow is given is told before it may run, and again wherever it is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_flow import Place

pytestmark = pytest.mark.req("D43")

WIDE = """\
version: 0.2
commonRules: {ruleChainRefs: ["MINE:~/.codex/AGENTS.md", "PROJECT:./AGENTS.md"]}
agents:
  - id: coder
    rules: [~/rules.md, Be brief.]
    runtime:
      kind: command
      command: ./tools/agent.sh
      network: open
      env: [AWS_SECRET_ACCESS_KEY, HOME]
  - id: other
    runtime: {kind: command, command: cat, network: {hosts: [pypi.org, "*.example.org"]}}
  - {id: third, runtime: {kind: command, command: cat, network: model, env: [OPENAI_API_KEY, X]}}
interactions:
  - id: work
    patternId: manager_worker
    roles: {worker: [coder, other, third]}
    data: {termination: {type: max_rounds, rounds: 2}}
bring: [.env, "secrets/**"]
setup: {command: npm ci, network: open, env: [NPM_TOKEN]}
review: {autoApprove: true, allowUnverified: true}
land: commit
"""
TOLD = (
    "coder reaches: everything (network: open)",
    "coder sees: AWS_SECRET_ACCESS_KEY, HOME",
    "other reaches: pypi.org, *.example.org",
    "third reaches: its model (network: model)",
    "third sees: X",
    "third uses, without seeing it: OPENAI_API_KEY",
    "agents are told what stands in: ~/.codex/AGENTS.md, ~/rules.md",
    "takes along ignored files: .env, secrets/**",
    "setup runs: npm ci",
    "setup reaches: everything (network: open)",
    "setup sees: NPM_TOKEN",
    "lands without asking you, also unverified",
    "commits to your branch",
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("words", [("trust", "--show"), ("flow", "show", "wide")])
def test_what_a_flow_reaches_sees_takes_and_lands_is_told(
    place: Place, words: tuple[str, ...]
) -> None:
    place.write("wide", WIDE)
    said = [line.strip() for line in place.run(*words).stdout.splitlines()]
    assert [line for line in TOLD if line not in said] == []


@pytest.mark.parametrize("words", [("trust", "--show"), ("flow", "show", "solo")])
def test_a_flow_that_asks_for_nothing_says_so(place: Place, words: tuple[str, ...]) -> None:
    place.run("flow", "new")
    said = place.run(*words).stdout
    assert "coder reaches: its model (network: model)" in said
    assert "lands what you approve" in said
    for word in ("sees", "ignored files", "without asking", "commits"):
        assert word not in said


def test_an_agent_that_decides_in_your_place_is_told(place: Place) -> None:
    place.run("flow", "new", "--from", "team")
    said = place.run("trust", "--show").stdout
    assert "lands without asking you what reviewer approves" in said


def test_interactions_that_land_differently_are_told_apart(place: Place) -> None:
    act = WIDE[WIDE.index("  - id: work") : WIDE.index("bring:")]
    other = act.replace("work", "more", 1) + "    land: branch\n"
    place.write("wide", WIDE.replace(act, act + other))
    said = place.run("trust", "--show").stdout
    assert "work commits to your branch" in said
    assert "more commits to a branch of its own" in said


def test_the_address_that_a_model_is_answered_from_is_told(place: Place) -> None:
    runtime = "{kind: model, model: m, url: https://far.example/v1, keyEnv: OPENAI_API_KEY}"
    start = "version: 0.2\nagents:\n  - {id: coder, runtime: " + runtime + "}\n"
    place.write("far", start + WIDE[WIDE.index("interactions") :].replace(", other, third", ""))
    said = place.run("trust", "--show").stdout
    assert "coder is answered from https://far.example/v1, with the key in OPENAI_API_KEY" in said


def test_what_the_settings_of_a_repository_set_is_told(place: Place) -> None:
    text = "heartbeat:\n  interval_s: 20\nnot_there: 1\n"
    (place.root / "agentcanvas.yaml").write_text(text)
    said = place.run("trust", "--show").stdout
    assert "sets heartbeat.interval_s: 20" in said
    assert "agentcanvas.yaml:3:1: not_there is not a setting" in said
    assert str(place.root) not in said


def test_what_is_given_cannot_command_the_terminal(place: Place) -> None:
    place.write("wide", WIDE.replace("[.env", '["\\e[2J\\nlands what you approve"'))
    said = place.run("trust", "--show").stdout
    assert "\x1b" not in said
    assert "\nlands what you approve" not in said
