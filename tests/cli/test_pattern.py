"""``agentcanvas pattern`` as a person uses it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agentcanvas.app.patterns import KNOWN
from agentcanvas.app.trust import trust_now
from agentcanvas.cli import app
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.flows.axes import MaxRounds
from agentcanvas.flows.load import load_flow
from agentcanvas.patterns import PATTERNS
from agentcanvas.runs import events as e
from tests.cli.commanding import Desk
from tests.cli.fake_office import FakeOffice, Played, started

pytestmark = pytest.mark.req("I3", "I4")

IDS = [pattern.id for pattern in PATTERNS]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".agentcanvas").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def give(*words: str) -> Result:
    return CliRunner().invoke(app, ["pattern", *words])


def told(*words: str) -> Any:
    result = give(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.usefixtures("here")
def test_all_twenty_are_listed() -> None:
    assert [each["id"] for each in told("list")] == IDS
    text = give("list").output
    assert all(name in text for name in IDS)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", IDS)
def test_one_is_shown_with_all_that_it_declares(name: str) -> None:
    shown = told("show", name)
    assert shown["template"]["patternId"] == name
    assert [role["name"] for role in shown["roles"]] == [r.name for r in KNOWN[name].roles]
    text = give("show", name).output
    assert shown["label"] in text
    assert "At most" in text


@pytest.mark.usefixtures("here")
def test_a_name_that_is_not_there_is_guessed() -> None:
    result = give("show", "debate_jugde")
    assert isinstance(result.exception, AgentCanvasError)
    assert "did you mean debate_judge" in str(result.exception)


@pytest.mark.req("D43")
def test_one_that_is_refused_is_not_said_to_be_missing(here: Path) -> None:
    folder = here / ".agentcanvas" / "patterns"
    folder.mkdir()
    (folder / "relay.py").write_text("import asyncio\n")
    result = give("show", "relay")
    assert "The pattern relay is refused: it does not run yet." in str(result.exception)


@pytest.mark.req("F1", "I5")
@pytest.mark.parametrize("name", IDS)
def test_a_flow_of_it_is_sound_as_it_is_written(here: Path, name: str) -> None:
    made = told("new-flow", name, "mine")
    flow = load_flow(here / made["file"], KNOWN)
    assert flow.interactions[0].pattern_id == name
    again = give("new-flow", name, "mine")
    assert "There is a flow mine already" in str(again.exception)


@pytest.mark.usefixtures("here")
def test_a_simulation_says_what_comes_of_it_and_what_it_costs() -> None:
    words = ["majority_vote_with_tiebreak", "--runs", "200", "--players", "evaluator=5"]
    found = told("simulate", *words, "--agents", "noisy:0.7")
    assert found["runs"] == 200
    assert found["results"]["right"] > found["results"]["wrong"]
    assert found["turns"] == 5
    assert found == told("simulate", *words, "--agents", "noisy:0.7"), "the same seed"
    text = give("simulate", *words).output
    assert "200 runs with 5 evaluators, 1 judge; noisy:0.7, seed 0" in text
    assert "ended by" in text


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--agents", "loud"], "is no simulated agent"),
        (["--agents", "jugde=perfect"], "Nobody plays jugde here; did you mean judge"),
        (["--players", "juge=2"], "has no role juge; did you mean judge"),
        (["--players", "debater=1"], "needs at least 2 as debater, not 1"),
        (["--players", "judge=2"], "needs 0 to 1 as judge, not 2"),
        (["--players", "judge=0"], "say --players judge=1, or --param variant=consensus"),
        (["--param", 'max_rounds="many"'], "cannot take these params"),
        (["--param", "max_roun=2"], "has no option max_roun; did you mean max_rounds"),
        (["--param", "keep_last_n=2"], "has no option keep_last_n; known here: max_rounds"),
    ],
)
def test_what_cannot_be_simulated_is_said(words: list[str], says: str) -> None:
    result = give("simulate", "debate_judge", "--runs", "2", *words)
    assert isinstance(result.exception, AgentCanvasError)
    assert says in str(result.exception)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("rounds", "turns"), [(1, 3), (3, 7), (5, 11)])
def test_a_simulation_is_set_as_the_options_say(rounds: int, turns: int) -> None:
    found = told("simulate", "debate_judge", "--runs", "2", "--param", f"max_rounds={rounds}")
    assert found["turns"] == turns


@pytest.mark.req("F1", "I5")
def test_a_flow_has_the_players_and_options_that_were_asked_for(here: Path) -> None:
    words = ["--players", "debater=4", "--param", "max_rounds=5", "--param", "seed=7"]
    made = told("new-flow", "debate_judge", *words)
    (interaction,) = load_flow(here / made["file"], KNOWN).interactions
    assert [len(players) for players in interaction.roles.values()] == [4, 1]
    assert interaction.data is not None
    assert interaction.data.termination[0] == MaxRounds(5)
    assert interaction.data.params == {"seed": 7}


@pytest.mark.usefixtures("here")
def test_a_debate_that_needs_no_judge_is_simulated_without_one() -> None:
    words = ["debate_judge", "--runs", "2", "--players", "judge=0", "--param", "variant=consensus"]
    assert "judge" not in told("simulate", *words)["players"]


@pytest.mark.usefixtures("here")
def test_a_large_team_is_told_in_a_line() -> None:
    made = give("new-flow", "majority_vote_with_tiebreak", "--players", "evaluator=50").output
    assert "with evaluator_1 to evaluator_50, judge." in made


@pytest.mark.usefixtures("here")
def test_runs_that_come_to_nothing_are_explained() -> None:
    agents = ["--agents", "failing:1", "--runs", "20"]
    assert "other (one without an answer)" in give("simulate", "debate_judge", *agents).output
    assert "none (it ended without one)" in give("simulate", "contract_net_auction", *agents).output


@pytest.mark.usefixtures("here")
def test_a_system_node_without_a_player_is_built_in() -> None:
    words = ["majority_vote_with_tiebreak", "--runs", "2"]
    assert "judge" in told("simulate", *words)["players"]
    assert "judge" not in told("simulate", *words, "--players", "judge=0")["players"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", [["--players", "judge"], ["--param", "x"]])
def test_a_slip_on_the_command_line_is_explained(words: list[str]) -> None:
    result = give("simulate", "debate_judge", *words)
    assert result.exit_code == 2
    assert "such as" in result.output


def test_a_pattern_runs_without_a_flow_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".agentcanvas").mkdir()
    desk, office = Desk(tmp_path, monkeypatch), FakeOffice(begin=_done)
    desk.give(
        office,
        *("pattern", "run", "debate_judge", "Tabs?", "--command", "my-agent", "--no-input"),
        *("--param", "max_rounds=1"),
    )
    (order,) = office.orders
    assert order.request == "Tabs?"
    assert "patternId: debate_judge" in order.flow_text
    assert order.flow_text.count("command: my-agent") == 3
    assert "rounds: 1\n" in order.flow_text


def _done(run: Played) -> None:
    run.tell(started("Tabs?"))
    end = e.End("judge_decision: for", done=True, result="Tabs")
    run.tell(e.RunEnded(actor="engine", provenance=e.Provenance.SYSTEM, payload=end))


OWN = """
import msgspec
from agentcanvas.pattern import Most, Outcome, Role

class Options(msgspec.Struct, frozen=True):
    pass

class Echo:
    \"\"\"Say it back.\"\"\"
    id = "echo_once"
    options = Options
    roles = (Role("one", "answers"),)
    edges = (("one", "one"),)

    def most(self, size, options):
        return Most(size.ask)

    async def run(self, stage, cast, request, options):
        return Outcome("said", done=True, result=(await stage.ask(cast["one"][0], request)).text)

PATTERN = Echo()
"""


def test_a_pattern_of_yours_is_listed_and_a_refused_one_says_why(
    here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = here / ".agentcanvas" / "patterns"
    folder.mkdir()
    (folder / "echo_once.py").write_text(OWN)
    (folder / "bad.py").write_text("import asyncio\n")
    assert "it does not run yet" in give("list").output
    trust_now(here, os.environ, SystemClock())
    listed = give("list").output
    assert "echo_once" in listed
    assert "bad is refused: line 1 imports asyncio" in listed
    *_, echo_once, bad = told("list")
    assert echo_once["id"] == "echo_once"
    assert bad["id"] == "bad"
    assert bad["refused"].startswith("line 1 imports asyncio")
    assert told("simulate", "echo_once", "--runs", "5")["turns"] == 1
    made = give("new-flow", "echo_once")
    assert "there is no pattern" not in made.output


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", IDS)
def test_what_its_agents_are_asked_can_be_read_word_for_word(name: str) -> None:
    texts = told("show", name)["prompts"]
    assert texts
    text = give("show", name, "--prompts").output
    for file, words in texts.items():
        assert f"# .agentcanvas/prompts/{file}.md" in text
        assert words.splitlines()[0][:60] in text
