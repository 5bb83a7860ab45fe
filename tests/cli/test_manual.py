"""What ``--help`` says, as somebody reads it who has never seen the program."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from agentcanvas import cli
from agentcanvas.cli import COMMANDS, app
from agentcanvas.cli.examples import EXAMPLES
from agentcanvas.cli.manual import GROUPS

WIDTH = 80


def every_command() -> Iterator[tuple[str, ...]]:
    whole: Any = typer.main.get_command(app)
    context = whole.make_context("agentcanvas", [], resilient_parsing=True)
    yield ()
    for name in COMMANDS:
        yield (name,)
        for below in getattr(whole.get_command(context, name), "commands", {}):
            yield (name, below)


ALL = tuple(every_command())


@contextmanager
def _command(given: list[str]) -> Iterator[tuple[Any, list[str]]]:
    """The command that a line calls, and what is left for it."""
    command: Any = typer.main.get_command(app)
    with command.make_context("agentcanvas", [], resilient_parsing=True) as context:
        while (below := given and command.get_command(context, given[0])) is not None and below:
            command, given = below, given[1:]
            if not hasattr(command, "commands"):
                break
        yield command, given


def help_of(*words: str) -> str:
    done = CliRunner(env={"COLUMNS": str(WIDTH), "NO_COLOR": "1"}).invoke(app, [*words, "--help"])
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_speaks_in_words_and_fits_a_terminal(words: tuple[str, ...]) -> None:
    said = help_of(*words)
    usage = said.strip().splitlines()[0]
    assert not re.search(r"<[a-z]", said)
    assert not re.search(r"\{|\[\[", usage)
    assert all(len(line) <= WIDTH for line in said.splitlines())
    assert usage.strip().startswith(" ".join(["Usage: agentcanvas", *words]))


@pytest.mark.parametrize("words", ALL[1:], ids=" ".join)
def test_completion_is_offered_where_it_works_and_nowhere_else(words: tuple[str, ...]) -> None:
    assert "--install-completion" in help_of()
    assert "--install-completion" not in help_of(*words)


@pytest.mark.parametrize("words", ALL[1:], ids=" ".join)
def test_every_help_ends_with_an_example_that_its_command_takes(words: tuple[str, ...]) -> None:
    said = help_of(*words)
    assert "\n Example" in said
    for line in EXAMPLES[" ".join(words)]:
        assert f"   agentcanvas {line}\n" in said
        given = shlex.split(line.partition(" > ")[0], comments=True)
        with _command(given) as (command, rest):
            command.make_context("agentcanvas", rest)


def test_every_example_belongs_to_a_command() -> None:
    assert set(EXAMPLES) == {" ".join(words) for words in ALL[1:]}


def test_every_command_stands_under_a_heading() -> None:
    said = help_of()
    for heading in GROUPS:
        assert f"─ {heading} ─" in said


def test_every_command_there_is_can_be_called() -> None:
    files = Path(cli.__file__).parent.glob("*.py")
    made = {file.stem for file in files if "\napp = typer.Typer(" in file.read_text()}
    assert made - {"__init__"} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_its_own_help_says_first(name: str) -> None:
    _, sentence = COMMANDS[name]
    assert sentence in " ".join(help_of(name).split())


def test_the_list_of_commands_imports_none_of_them() -> None:
    look = "from agentcanvas.cli import app; app(['--help'])"
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", look], capture_output=True, text=True, check=True
    )
    assert "doctor" in shown.stdout
    imported = re.findall(r"agentcanvas\.cli\.(\w+)", shown.stderr)
    assert imported == ["manual"]


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (("run",), "[OPTIONS] [FLOW] [REQUEST]"),
        (("review",), "[OPTIONS] [RUN] [TASK]"),
        (("transcript",), "[OPTIONS] [RUN] AGENT"),
        (("attach",), "[OPTIONS] [RUN] AGENT"),
        (("flow", "check"), "[OPTIONS] [NAME]..."),
        (("agents", "test"), "[OPTIONS] CLI"),
    ],
)
def test_the_usage_line_is_what_is_typed(words: tuple[str, ...], usage: str) -> None:
    assert help_of(*words).strip().splitlines()[0].strip().endswith(usage)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("report", "--format", "pdf"), "'pdf' is not one of 'md', 'json', 'html'."),
        (("run", "--parallel", "0"), "it should be greater than or equal to 1"),
        (("run", "--parallel", "many"), "it should be a valid integer"),
        (("flow", "new", "--from", "band"), "'band' is not one of 'solo', 'team'."),
    ],
)
def test_what_is_wrong_with_a_value_is_said_in_words(
    words: tuple[str, ...], complaint: str
) -> None:
    done = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, list(words))
    assert done.exit_code == 2
    said = next(line for line in done.output.splitlines() if "Invalid value" in line)
    assert said.strip("│ ") == f"Invalid value for '{words[-2]}': {complaint}"


def test_completion_knows_the_commands_and_their_options() -> None:
    def completed(typed: str, position: int) -> list[str]:
        env = {
            "COMP_WORDS": typed,
            "COMP_CWORD": str(position),
            "_AGENTCANVAS_COMPLETE": "complete_bash",
        }
        done = CliRunner(env=env).invoke(app, prog_name="agentcanvas")
        return done.output.split()

    assert completed("agentcanvas und", 1) == ["undo"]
    assert completed("agentcanvas flow b", 2) == ["bounds"]
    assert completed("agentcanvas run --plan", 2) == ["--plan-only"]
