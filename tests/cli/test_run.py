"""``agentcanvas run``: what is started, what is shown, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.app.composing import Wishes, flow_for, with_wishes
from agentcanvas.app.trust import trust_now
from agentcanvas.clock import SystemClock
from agentcanvas.errors import FlowError
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.guards import PERSON
from agentcanvas.flows.starters import starter
from agentcanvas.flows.team import Network, NetworkMode
from agentcanvas.runs.office import RunOrder
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import (
    FakeOffice,
    accept_plan,
    at_work,
    ending,
    propose,
    started,
)
from tests.cli.pseudo_terminal import PATIENCE_S, ROOT, at_terminal

__all__ = ["desk"]

FLOW = ".agentcanvas/flows/solo.yaml"
SCRIPTED = """\
version: 0.2
agents: [{id: coder, runtime: {kind: script, script: scripts/coder.yaml}}]
interactions: [{id: work, patternId: manager_worker, roles: {worker: coder}}]
"""


def trusted(desk: Desk, text: str | None = None) -> None:
    desk.write(FLOW, starter("solo") if text is None else text)
    trust_now(desk.root, os.environ, SystemClock())


def order_of(office: FakeOffice) -> RunOrder:
    (order,) = office.orders
    return order


# A request alone ----------------------------------------------------------------------------------


@pytest.mark.req("D20", "D44")
def test_a_request_becomes_a_flow_of_one_worker_with_you_as_reviewer(desk: Desk) -> None:
    office = FakeOffice(begin=propose)
    desk.give(office, "run", "fix the failing test")
    order = order_of(office)
    assert (order.request, order.person) == ("fix the failing test", "you")
    flow = check(read_document(order.flow_text)).sound()
    (agent,) = flow.agents
    assert agent.runtime is not None
    assert (agent.runtime.kind, agent.runtime.command) == ("command", "cat")
    (interaction,) = flow.interactions
    assert interaction.pattern_id == "manager_worker"
    assert [task.description for task in interaction.tasks] == ["fix the failing test"]
    assert flow.review is not None
    assert flow.review.reviewer == PERSON


def test_from_a_folder_below_it_is_said_which_workspace_is_meant(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "a workspace of this folder alone: agentcanvas init --here"
    assert said not in desk.give(FakeOffice(begin=propose), "run", "fix it").stdout
    below = desk.root / "packages" / "one"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    shown = desk.give(FakeOffice(begin=propose), "run", "fix it").stdout
    assert f"In {desk.root.resolve()}; {said}" in shown.replace("\n", "")


def test_a_request_of_its_own_has_no_plan_to_be_asked_about(desk: Desk) -> None:
    office = FakeOffice(begin=propose)
    desk.give(office, "run", "fix the failing test")
    assert order_of(office).approve_plan is False


def test_a_command_on_the_line_goes_before_the_one_in_the_environment(desk: Desk) -> None:
    office = FakeOffice(begin=propose)
    desk.give(office, "run", "fix it", "--command", "echo {prompt}")
    assert "echo {prompt}" in order_of(office).flow_text


def test_without_a_command_it_is_said_how_to_name_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTCANVAS_COMMAND")
    result = desk.give(FakeOffice(), "run", "fix it")
    assert result.exit_code == 1
    for advice in ("--command", "AGENTCANVAS_COMMAND", "agentcanvas run FLOW"):
        assert advice in result.stderr


def test_one_word_that_nearly_names_a_flow_is_a_slip_and_starts_nothing(desk: Desk) -> None:
    trusted(desk)
    office = FakeOffice(begin=propose)
    slip = desk.give(office, "run", "sole")
    assert (slip.exit_code, office.orders) == (2, [])
    assert "There is no flow sole; did you mean solo?" in slip.stderr
    for words in (["mend solo"], ["documentation"], ["sole", "--command", "echo {prompt}"]):
        desk.give(office, "run", *words)
    assert [order.flow for order in office.orders] == ["one-off"] * 3


def test_options_are_written_into_the_flow_so_that_a_repeat_has_them_too(desk: Desk) -> None:
    office = FakeOffice(begin=propose)
    desk.give(
        office,
        *("run", "fix it", "--check", "pytest -q", "--check", "ruff check", "--scope", "src/**"),
        *("--auto-approve", "--budget-turns", "3", "--budget-minutes", "1.5"),
        *("--unsafe", "--parallel", "2", "--plan-only"),
    )
    order = order_of(office)
    flow = check(read_document(order.flow_text)).sound()
    assert [(each.name, each.command) for each in flow.checks] == [
        ("pytest", "pytest -q"),
        ("ruff", "ruff check"),
    ]
    assert flow.scope == ("src/**",)
    assert flow.review is not None
    assert flow.review.auto_approve is True
    assert flow.budgets is not None
    assert (flow.budgets.turns, flow.budgets.minutes) == (3, 1.5)
    assert (order.unsafe, order.max_parallel, order.plan_only) == (True, 2, True)


def test_checks_with_the_same_first_word_keep_apart() -> None:
    composed = with_wishes(flow_for("x", "cmd", {}), Wishes(checks=("make a", "make b")))
    assert [each.name for each in composed.flow.checks] == ["make-1", "make-2"]


@pytest.mark.parametrize(
    ("said", "name", "command"),
    [
        ("tests=python3 -m unittest", "tests", "python3 -m unittest"),
        ("CI=1 npm test", "CI=1", "CI=1 npm test"),  # a variable of the command
        ("./run.sh a=b", "run.sh", "./run.sh a=b"),
        ("two\nlines", "two", "two\nlines"),
    ],
)
def test_a_check_may_be_given_a_name(said: str, name: str, command: str) -> None:
    (check,) = with_wishes(flow_for("x", "cmd", {}), Wishes(checks=(said,))).flow.checks
    assert (check.name, check.command) == (name, command)


@pytest.mark.parametrize("said", ["", "  ", "tests=", "tests= "])
def test_a_check_without_a_command_is_refused(said: str) -> None:
    with pytest.raises(FlowError, match="A check needs a command"):
        with_wishes(flow_for("x", "cmd", {}), Wishes(checks=(said,)))


@pytest.mark.parametrize("request_", ["a: b # c", '"\n---\n', "\x1b[2J", "- [x] {y}", "ünï 🐍 \\"])
def test_any_request_survives_the_way_through_yaml(request_: str) -> None:
    (interaction,) = flow_for(request_, "cmd", {}).flow.interactions
    assert interaction.tasks[0].description == request_


@pytest.mark.parametrize(
    ("said", "meant"), [("opne", "open"), ("modle", "model"), ("non", "none"), ("OPEN", "open")]
)
def test_a_slip_in_a_network_mode_is_no_host(said: str, meant: str) -> None:
    with pytest.raises(FlowError, match=f"no network mode {said}; did you mean {meant}"):
        flow_for("x", "cmd", {}, Wishes(network=said))


def test_hosts_is_no_host() -> None:
    with pytest.raises(FlowError, match="Name the hosts"):
        flow_for("x", "cmd", {}, Wishes(network="hosts"))


@pytest.mark.parametrize("said", ["localhost", "pypi.org", "open.example.org", "none.org,[::1]"])
def test_what_is_not_nearly_a_network_mode_is_a_host(said: str) -> None:
    (agent,) = flow_for("x", "cmd", {}, Wishes(network=said)).flow.agents
    assert agent.runtime is not None
    assert isinstance(agent.runtime.network, Network)
    assert list(agent.runtime.network.hosts) == said.split(",")


def test_an_empty_command_in_the_environment_is_none() -> None:
    with pytest.raises(FlowError, match="No coding CLI was found on the PATH"):
        flow_for("x", None, {"AGENTCANVAS_COMMAND": "  "})


# Flows --------------------------------------------------------------------------------------------


@pytest.mark.req("D20")
def test_a_flow_of_the_workspace_is_run_by_its_name_and_its_plan_is_asked_about(
    desk: Desk,
) -> None:
    trusted(desk)
    office = FakeOffice(begin=propose)
    desk.give(office, "run", "solo", "fix it")
    order = order_of(office)
    assert (order.flow, order.request, order.approve_plan) == ("solo", "fix it", True)
    assert order.flow_text == starter("solo")


@pytest.mark.parametrize("words", [["--yes"], ["--plan-only"]])
def test_a_plan_is_not_asked_about_when_it_is_accepted_unseen_or_all_there_is(
    desk: Desk, words: list[str]
) -> None:
    trusted(desk)
    office = FakeOffice(begin=propose)
    desk.give(office, "run", "solo", "fix it", *words)
    assert order_of(office).approve_plan is False


@pytest.mark.parametrize("words", [["run", "solo"], ["run", "--flow", "solo"]])
def test_a_flow_may_bring_its_request_along(desk: Desk, words: list[str]) -> None:
    text = starter("solo").replace(
        "    data:\n", "    data:\n      params: {task_template: tidy up}\n"
    )
    trusted(desk, text)
    office = FakeOffice(begin=propose)
    desk.give(office, *words)
    assert order_of(office).request == "tidy up"


def test_a_flow_without_any_request_asks_for_one_on_the_command_line(desk: Desk) -> None:
    trusted(desk)
    result = desk.give(FakeOffice(), "run", "solo")
    assert result.exit_code == 2
    assert 'agentcanvas run solo "…"' in result.stderr


def test_a_flow_by_its_path_is_found_from_where_one_stands(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "mine.yaml"
    elsewhere.write_text(starter("solo"))
    office = FakeOffice(begin=propose)
    desk.give(office, "run", str(elsewhere), "fix it")
    assert order_of(office).flow == "mine"


@pytest.mark.req("D43")
def test_a_flow_that_came_with_the_repository_does_not_run_before_it_is_trusted(desk: Desk) -> None:
    desk.write(FLOW, starter("solo"))
    office = FakeOffice(begin=propose)
    result = desk.give(office, "run", "solo", "fix it")
    assert (result.exit_code, office.orders) == (1, [])
    assert "agentcanvas trust" in result.stderr


@pytest.mark.req("D43")
@pytest.mark.parametrize("named", ["team.yaml", "./sub/../team.yaml", "sub/my team.yml"])
def test_a_flow_that_lies_elsewhere_in_the_repository_does_not_run_before_it_is_trusted(
    desk: Desk, named: str
) -> None:
    trusted(desk)
    (desk.root / "sub").mkdir()
    path = desk.root / named
    path.write_text(starter("solo"))
    office = FakeOffice(begin=propose)
    result = desk.give(office, "run", named, "fix it")
    assert (result.exit_code, office.orders) == (1, [])
    (words,) = re.findall(r"look, then: agentcanvas (.*)", result.stderr.replace("\n", " "))
    assert desk.give(office, *shlex.split(words), "--yes").exit_code == 0
    desk.give(office, "run", named, "fix it")
    assert order_of(office).flow_text == starter("solo")
    path.write_text(starter("solo") + "# one line more\n")
    assert desk.give(office, "run", named, "fix it").exit_code == 1
    desk.give(office, "run", "solo", "fix it")
    assert len(office.orders) == 2, "the others may run as before"


@pytest.mark.req("D43")
def test_a_script_is_trusted_with_the_flow_that_names_it(desk: Desk) -> None:
    script = "turns: [{turn: 1, steps: [{run: make it}]}]"
    desk.write("scripts/coder.yaml", script)
    desk.write(FLOW, SCRIPTED)
    office = FakeOffice(begin=propose)
    result = desk.give(office, "run", "solo", "fix it")
    assert "2 files of this repository can run things; look, then: agentcanvas trust" in (
        result.stderr
    )
    assert desk.give(office, "trust", "--yes").exit_code == 0
    assert desk.give(office, "run", "solo", "fix it").exit_code == 3
    desk.write("scripts/coder.yaml", script + "\n")
    result = desk.give(office, "run", "solo", "fix it")
    assert "Changed since you trusted them: scripts/coder.yaml" in result.stderr
    assert len(office.orders) == 1


@pytest.mark.req("D43")
def test_a_link_in_the_repository_is_no_way_around_trust(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "mine.yaml").write_text(starter("solo"))
    (desk.root / "team.yaml").symlink_to(elsewhere / "mine.yaml")
    (desk.root / "teams").symlink_to(elsewhere)
    office = FakeOffice(begin=propose)
    for named in ("team.yaml", "teams/mine.yaml", str(desk.root / "team.yaml")):
        result = desk.give(office, "run", named, "fix it")
        assert (result.exit_code, office.orders) == (1, [])
        assert "is not a plain file" in result.stderr.replace("\n", " ")


@pytest.mark.req("D43")
def test_a_flow_that_changed_since_it_was_trusted_does_not_run(desk: Desk) -> None:
    trusted(desk)
    desk.write(FLOW, starter("solo") + "# one line more\n")
    result = desk.give(FakeOffice(), "run", "solo", "fix it")
    assert result.exit_code == 1
    assert "Changed since you trusted them" in result.stderr


def test_every_problem_of_a_flow_is_said_at_once(desk: Desk) -> None:
    trusted(desk, "version: 0.2\nagents: [{id: a, rule: x}]\ninteractions: [{id: i}]\n")
    result = desk.give(FakeOffice(), "run", "solo", "fix it")
    assert result.exit_code == 1
    assert "patternId" in result.stderr
    assert "rule" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Say what is to be done"),
        ([""], "Say what is to be done"),
        (["fix", "the", "test"], "Put the request in quotes"),
        (["nowhere.yaml"], "There is no flow nowhere.yaml"),
        (["solo", "x", "--command", "y"], "--command is for a request without a flow"),
    ],
)
def test_wrong_usage_is_one_sentence(desk: Desk, words: list[str], sentence: str) -> None:
    trusted(desk)
    result = desk.give(FakeOffice(), "run", *words)
    assert result.exit_code in (1, 2)
    assert sentence in result.stderr
    assert result.stdout == ""


# How it ends --------------------------------------------------------------------------------------


@pytest.mark.req("D25")
def test_without_a_terminal_a_parked_run_ends_with_3_and_the_exact_commands(desk: Desk) -> None:
    result = desk.give(FakeOffice(begin=propose), "run", "strip the blanks")
    assert result.exit_code == 3
    run = "run_20260301_101500"
    limits = "At most 12 turns, 24 messages, 120 minutes, no limit on tokens."
    assert result.stdout.splitlines()[0] == limits
    assert result.stdout.splitlines()[-8:] == [
        "Parked after 0:07, 12.3k tokens, $0.04. It waits for you.",
        "",
        "Apply the change of Coder for task-1?",
        f"  apply it:      agentcanvas review {run} task-1 --apply",
        f'  send it back:  agentcanvas review {run} task-1 --revise "…"',
        f'  reject it:     agentcanvas review {run} task-1 --reject "…"',
        "",
        f"Look at it:  agentcanvas review {run}",
    ]


def test_a_done_run_ends_with_0(desk: Desk) -> None:
    office = FakeOffice(begin=lambda run: run.tell(started(), *ending(done=True)))
    result = desk.give(office, "run", "x y")
    assert result.exit_code == 0
    assert "Done. It took 0:0" in result.stdout


def test_a_run_that_missed_its_goal_ends_with_4_and_says_how_to_begin_again(desk: Desk) -> None:
    office = FakeOffice(
        begin=lambda run: run.tell(started(), *ending(done=False, reason="budget: 1 turns"))
    )
    result = desk.give(office, "run", "x y")
    assert result.exit_code == 4
    assert "Not done: budget: 1 turns" in result.stdout
    assert "agentcanvas retry run_20260301_101500" in result.stdout


def test_json_is_one_event_a_line_and_nothing_else_on_standard_output(desk: Desk) -> None:
    result = desk.give(FakeOffice(begin=propose), "run", "x y", "--json")
    assert result.exit_code == 3
    events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert events[0] == "run_started"
    assert events[-1] == "run_parked"
    assert "--apply" in result.stderr


def test_detached_it_is_left_with_a_server_and_said_where_to_look(desk: Desk) -> None:
    office = FakeOffice(begin=at_work)
    result = desk.give(office, "run", "x y", "--detach")
    assert (result.exit_code, office.calls) == (0, [f"serve apart {desk.root.name}"])
    assert "agentcanvas stop run_20260301_101500" in result.stdout
    result = desk.give(FakeOffice(begin=at_work), "run", "x y", "--detach", "--json")
    assert json.loads(result.stdout) == {"runId": "run_20260301_101500"}


@pytest.mark.req("D1")
def test_in_the_foreground_other_commands_can_reach_the_run(desk: Desk) -> None:
    office = FakeOffice(begin=propose)
    desk.give(office, "run", "x y")
    assert office.served


def test_the_help_names_every_exit_code(desk: Desk) -> None:
    text = " ".join(desk.give(FakeOffice(), "run", "--help").stdout.split())
    for code in ("0 done", "1 an error", "2 wrong usage", "3 it waits", "4 it ended", "130 stop"):
        assert code in text


def test_a_plan_that_waits_has_its_commands_too(desk: Desk) -> None:
    result = desk.give(FakeOffice(begin=accept_plan), "run", "x y")
    assert result.exit_code == 3
    assert "agentcanvas review run_20260301_101500 plan --apply" in result.stdout


# At a terminal ------------------------------------------------------------------------------------

RUN = ("run", "strip the blanks", "--command", "cat")


def test_a_review_is_answered_right_where_the_run_is_watched(tmp_path: Path) -> None:
    with at_terminal("review", *RUN, cwd=tmp_path) as person:
        person.sees("tests: 2 failed → all 14 passed")
        person.sees("+    return [part.strip()")
        person.sees("skip (s)?")
        person.types("a\n")
        person.sees("task-1 applied: src/parser.py")
        assert person.leaves() == 0


def test_an_answer_that_is_taken_up_late_is_waited_for(tmp_path: Path) -> None:
    with at_terminal("late", *RUN, cwd=tmp_path) as person:
        person.sees("skip (s)?")
        person.types("apply\n")
        person.sees("Done: tests green.")
        assert person.leaves() == 0


def test_with_no_input_nobody_is_asked_even_at_a_terminal(tmp_path: Path) -> None:
    with at_terminal("review", *RUN, "--no-input", cwd=tmp_path) as person:
        assert person.leaves() == 3
        assert "skip (s)?" not in person.screen


def test_a_plan_is_edited_until_it_can_be_carried_out(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        'if [ -e "$0.once" ]; then sed -i s/nobody/coder/ "$1"\n'
        'else : > "$0.once"; sed -i "s/agent: coder/agent: nobody/" "$1"; fi\n'
    )
    editor.chmod(0o755)
    with at_terminal("plan", *RUN, cwd=tmp_path, env={"EDITOR": str(editor)}) as person:
        person.sees("Say so in the manual")
        person.types("e\n")
        person.sees("nobody, who is not here")
        person.sees("Edit it again?")
        person.types("y\n")
        person.sees("accept (a)")
        person.types("a\n")
        person.sees("parser → Coder: Strip the blanks")
        assert person.leaves() == 0


def test_an_editor_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with at_terminal("plan", *RUN, cwd=tmp_path, env={"EDITOR": "no-such-editor"}) as person:
        person.sees("accept (a)")
        person.types("e\n")
        person.sees("no-such-editor cannot be started")
        assert person.leaves() == 3


def test_a_declined_plan_ends_the_run(tmp_path: Path) -> None:
    with at_terminal("plan", *RUN, cwd=tmp_path) as person:
        person.sees("cancel (c)")
        person.types("c\n")
        person.sees("Not done: no plan: declined")
        assert person.leaves() == 4


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_escape_reaches_a_terminal_without_colour_but_cursor_moves(
    tmp_path: Path, columns: int
) -> None:
    env = {"NO_COLOR": "1"}
    with at_terminal("review", *RUN, cwd=tmp_path, columns=columns, env=env) as person:
        person.sees("diff --git")
        person.sees("(s)?")
        person.types("s\n")
        assert person.leaves() == 3
        assert b"\x1b[32m" not in person.raw
        assert b"\x1b[31m" not in person.raw


# Ctrl-C -------------------------------------------------------------------------------------------


def test_a_third_ctrl_c_does_not_wait_for_anything(tmp_path: Path) -> None:
    with at_terminal("wedged", *RUN, cwd=tmp_path) as person:
        person.sees("task-1 → Coder")
        person.presses_ctrl_c()
        person.sees("Stopping")
        person.presses_ctrl_c()
        person.sees("agentcanvas resume")
        person.presses_ctrl_c()
        assert person.leaves() == -signal.SIGINT


@pytest.mark.req("D25")
def test_ctrl_c_once_stops_the_run_and_keeps_what_is_there(tmp_path: Path) -> None:
    with at_terminal("work", *RUN, cwd=tmp_path) as person:
        person.sees("task-1 → Coder")
        person.presses_ctrl_c()
        person.sees("Stopping; what is there is kept. Press Ctrl-C again to end at once.")
        person.sees("Not done: stopped by you")
        person.sees("agentcanvas resume")
        assert person.leaves() == 130


def test_ctrl_c_twice_ends_at_once(tmp_path: Path) -> None:
    with at_terminal("stuck", *RUN, cwd=tmp_path) as person:
        person.sees("task-1 → Coder")
        person.presses_ctrl_c()
        person.sees("Stopping")
        person.presses_ctrl_c()
        person.sees("Left in the middle.")
        assert person.leaves() == 130


def test_ctrl_c_at_a_question_leaves_the_run_waiting(tmp_path: Path) -> None:
    with at_terminal("review", *RUN, cwd=tmp_path) as person:
        person.sees("skip (s)?")
        person.presses_ctrl_c()
        person.sees("It waits for you.")
        person.sees("agentcanvas review run_20260301_101500 task-1 --apply")
        assert person.leaves() == 130
        assert "Stopping" not in person.screen


def test_ctrl_c_at_a_question_stops_what_else_is_at_work(tmp_path: Path) -> None:
    with at_terminal("busy", *RUN, cwd=tmp_path) as person:
        person.sees("skip (s)?")
        person.presses_ctrl_c()
        person.sees("Stopping")
        person.sees("Not done: stopped by you")
        assert person.leaves() == 130


def test_a_signal_without_a_terminal_does_the_same(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cli.fake_office", "work", *RUN],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if "task-1 → Coder" in line:
                child.send_signal(signal.SIGINT)
                break
        rest = child.stdout.read()
        assert child.wait(PATIENCE_S) == 130
    assert "Stopping; what is there is kept" in rest
    assert "Not done: stopped by you" in rest


def test_the_worker_of_a_request_reaches_the_network_and_sees_variables_only_if_you_say_so() -> (
    None
):
    (closed,) = flow_for("x", "cmd", {}).flow.agents
    assert closed.runtime is not None
    assert (closed.runtime.network, closed.runtime.env) == (None, ())
    wishes = Wishes(network="open", env=("MY_KEY",))
    (opened,) = flow_for("x", "cmd", {}, wishes).flow.agents
    assert opened.runtime is not None
    assert opened.runtime.network == Network(mode=NetworkMode.OPEN)
    assert opened.runtime.env == ("MY_KEY",)


def test_what_the_agents_need_beside_the_files_of_git_is_written_into_the_flow() -> None:
    wishes = Wishes(bring=("local.cfg",), setup="make generated")
    flow = with_wishes(flow_for("x", "cmd", {}), wishes).flow
    assert flow.bring == ("local.cfg",)
    assert flow.setup is not None
    assert flow.setup.command == "make generated"


@pytest.mark.req("D11")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("none", Network(mode=NetworkMode.NONE)),
        ("model", Network(mode=NetworkMode.MODEL)),
        ("pypi.org, *.example.org", Network(hosts=("pypi.org", "*.example.org"))),
    ],
)
def test_what_a_worker_reaches_is_said_in_a_word_or_a_list_of_hosts(
    said: str, meant: Network
) -> None:
    (agent,) = flow_for("x", "cmd", {}, Wishes(network=said)).flow.agents
    assert agent.runtime is not None
    assert agent.runtime.network == meant


# What it was given --------------------------------------------------------------------------------


@pytest.mark.req("D11")
def test_a_run_begins_by_saying_which_network_and_variables_its_agent_has(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "x")
    words = ("run", "fix it", "--network", "open", "--env", "MY_KEY")
    said = desk.give(FakeOffice(begin=propose), *words).stdout
    assert "\nNetwork: open; variables: MY_KEY.\n" in said
    assert "etwork" not in desk.give(FakeOffice(begin=propose), "run", "fix it").stdout
