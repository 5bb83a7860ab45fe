"""``agentcanvas trust``: what a repository brings along is shown, asked about, and remembered."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agentcanvas.app.trust import revoke, standing, trust_now, trust_of
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import ResourceError
from agentcanvas.flows.trust import TrustState
from tests.cli.test_flow import BAD, Place

pytestmark = pytest.mark.req("D43")

FLOW = """\
version: 0.2
agents:
  - {id: coder, runtime: {kind: command, command: [./tools/agent.sh, "{prompt_file}"]}}
interactions:
  - {id: work, patternId: manager_worker, roles: {worker: coder}}
setup: make generated
checks:
  - {name: tests, command: pytest -q}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A clone that brings all kinds of files along."""
    place = Place(tmp_path)
    place.write("theirs", FLOW)
    brought = ("patterns/p.py", "prompts/manager.md", "hooks/h.sh", "../agentcanvas.yaml")
    for name in (f".agentcanvas/{each}" for each in brought):
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return place


def environ(place: Place) -> dict[str, str]:
    return {"HOME": str(place.home)}


def test_everything_that_can_run_is_shown_by_kind_with_its_commands(place: Place) -> None:
    said = place.run("trust", "--show").stdout
    for words in (
        "Flows: they say which agents and commands run, confined",
        ".agentcanvas/flows/theirs.yaml",
        "coder runs: ./tools/agent.sh {prompt_file}",
        "setup runs: make generated",
        "check tests runs: pytest -q",
        "Prompts: what patterns ask agents",
        "Patterns: Python code that runs with all your rights, not confined",
        ".agentcanvas/patterns/p.py",
        "Hooks:",
        "Settings and MCP servers",
        "agentcanvas.yaml",
        "nothing of it runs until you agree",
    ):
        assert words in said
    assert place.trusted() == set()


def test_a_yes_is_recorded_outside_the_repository(place: Place) -> None:
    done = place.run("trust", stdin="y\n")
    assert done.returncode == 0
    assert "Trusted, until one of these files changes." in done.stdout
    assert place.record.exists()
    assert not place.record.is_relative_to(place.root)
    assert trust_of(place.root, environ(place)).may_run
    assert "nothing changed" in place.run("trust").stdout


@pytest.mark.parametrize("answer", ["n\n", "\n", "what?\n"])
def test_anything_but_a_yes_trusts_nothing(place: Place, answer: str) -> None:
    done = place.run("trust", stdin=answer)
    assert done.returncode == 1
    assert "Nothing was trusted" in done.stdout
    assert place.trusted() == set()


def test_where_nobody_can_answer_the_next_step_is_said(place: Place) -> None:
    done = place.run("trust", stdin="")
    assert done.returncode == 1
    assert "agentcanvas trust --yes" in done.stderr
    assert place.run("trust", "--yes").returncode == 0
    assert len(place.trusted()) == 5


def test_what_changed_since_is_marked_and_asked_about_again(place: Place) -> None:
    place.run("trust", "--yes")
    place.write("theirs", FLOW + "# other\n")
    place.write("more", "version: 0.2\n")
    (place.root / ".agentcanvas" / "hooks" / "h.sh").unlink()
    said = place.run("trust", "--show").stdout
    assert "  changed   .agentcanvas/flows/theirs.yaml" in said
    assert "  new       .agentcanvas/flows/more.yaml" in said
    assert "  gone      .agentcanvas/hooks/h.sh" in said
    assert "            .agentcanvas/patterns/p.py" in said
    assert "3 files differ from what you trusted" in said
    assert not trust_of(place.root, environ(place)).may_run


def test_trust_can_be_taken_back(place: Place) -> None:
    place.run("trust", "--yes")
    assert "taken back" in place.run("trust", "--revoke").stdout
    assert place.trusted() == set()
    assert "There was no trust" in place.run("trust", "--revoke").stdout


def test_two_wishes_at_once_are_wrong_usage(place: Place) -> None:
    assert place.run("trust", "--yes", "--show").returncode == 2
    assert place.trusted() == set()


SCRIPTED = """\
version: 0.2
agents:
  - {id: coder, runtime: {kind: script, script: scripts/coder.yaml}}
interactions:
  - {id: work, patternId: not_known_here, roles: {worker: coder}}
"""
SCRIPT = "turns: [{turn: 1, steps: [{run: make it}, {say: done}]}]\n"


def scripted(place: Place) -> None:
    for name, text in {"team.yaml": SCRIPTED, "scripts/coder.yaml": SCRIPT}.items():
        (place.root / name).parent.mkdir(exist_ok=True)
        (place.root / name).write_text(text)


def test_a_flow_that_lies_elsewhere_is_shown_and_trusted_with_its_scripts_when_it_is_named(
    place: Place,
) -> None:
    scripted(place)
    assert "team.yaml" not in place.run("trust", "--show").stdout
    assert "team.yaml" not in place.run("trust", "--yes").stdout
    said = place.run("trust", "team.yaml", "--yes").stdout
    for words in (
        "  new       team.yaml\n              coder runs: scripts/coder.yaml\n",
        "Scripts: what scripted agents say, and commands that they run, confined\n"
        "  new       scripts/coder.yaml\n              runs: make it\n",
        "2 files differ from what you trusted",
    ):
        assert words in said
    assert {"team.yaml", "scripts/coder.yaml"} <= place.trusted()


def test_what_was_trusted_elsewhere_is_looked_at_again_with_all_others(place: Place) -> None:
    scripted(place)
    place.run("trust", "team.yaml", "--yes")
    assert "            scripts/coder.yaml" in place.run("trust", "--show").stdout
    (place.root / "scripts" / "coder.yaml").write_text(SCRIPT + "# more\n")
    assert trust_of(place.root, environ(place)).may_run, "no other flow depends on it"
    said = place.run("trust", "--yes").stdout
    assert "  changed   scripts/coder.yaml" in said
    assert "nothing changed" in place.run("trust", "team.yaml").stdout
    (place.root / "team.yaml").unlink()
    assert "team.yaml" not in place.run("trust").stdout


def test_making_a_flow_leaves_the_trust_in_others_as_it_is(place: Place) -> None:
    scripted(place)
    place.run("trust", "team.yaml", "--yes")
    assert "it is trusted" in place.run("flow", "new", "more").stdout
    assert {"team.yaml", ".agentcanvas/flows/more.yaml"} <= place.trusted()


@pytest.mark.parametrize("name", ["../elsewhere.yaml", "gone.yaml", "nothing"])
def test_a_flow_that_is_not_in_the_workspace_is_not_trusted(place: Place, name: str) -> None:
    (place.root / ".." / "elsewhere.yaml").write_text(FLOW)
    done = place.run("trust", name, "--yes")
    assert done.returncode == 1
    assert "needs no trust" in done.stderr or "There is no flow" in done.stderr
    assert place.trusted() == set()
    assert place.run("trust", "theirs", "--revoke").returncode == 2


def test_a_link_cannot_be_trusted_not_even_with_yes(place: Place, tmp_path: Path) -> None:
    (place.flows / "link.yaml").symlink_to(tmp_path / "elsewhere")
    done = place.run("trust", "--yes")
    assert done.returncode == 1
    assert "link.yaml is not a plain file" in done.stdout
    assert place.trusted() == set()


def test_where_there_is_nothing_nothing_is_asked(tmp_path: Path) -> None:
    done = Place(tmp_path).run("trust")
    assert done.returncode == 0
    assert "Nothing here needs trust" in done.stdout


def test_names_and_texts_of_a_repository_cannot_command_the_terminal(place: Place) -> None:
    place.write("\x1b[2Jgone\n  new  safe", BAD)
    said = place.run("trust", "--show").stdout
    assert "\x1b" not in said
    assert "\n  new  safe" not in said


def test_a_record_that_cannot_be_written_is_one_sentence(place: Place) -> None:
    (place.home / ".local").write_text("in the way")
    done = place.run("trust", "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith("agentcanvas: The record of what you trust")


# Below the command ------------------------------------------------------------------------------


def test_what_was_looked_at_is_trusted_and_not_what_came_after(place: Place) -> None:
    seen = standing(place.root, environ(place)).now
    place.write("slipped_in", FLOW)
    decision = trust_now(place.root, environ(place), VirtualClock(), seen=seen)
    assert decision.state is TrustState.CHANGED
    assert decision.added == (".agentcanvas/flows/slipped_in.yaml",)


def test_many_workspaces_trusted_at_once_are_all_remembered(tmp_path: Path) -> None:
    roots = [tmp_path / f"workspace{number}" for number in range(12)]
    for root in roots:
        root.mkdir()
        (root / "agentcanvas.yaml").write_text("")
    home = {"HOME": str(tmp_path)}
    start = threading.Barrier(len(roots))

    def agree(root: Path) -> None:
        start.wait()
        trust_now(root, home, VirtualClock())

    threads = [threading.Thread(target=agree, args=(root,)) for root in roots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(trust_of(root, home).state is TrustState.TRUSTED for root in roots)


def test_a_workspace_of_another_name_has_trust_of_its_own(place: Place, tmp_path: Path) -> None:
    trust_now(place.root, environ(place), VirtualClock())
    moved = place.root.rename(tmp_path / "moved")
    assert trust_of(moved, environ(place)).state is TrustState.NEVER_TRUSTED
    assert not revoke(moved, environ(place))


def test_without_a_home_there_is_no_place_for_trust(place: Place) -> None:
    with pytest.raises(ResourceError, match="set HOME"):
        trust_of(place.root, {})
