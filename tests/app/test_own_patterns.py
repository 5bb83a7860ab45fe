"""A user's own patterns come in by the same door, and those that could not be resumed do not."""

from __future__ import annotations

import importlib.util
import os
import py_compile
from pathlib import Path

import pytest

from agentcanvas.app import own_patterns
from agentcanvas.app.patterns import infos_here, repertoire_here
from agentcanvas.app.trust import trust_now
from agentcanvas.clock import SystemClock
from agentcanvas.errors import FlowError
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.emit import lines
from agentcanvas.flows.subgraph import flow_of
from agentcanvas.runs.repertoire import Repertoire

pytestmark = pytest.mark.req("I4", "D4", "D43")

RELAY = '''
"""relay: one after the other says it on."""

import msgspec

from agentcanvas.pattern import Ends, Most, Outcome, Role


class Options(msgspec.Struct, frozen=True):
    times: int = 1


class Relay:
    """Say it on."""

    id = "relay"
    options = Options
    roles = (Role("runner", "says it on", least=2, most=None),)
    topologies = ("pipeline",)
    ends = Ends(rounds=2)

    def most(self, size, options):
        return Most(size.players["runner"] * options.times * size.ask)

    async def run(self, stage, cast, request, options):
        said = request
        for runner in cast["runner"] * options.times:
            said = (await stage.ask(runner, said)).text
            stage.keep(said)
        return Outcome("said on", done=True, result=said)


PATTERN = Relay()
'''


def here(root: Path, text: str, *, trusted: bool = True) -> Repertoire:
    folder = root / ".agentcanvas" / "patterns"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "relay.py").write_text(text)
    if trusted:
        trust_now(root, os.environ, SystemClock())
    return repertoire_here(root, os.environ)


def test_a_pattern_of_yours_is_one_like_ours(tmp_path: Path) -> None:
    repertoire = here(tmp_path, RELAY)
    assert not repertoire.refused
    text = lines(flow_of(repertoire.info("relay")), 0)
    flow = check(read_document(text.encode(), "f.yaml"), repertoire.infos).sound()
    assert bounds(flow, repertoire.infos).total.turns == 2
    assert len(repertoire.patterns) == 21


def test_it_does_not_run_before_it_is_trusted(tmp_path: Path) -> None:
    repertoire = here(tmp_path, RELAY, trusted=False)
    assert "agentcanvas trust" in repertoire.refused["relay"]
    with pytest.raises(FlowError, match="relay is refused: it does not run yet"):
        repertoire.pattern("relay")


def test_what_python_compiled_of_it_before_is_not_taken_for_it(tmp_path: Path) -> None:
    here(tmp_path, RELAY)
    other = tmp_path / "other.py"
    other.write_text(RELAY.replace('id = "relay"', 'id = "another"'))
    path = tmp_path / ".agentcanvas" / "patterns" / "relay.py"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compiled = importlib.util.cache_from_source(str(path))
    py_compile.compile(str(other), compiled, invalidation_mode=unchecked)
    repertoire = repertoire_here(tmp_path, os.environ)
    assert "relay" in repertoire.infos
    assert "another" not in repertoire.infos


def test_what_was_trusted_is_what_is_tried_and_what_runs(tmp_path: Path) -> None:
    changing = """
with open(__file__, "r+") as file:
    said = file.read()
    file.seek(0)
    file.write(said.replace("relay", "OTHER"))
"""
    repertoire = here(tmp_path, RELAY + changing)
    written = (tmp_path / ".agentcanvas" / "patterns" / "relay.py").read_text()
    assert "OTHER" in written
    assert "relay" in repertoire.infos
    assert "OTHER" not in repertoire.infos
    assert "agentcanvas trust" in repertoire_here(tmp_path, os.environ).refused["relay"]


def test_what_was_looked_at_is_what_python_reads_in_whatever_letters(tmp_path: Path) -> None:
    hidden = "# coding: utf-7\n" + RELAY.replace(
        "import msgspec", "import msgspec\n#+AAo-import os"
    )
    assert "imports os" in here(tmp_path, hidden).refused["relay"]


def test_a_file_beside_a_pattern_is_no_module_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".agentcanvas" / "patterns"
    folder.mkdir(parents=True)
    (folder / "helper.py").write_text("")
    monkeypatch.chdir(folder)
    refused = here(tmp_path, RELAY.replace("import msgspec", "import msgspec\nimport helper"))
    assert "No module named 'helper'" in refused.refused["relay"]


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("import msgspec", "import asyncio\nimport msgspec", "line 4 imports asyncio"),
        ("import msgspec", "import msgspec\nfrom time import time", "line 5 imports time"),
        (
            "import msgspec",
            "import msgspec\n__import__('time')",
            "line 5 imports builtins.__import__",
        ),
        ("import msgspec", "import msgspec (", "it is not Python"),
        ("import msgspec", "import msgspec\nimport nowhere_at_all", "ModuleNotFoundError"),
        ("PATTERN = Relay()", "", "it defines no PATTERN"),
        ('id = "relay"', 'id = "debate_judge"', "there is a pattern debate_judge already"),
        ("def most(", "def mist(", "most"),
        (
            "        said = request\n",
            "        yield\n        said = request\n",
            "'return' with value",
        ),
        (
            "        said = request\n",
            "        self.n = getattr(self, 'n', 0) + 1\n        said = str(self.n)\n",
            "it diverges on replay: step 1",
        ),
        (
            "        said = request\n",
            "        said = ' '.join({request, 'a', 'b', 'c', 'd', 'e', 'f', 'g'})\n",
            "step 1 was ask 'runner_1', then the same in other words; a set has another order",
        ),
        (
            'cast["runner"] *',
            "tuple(set(cast['runner'])) *",
            "it diverges on replay: step 1 was ask",
        ),
        ("* options.times:", "* options.times * 9:", "declares at most 2"),
        (
            "        said = request\n",
            "        while 1: await stage.ask('runner_1', '')\n",
            "ends",
        ),
    ],
    ids=lambda value: value[:24].strip() if isinstance(value, str) else "",
)
def test_what_could_not_be_resumed_or_bounded_is_refused_by_name(
    tmp_path: Path, was: str, becomes: str, says: str
) -> None:
    assert was in RELAY
    repertoire = here(tmp_path, RELAY.replace(was, becomes))
    assert says in repertoire.refused["relay"]
    assert len(repertoire.patterns) == 20, "everything else goes on"


def test_one_that_waits_for_nothing_and_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_patterns, "_TRIAL_S", 3)
    stuck = RELAY.replace("import msgspec", "import msgspec\ninput_ = open")
    stuck = stuck.replace("        said = request\n", "        input_('pipe').read()\n")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    assert "it never ends" in here(tmp_path, stuck).refused["relay"]


@pytest.mark.req("I5")
def test_a_flow_that_names_a_refused_one_is_told_why_and_not_that_it_is_unknown(
    tmp_path: Path,
) -> None:
    here(tmp_path, RELAY.replace("import msgspec", "import asyncio\nimport msgspec"))
    flow = """\
version: 0.2
agents: [{id: ann, role: member}, {id: bob, role: member}]
interactions: [{id: i1, patternId: relay, roles: {runner: [ann, bob]}}]
"""
    (problem,) = check(
        read_document(flow.encode(), "f.yaml"), infos_here(tmp_path, os.environ)
    ).errors
    assert str(problem).startswith('f.yaml:3:36: the pattern "relay" is refused: line 4 imports')


def test_one_that_computes_for_ever_is_refused_when_it_has_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_patterns, "_TRIAL_S", 300)  # what others compute does not count
    loop = RELAY.replace("        said = request\n", "        while True: pass\n")
    refused = here(tmp_path, loop).refused["relay"]
    assert refused == "it never ends: a trial with simulated agents took more than 5 s of computing"


def test_an_edit_while_it_is_open_changes_nothing_that_is_open(tmp_path: Path) -> None:
    repertoire = here(tmp_path, RELAY)
    text = lines(flow_of(repertoire.info("relay")), 0)
    flow = check(read_document(text.encode(), "f.yaml"), repertoire.infos).sound()
    before = repertoire.fingerprint(flow)
    edited = here(tmp_path, RELAY.replace("Say it on.", "Say it on!"))
    assert repertoire.fingerprint(flow) == before
    assert edited.fingerprint(flow) != before, "a run begun with the other is not gone on with"


def test_a_prompt_of_yours_goes_before_ours_once_it_is_trusted(tmp_path: Path) -> None:
    prompts = tmp_path / ".agentcanvas" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "debate_judge.argue.md").write_text("Argue like a pirate: {request}\n")
    facts = {"request": "Tabs?"}
    assert "pirate" not in repertoire_here(tmp_path, os.environ).words.fill(
        "debate_judge.argue", facts
    )
    trust_now(tmp_path, os.environ, SystemClock())
    words = repertoire_here(tmp_path, os.environ).words
    assert words.fill("debate_judge.argue", facts) == "Argue like a pirate: Tabs?"
    assert repertoire_here(tmp_path, os.environ).odd_prompts == ()


def test_a_prompt_that_nobody_reads_or_fills_in_is_told(tmp_path: Path) -> None:
    prompts = tmp_path / ".agentcanvas" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "debate_judge.arge.md").write_text("Argue: {request}\n")
    (prompts / "debate_judge.judge.md").write_text("Decide {question}. As JSON: {}\n")
    trust_now(tmp_path, os.environ, SystemClock())
    unread, gap = repertoire_here(tmp_path, os.environ).odd_prompts
    assert "debate_judge.arge.md is read by nobody; did you mean debate_judge.argue?" in unread
    assert gap.endswith(
        "nobody fills in {question}; what can be filled in is {request}, {transcript}"
    )
