"""A pattern of an installed package: a wheel's files in a folder, in a process of its own (I4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.test_own_patterns import RELAY
from tests.runs.workspaces import repository

pytestmark = pytest.mark.req("I4", "D4", "D43")

FLOW = """\
version: 0.2
agents:
  - {id: ann, role: member, runtime: {kind: command, command: "echo from ann"}}
  - {id: bob, role: member, runtime: {kind: command, command: "echo from bob"}}
interactions:
  - {id: main, patternId: relay, roles: {runner: [ann, bob]}}
budgets: {turns: 10, minutes: 5}
"""


def installed(site: Path, name: str, text: str, value: str = "") -> None:
    """What an installer leaves behind of a package with one pattern."""
    (site / f"{name}.py").write_text(text)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = f"[agentcanvas.patterns]\n{name} = {value or f'{name}:PATTERN'}\n"
    (info / "entry_points.txt").write_text(points)


class Machine:
    """A place with packages of its own, and a repository."""

    def __init__(self, tmp_path: Path) -> None:
        self.site = tmp_path / "site"
        self.site.mkdir()
        self.root = repository(tmp_path / "repo", {"README.md": "# Hi\n"})
        self._env = {**os.environ, "PYTHONPATH": str(self.site), "HOME": str(tmp_path)}

    def agentcanvas(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("agentcanvas")), *words]
        return subprocess.run(
            command, cwd=self.root, env=self._env, capture_output=True, text=True, check=False
        )

    def refused(self) -> dict[str, str]:
        done = self.agentcanvas("pattern", "list", "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return {each["id"]: each["refused"] for each in told if each.get("refused")}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_is_listed_shown_simulated_checked_and_run_like_one_of_ours(machine: Machine) -> None:
    installed(machine.site, "relay", RELAY)
    listed = json.loads(machine.agentcanvas("pattern", "list", "--json").stdout)
    assert len(listed) == 21
    assert "relay" in {each["id"] for each in listed}
    assert "says it on" in machine.agentcanvas("pattern", "show", "relay").stdout
    simulated = machine.agentcanvas("pattern", "simulate", "relay", "--runs", "20", "--json")
    assert json.loads(simulated.stdout)["runs"] == 20
    (machine.root / "relay.yaml").write_text(FLOW)
    assert machine.agentcanvas("flow", "check", "relay.yaml").returncode == 0
    assert machine.agentcanvas("trust", "relay.yaml", "--yes").returncode == 0
    ran = machine.agentcanvas("run", "relay.yaml", "hello", "--unsafe")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "said on" in ran.stdout
    assert "from bob" in ran.stdout


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("import msgspec", "import asyncio\nimport msgspec", "line 4 imports asyncio"),
        ("import msgspec", "import msgspec\nraise SystemError('no')", "SystemError: no"),
        (
            "        said = request\n",
            "        self.n = getattr(self, 'n', 0) + 1\n        said = str(self.n)\n",
            "it diverges on replay: step 1",
        ),
        (
            "        said = request\n",
            "        while 1: await stage.ask('runner_1', '')\n",
            "ends",
        ),
        ('id = "relay"', 'id = "debate_judge"', "there is a pattern debate_judge already"),
    ],
    ids=["asyncio", "breaks", "diverges", "never ends", "taken"],
)
def test_what_could_not_be_resumed_or_bounded_is_refused_and_the_others_stay(
    machine: Machine, was: str, becomes: str, says: str
) -> None:
    assert was in RELAY
    installed(machine.site, "relay", RELAY.replace(was, becomes))
    refused = machine.refused()
    assert list(refused) == ["relay"]
    assert says in refused["relay"]


def test_one_whose_module_is_gone_is_refused_by_name(machine: Machine) -> None:
    installed(machine.site, "relay", RELAY, "nowhere_at_all:PATTERN")
    assert "nowhere_at_all" in machine.refused()["relay"]
