"""Options of ``agentcanvas run`` that cannot be meant are refused in words of the same kind."""

from __future__ import annotations

import os

import pytest

from agentcanvas.app.trust import trust_now
from agentcanvas.clock import SystemClock
from agentcanvas.flows.starters import starter
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import FakeOffice, propose

__all__ = ["desk"]


def refused(desk: Desk, *words: str) -> str:
    """The sentence; nothing was started."""
    office = FakeOffice(begin=propose)
    result = desk.give(office, "run", "fix it", *words)
    assert (result.exit_code, office.orders) == (2, [])
    return " ".join(result.stderr.split())


def begun(desk: Desk, *words: str) -> str:
    office = FakeOffice(begin=propose)
    said = desk.give(office, "run", *words).stdout
    assert len(office.orders) == 1
    return said


# The network --------------------------------------------------------------------------------------


@pytest.mark.req("D11")
@pytest.mark.parametrize("said", ["all", "host", "intranet,pypi.org"])
def test_a_word_that_is_no_host_is_no_network(desk: Desk, said: str) -> None:
    wrong = said.partition(",")[0]
    sentence = f"{wrong} is neither a mode (none, model, open) nor a host; for everything write: "
    assert f"{sentence}--network open" in refused(desk, "--network", said)


@pytest.mark.req("D11")
def test_a_list_of_hosts_holds_no_mode_and_an_empty_one_says_nothing(desk: Desk) -> None:
    assert "none is a mode and no host" in refused(desk, "--network", "none,model")
    assert "--network says nothing" in refused(desk, "--network", "")
    assert "--network says nothing" in refused(desk, "--network", " , ")


@pytest.mark.req("D11")
@pytest.mark.parametrize("said", ["localhost", "localhost:8000", "git:3000@10.0.0.0/8", "[::1]"])
def test_a_host_of_ones_own_needs_no_dot(desk: Desk, said: str) -> None:
    assert f"Network: {said}" in begun(desk, "fix it", "--network", said)


def test_a_model_that_is_not_named_is_asked_for_by_its_option(desk: Desk) -> None:
    assert "add --env ANTHROPIC_API_KEY" in refused(desk, "--network", "model")
    begun(desk, "fix it", "--network", "model", "--env", "OPENAI_API_KEY")


# The command --------------------------------------------------------------------------------------


def test_an_empty_command_is_told_as_one(desk: Desk) -> None:
    for said in ("", "  "):
        assert "--command is empty; name the program" in refused(desk, "--command", said)


def test_a_slip_in_a_placeholder_starts_nothing(desk: Desk) -> None:
    said = refused(desk, "--command", "echo {promt}")
    assert "--command says {promt}; did you mean {prompt}?" in said


@pytest.mark.parametrize("command", ["no-such-agent --fast", "./not/there.sh", "/not/there"])
def test_a_program_that_is_not_here_starts_nothing(desk: Desk, command: str) -> None:
    program = command.partition(" ")[0]
    assert f"There is no program {program} here" in refused(desk, "--command", command)


@pytest.mark.parametrize(
    "command",
    ["cd src && true", "X=1 cat", "$AGENT now", '"an agent"', "(cat)", "if a; then b"],
)
def test_what_only_the_shell_can_read_is_left_to_it(desk: Desk, command: str) -> None:
    begun(desk, "fix it", "--command", command)


# Files and variables ------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--bring", "--scope"])
def test_a_path_outside_is_told_by_the_option_and_not_by_a_line_of_a_flow(
    desk: Desk, option: str
) -> None:
    said = refused(desk, option, "/etc/passwd")
    assert f'{option}: "/etc/passwd" does not lead to files of the workspace' in said
    assert "yaml" not in said


def test_a_value_where_a_name_belongs_is_not_repeated(desk: Desk) -> None:
    said = refused(desk, "--env", "KEY=s3cret")
    assert "--env: this is not the name of an environment variable" in said
    assert "s3cret" not in said


@pytest.mark.req("D37")
def test_a_variable_that_is_not_set_is_told_before_the_run(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERE", "x")
    monkeypatch.delenv("NOPE", raising=False)
    said = begun(desk, "fix it", "--env", "NOPE", "--env", "THERE")
    assert "NOPE is not set here, so the agent will not have it." in said
    assert "THERE is not set" not in said


def test_a_pattern_that_brings_nothing_is_told_before_the_run(desk: Desk) -> None:
    desk.write("deep/local.cfg", "")
    said = begun(desk, "fix it", "--bring", "nothing.cfg", "--bring", "**/*.cfg")
    assert "--bring nothing.cfg: nothing to take." in said
    assert "**/*.cfg: nothing" not in said


def test_a_flow_of_the_workspace_is_run_with_the_same_care(desk: Desk) -> None:
    desk.write(".agentcanvas/flows/solo.yaml", starter("solo"))
    trust_now(desk.root, os.environ, SystemClock())
    office = FakeOffice(begin=propose)
    result = desk.give(office, "run", "solo", "fix it", "--bring", "/etc/passwd")
    assert (result.exit_code, office.orders) == (2, [])
    assert "--bring nothing: nothing to take." in begun(
        desk, "solo", "fix it", "--bring", "nothing"
    )
