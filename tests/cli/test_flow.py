"""``agentcanvas flow`` as a person uses it: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.cli.init import Starter
from agentcanvas.flows.load import load_flow
from agentcanvas.flows.starters import STARTERS, starter
from agentcanvas.flows.trust import read_trust

pytestmark = pytest.mark.req("F1", "I5")

PROGRAM = [sys.executable, "-c", "from agentcanvas.cli import main; main()"]
DOCUMENT = Path(__file__).parents[2] / "docs" / "flows.md"

BAD = """\
version: 0.2
agents:
  - {id: coder, skils: [a]}
  - {id: "\\e[31mred"}
interactions:
  - id: build
    patternId: manager_worker
    roles: {worker: codr}
"""


class Place:
    """A workspace with a home of its own, and the commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.home = folder / "home"
        self.flows = self.root / ".agentcanvas" / "flows"
        self.root.mkdir()
        self.home.mkdir()
        self.record = self.home / ".local" / "share" / "agentcanvas" / "trust.json"

    def run(
        self, *words: str, stdin: str = "", cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """One command; it never ends with a traceback."""
        env = {**os.environ, "HOME": str(self.home), "NO_COLOR": "1", "COLUMNS": "100", **environ}
        done = subprocess.run(
            [*PROGRAM, *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.root,
            env=env,
        )
        assert "Traceback" not in done.stderr
        return done

    def write(self, name: str, text: str) -> Path:
        self.flows.mkdir(parents=True, exist_ok=True)
        path = self.flows / f"{name}.yaml"
        path.write_text(text)
        return path

    def trusted(self) -> set[str]:
        record = read_trust(self.record).get(str(self.root.resolve()))
        return set(record.files) if record else set()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# new --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(STARTERS))
def test_a_new_flow_is_the_starter_and_sound(place: Place, name: str) -> None:
    done = place.run("flow", "new", "--from", name)
    assert done.returncode == 0
    assert (place.flows / f"{name}.yaml").read_text() == starter(name)
    assert load_flow(place.flows / f"{name}.yaml").agents


def test_the_command_line_knows_every_starter() -> None:
    assert [each.value for each in Starter] == list(STARTERS)


def test_a_newcomer_is_told_what_to_do_next_and_each_step_is_a_command(place: Place) -> None:
    said = place.run("flow", "new", "build", "--from", "team").stdout
    assert "Made .agentcanvas/flows/build.yaml: a planner, two coders and a reviewer." in said
    steps = [line.split("  # ")[0].strip() for line in said.partition("Next:\n")[2].splitlines()]
    assert steps[-1] == 'agentcanvas run build "what you want done"'
    for step in steps[:-1]:
        program, *words = shlex.split(step)
        if program == "edit":
            assert (place.root / words[0]).is_file()
        else:
            assert place.run(*words).returncode == 0, step


def test_who_follows_the_steps_to_the_end_has_a_flow_that_can_start(place: Place) -> None:
    said = place.run("flow", "new").stdout
    assert "It cannot run yet." in said
    path = place.flows / "solo.yaml"
    command = "runtime: {kind: command, command: [./agent.sh]}\n"
    path.write_text(re.sub(r"runtime:\n +kind: cli\n +backendId: .*\n", command, starter("solo")))
    assert place.run("flow", "check", "solo").returncode == 0
    assert place.run("trust", "--yes").returncode == 0
    said = place.run("init").stdout
    assert "before it can run" not in said
    assert 'agentcanvas run solo "what you want done"' in said


def test_a_flow_that_is_there_is_left_alone_unless_forced(place: Place) -> None:
    mine = place.write("solo", "version: 0.2\n# mine\n")
    done = place.run("flow", "new")
    assert done.returncode == 1
    assert "There is a flow solo already" in done.stderr
    assert mine.read_text() == "version: 0.2\n# mine\n"
    assert place.run("flow", "new", "--force").returncode == 0
    assert mine.read_text() == starter("solo")


def test_names_that_differ_only_in_capitals_or_suffix_are_the_same_flow(place: Place) -> None:
    mine = place.write("solo", "version: 0.2\n")
    mine.rename(mine.with_suffix(".yml"))
    assert place.run("flow", "new", "SOLO").returncode == 1
    assert place.run("flow", "new", "solo.yaml").returncode == 1
    assert place.run("flow", "new", "--force").returncode == 0
    assert [path.name for path in place.flows.iterdir()] == ["solo.yml"]


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", "-x.y", "", "a b", "x" * 65, "a\nb"])
def test_a_name_that_no_file_should_have_is_refused(place: Place, name: str) -> None:
    done = place.run("flow", "new", "--", name or "~")
    assert done.returncode == 1
    assert "cannot be the name of a flow" in done.stderr
    assert not (place.root / ".agentcanvas").exists()


def test_names_in_any_script_are_fine(place: Place) -> None:
    assert place.run("flow", "new", "빌드-1").returncode == 0
    assert "빌드-1" in place.run("flow", "list").stdout


def test_nothing_is_written_through_a_link(place: Place, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    place.flows.mkdir(parents=True)
    (place.flows / "solo.yaml").symlink_to(precious)
    done = place.run("flow", "new", "--force")
    assert done.returncode == 1
    assert "is a link" in done.stderr
    assert precious.read_text() == "keep"


def test_a_file_where_the_flows_belong_is_said_in_one_sentence(place: Place) -> None:
    (place.root / ".agentcanvas").mkdir()
    place.flows.write_text("in the way")
    done = place.run("flow", "new")
    assert done.returncode == 1
    assert "is not a folder" in done.stderr


# new, and trust ---------------------------------------------------------------------------------


@pytest.mark.req("D43")
def test_who_makes_a_flow_here_is_not_asked_about_it(place: Place) -> None:
    said = place.run("flow", "new").stdout
    assert "it is trusted" in said
    assert place.trusted() == {".agentcanvas/flows/solo.yaml"}
    assert place.run("flow", "new", "--from", "team").returncode == 0
    assert place.trusted() == {".agentcanvas/flows/solo.yaml", ".agentcanvas/flows/team.yaml"}


@pytest.mark.req("D43")
def test_a_new_flow_does_not_make_strangers_files_trusted(place: Place) -> None:
    place.write("theirs", "version: 0.2\n")
    said = place.run("flow", "new").stdout
    assert "It may not run yet." in said
    assert "agentcanvas trust" in said
    assert place.trusted() == set()


@pytest.mark.req("D43")
def test_a_file_that_changed_since_stays_to_be_asked_about(place: Place) -> None:
    place.run("flow", "new")
    place.write("solo", "version: 0.2\n")
    assert "It may not run yet." in place.run("flow", "new", "--from", "team").stdout
    # The team was never trusted, so the solo flow alone is not enough.
    assert "It may not run yet." in place.run("flow", "new", "--force").stdout
    assert place.trusted() == {".agentcanvas/flows/solo.yaml"}


@pytest.mark.req("D43")
def test_a_flow_written_over_by_its_owner_is_trusted_as_it_is_now(place: Place) -> None:
    place.run("flow", "new")
    place.write("solo", "version: 0.2\n")
    assert "it is trusted" in place.run("flow", "new", "--force").stdout
    assert "nothing changed" in place.run("trust", "--show").stdout


@pytest.mark.req("D43")
def test_without_a_place_for_the_record_the_flow_is_made_and_the_reason_said(place: Place) -> None:
    (place.home / ".local").write_text("in the way")
    done = place.run("flow", "new")
    assert done.returncode == 0
    assert "It may not run yet: The record of what you trust" in done.stdout
    assert (place.flows / "solo.yaml").exists()


# list -------------------------------------------------------------------------------------------


def test_an_empty_list_says_how_to_make_the_first(place: Place) -> None:
    done = place.run("flow", "list")
    assert done.returncode == 0
    assert "Make one: agentcanvas flow new" in done.stdout


def test_the_list_names_every_flow_also_a_broken_one(place: Place) -> None:
    place.run("flow", "new", "--from", "team")
    place.write("bad", BAD)
    lines = place.run("flow", "list").stdout.splitlines()
    assert lines[1].split() == ["bad", "4", "errors"]
    assert lines[2].split() == ["team", "4", "manager_worker", "(2r)", "sound"]
    told = json.loads(place.run("flow", "list", "--json").stdout)
    assert [(each["name"], each["sound"]) for each in told] == [("bad", False), ("team", True)]


# show -------------------------------------------------------------------------------------------


def test_show_tells_agents_edges_ends_review_and_checks(place: Place) -> None:
    place.run("flow", "new", "--from", "team")
    said = place.run("flow", "show", "team").stdout
    for words in (
        "agent     role          runtime   works in",
        "edges     planner → coder_a; planner → coder_b",
        "ends      2 rounds, or tests_passed >= 1, or 120 minutes",
        "review    reviewer, at most 3 rounds, then human_review",
        "checks    those found in the project",
        "budgets   60 turns, 240 minutes",
    ):
        assert words in said


def test_show_as_json_has_the_flow_and_what_it_really_runs_with(place: Place) -> None:
    place.run("flow", "new")
    told = json.loads(place.run("flow", "show", "solo", "--json").stdout)
    assert told["flow"]["agents"][0]["id"] == "coder"
    assert told["interactions"][0]["review"]["reviewer"] == "person"
    assert told["file"] == ".agentcanvas/flows/solo.yaml"


def test_show_as_yaml_is_the_file_byte_for_byte_sound_or_not(place: Place) -> None:
    place.write("bad", BAD)
    assert place.run("flow", "show", "bad", "--yaml").stdout == BAD


def test_a_broken_flow_is_not_shown_but_all_its_errors_are(place: Place) -> None:
    place.write("bad", BAD)
    done = place.run("flow", "show", "bad")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 4
    assert "\x1b" not in done.stderr


def test_a_slip_in_a_name_is_told_with_the_name_that_was_meant(place: Place) -> None:
    place.run("flow", "new", "--from", "team")
    done = place.run("flow", "show", "taem")
    assert done.returncode == 1
    assert done.stderr == (
        "agentcanvas: There is no flow taem in .agentcanvas/flows; did you mean team?\n"
    )


# check ------------------------------------------------------------------------------------------


def test_check_says_all_problems_at_once_with_place_fix_and_rule(place: Place) -> None:
    place.write("bad", BAD)
    place.run("flow", "new")
    done = place.run("flow", "check")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        ".agentcanvas/flows/bad.yaml:3:17: skils is not known here; did you mean skills? "
        "[unknown-key]",
        '.agentcanvas/flows/bad.yaml:4:10: "\\x1b[31mred" cannot be an id; use letters, digits, - '
        "and _, without spaces, colons or slashes [id-form]",
        '.agentcanvas/flows/bad.yaml:8:13: there is no agent "codr"; did you mean coder? '
        "[unknown-agent]",
        ".agentcanvas/flows/bad.yaml:8:21: manager_worker needs at least 1 as worker and has "
        "none; say who in roles: {worker: …} [roles]",
        "bad: 4 errors",
        "solo: sound",
    ]


def test_check_names_places_as_they_can_be_opened_from_here(place: Place) -> None:
    place.write("bad", BAD)
    below = place.root / "src"
    below.mkdir()
    said = place.run("flow", "check", "bad", cwd=below).stdout
    assert said.startswith("../.agentcanvas/flows/bad.yaml:3:17: ")


def test_check_takes_names_files_or_all(place: Place) -> None:
    place.run("flow", "new")
    place.write("bad", BAD)
    assert place.run("flow", "check", "solo").returncode == 0
    assert place.run("flow", "check", ".agentcanvas/flows/solo.yaml").returncode == 0
    assert place.run("flow", "check", "--all").returncode == 1
    assert place.run("flow", "check", "--all", "solo").returncode == 2
    assert place.run("flow", "check", "nobody").returncode == 1


def test_warnings_do_not_fail_a_check(place: Place) -> None:
    place.write("idle", "version: 0.2\nagents: [{id: coder}]\n")
    done = place.run("flow", "check", "idle")
    assert done.returncode == 0
    assert ": warning: " in done.stdout
    assert done.stdout.splitlines()[-1] == "idle: sound, 1 warning"


def test_check_as_json_has_every_field_of_every_problem(place: Place) -> None:
    place.write("bad", BAD)
    done = place.run("flow", "check", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["sound"] is False
    assert told["flows"][0]["problems"][0] == {
        "rule": "unknown-key",
        "sentence": "skils is not known here",
        "suggestion": "did you mean skills?",
        "pointer": "/agents/0/skils",
        "severity": "error",
        "file": ".agentcanvas/flows/bad.yaml",
        "line": 3,
        "column": 17,
    }
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"a: [", b"x" * 300_000], ids=["empty", "utf-8", "yaml", "large"]
)
def test_garbage_in_a_file_is_a_problem_with_a_rule(place: Place, content: bytes) -> None:
    place.write("junk", "").write_bytes(content)
    done = place.run("flow", "check", "junk")
    assert done.returncode == 1
    assert re.search(r"junk\.yaml:\d+(:\d+)?: .+ \[[a-z-]+\]", done.stdout)


# bounds -----------------------------------------------------------------------------------------


@pytest.mark.req("D19")
def test_bounds_are_a_table_and_name_what_has_none(place: Place) -> None:
    place.run("flow", "new")
    done = place.run("flow", "bounds", "solo")
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines()[:3]]
    assert rows[0] == ["at", "most", "turns", "messages", "minutes", "tokens"]
    # Two rounds of one task: work and a retry, three times; you review, which is no turn.
    assert rows[1] == ["work", "12", "24", "60", "unbounded"]
    assert rows[2][2:] == ["12", "24", "60", "unbounded"]
    assert "work: no bound on tokens; set budgets.tokens" in done.stdout


@pytest.mark.req("D19")
def test_a_token_budget_is_told_with_what_comes_on_top(place: Place) -> None:
    text = starter("solo").replace("  turns: 20", "  turns: 20\n  messages: 90\n  tokens: 50000")
    place.write("solo", text)
    done = place.run("flow", "bounds", "solo")
    assert "50,000 + one turn of each of up to 1 running agents" in done.stdout
    assert "Without a bound" not in done.stdout
    told = json.loads(place.run("flow", "bounds", "solo", "--json").stdout)
    assert told["total"]["tokens"] == 50_000
    assert told["interactions"][0]["name"] == "work"


def test_a_broken_flow_has_no_bounds(place: Place) -> None:
    place.write("bad", BAD)
    assert place.run("flow", "bounds", "bad").returncode == 1


# The document -----------------------------------------------------------------------------------


def test_the_commands_in_the_document_work_as_written(place: Place) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    assert len(lines) > 5
    place.run("flow", "new", "elsewhere")
    (place.flows / "elsewhere.yaml").rename(place.root / "team.yaml")
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "agentcanvas"
        # A machine may have no confinement, and then the doctor's answer is no.
        fine = {0, 1} if words[1] == "doctor" else {0}
        assert place.run(*words[1:], stdin="y\n").returncode in fine, line
