"""The page on patterns: its pattern comes in, its code runs, its table names every verb."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from agentcanvas.app.patterns import repertoire_here
from agentcanvas.app.trust import trust_now
from agentcanvas.cli import app
from agentcanvas.clock import SystemClock
from agentcanvas.pattern import Pattern, Stage
from agentcanvas.patterns import PATTERNS

pytestmark = pytest.mark.req("I4")

DOCS = Path(__file__).parents[2] / "docs" / "patterns"
PAGE = (DOCS / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PATTERN, TESTING = (text for language, text in BLOCKS if language == "python")


def test_the_pattern_of_the_page_comes_in(tmp_path: Path) -> None:
    folder = tmp_path / ".agentcanvas" / "patterns"
    folder.mkdir(parents=True)
    (folder / "second_opinion.py").write_text(PATTERN)
    trust_now(tmp_path, os.environ, SystemClock())
    here = repertoire_here(tmp_path, os.environ)
    assert not here.refused
    assert "second_opinion" in here.patterns


def test_its_test_passes() -> None:
    names: dict[str, object] = {"__name__": "second_opinion"}
    exec(compile(PATTERN, "page", "exec"), names)
    exec(compile(TESTING, "page", "exec"), names)


def test_every_verb_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| verb |") :]
    verbs = {name for name in vars(Stage) if not name.startswith("_")} - {"ends"}
    named = set(re.findall(r"`([a-z_]+)`", table))
    assert verbs <= named


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".agentcanvas").mkdir()
    monkeypatch.chdir(tmp_path)
    (commands,) = [text for language, text in BLOCKS if language == "sh"]
    for line in commands.splitlines():
        words = shlex.split(line)[1:]
        if words[:2] == ["pattern", "run"]:
            words = ["pattern", "run", "--help"]  # nobody is there to answer
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (line, result.output, result.exception)


@pytest.mark.parametrize("name", [pattern.id for pattern in PATTERNS])
def test_a_page_says_all_that_a_reader_chooses_a_pattern_by(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text("utf-8")
    for part in (
        "**When not to.**",
        "```mermaid\nsequenceDiagram",
        "```mermaid\nflowchart",
        "### Options",
        "### Ends",
        "### At most",
        "### Prompts",
        "### Example",
    ):
        assert part in page, part
    what_for = page.partition("\n\n")[2].partition("**When not to.**")[0]
    assert len(what_for.split()) >= 15


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
def test_every_option_is_explained(pattern: Pattern) -> None:
    explained = pattern.options.__doc__ or ""
    names = [field.name for field in msgspec.structs.fields(pattern.options)]
    assert [name for name in names if f"``{name}``" not in explained] == []


def test_the_choice_of_a_pattern_names_them_all() -> None:
    _, _, choice = PAGE.partition("## Which one?")
    named = set(re.findall(r"`([a-z0-9_]+)`", choice.partition("<!--")[0]))
    assert {pattern.id for pattern in PATTERNS} <= named
