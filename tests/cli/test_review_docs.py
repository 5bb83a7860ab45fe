"""docs/review.md says what is so: its commands, its keys, its verdicts."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from agentcanvas.cli import app
from agentcanvas.proposals.choosing import chosen_in
from agentcanvas.proposals.remarks import Remarks

pytestmark = pytest.mark.req("U2", "U5")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "review.md").read_text("utf-8")
ACTIONS = (ROOT / "ui" / "src" / "views" / "review" / "ProposalView.tsx").read_text("utf-8")


def commands() -> list[list[str]]:
    (block,) = re.findall(r"```\n(agentcanvas.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_its_commands_have_these_options(words: list[str]) -> None:
    told = CliRunner().invoke(app, [words[0], "--help"], env={"COLUMNS": "200"}).output
    options = [word for word in words if word.startswith("-")]
    assert [option for option in options if option not in told] == []


def test_its_table_holds_every_key_of_the_view() -> None:
    table = re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE)
    told = {key for cell in table for key in re.findall(r"`([^`]+)`", cell)}
    told |= set(re.findall(r"`([\[\]])`", PAGE))
    keys = {key for held in re.findall(r'keys: "([^"]+)"', ACTIONS) for key in held.split()}
    keys |= set(re.findall(r'give\("\w+", "(\w)"\)', ACTIONS))
    assert keys - told == set()
    assert len(keys) > 12


def test_its_verdict_is_one() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    verdict = json.loads(block)
    (remark,) = msgspec.convert(verdict["comments"], Remarks)
    assert remark.line == 12
    (part,) = re.findall(r"lands: `(\[.*?\])`", PAGE)
    assert [one.path for one in chosen_in({"choose": json.loads(part)})] == ["a.py", "b.py"]
