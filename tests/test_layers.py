"""The import contracts hold for the tree as it is, and bite when a violation is planted in a copy.

Several contracts speak of packages that do not exist yet; planting such a package with a violation
shows that it will be held from its first commit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "agentcanvas"
LINT_IMPORTS = Path(sys.executable).parent / "lint-imports"

LAYERS = "Layers: imports go downwards only"
ACYCLIC = "No cycles at any depth"
SURFACE = "The public surface is for users: nothing inside imports it"
PURE_LANGUAGE = "The language does no I/O"
PURE_PATTERNS = "Patterns and flow models do no I/O and meet the world through Stage"
ONE_CLOCK = "Only clock imports time"
PATTERNS = "Patterns are independent of each other"
RUNTIMES = "Runtimes are independent of each other"
COMMANDS = "Runtimes of command line agents are independent of each other"
BROKERS = "Brokers are independent of each other"
CHOSEN = "Brokers, runtimes and server transports are chosen by app alone"

VIOLATIONS = {
    "protocol reaches up to store": (LAYERS, {"protocol/planted.py": "import agentcanvas.store"}),
    "siblings import each other": (
        LAYERS,
        {"web/__init__.py": "import agentcanvas.bridges", "bridges/__init__.py": ""},
    ),
    "the engine imports the agents": (
        LAYERS,
        {"runs/engine.py": "import agentcanvas.agents.host", "agents/host.py": ""},
    ),
    "a module without a layer": (LAYERS, {"drawer.py": ""}),
    "two modules import each other": (
        ACYCLIC,
        {
            "protocol/one.py": "import agentcanvas.protocol.two",
            "protocol/two.py": "import agentcanvas.protocol.one",
        },
    ),
    "a deep cycle": (
        ACYCLIC,
        {
            "agents/runtimes/cli/parts/one.py": "import agentcanvas.agents.runtimes.cli.parts.two",
            "agents/runtimes/cli/parts/two.py": "import agentcanvas.agents.runtimes.cli.parts.one",
        },
    ),
    "a part imports the surface": (
        SURFACE,
        {"store/planted.py": "from agentcanvas import __version__"},
    ),
    "protocol reads files": (PURE_LANGUAGE, {"protocol/planted.py": "import os"}),
    "protocol reads the time": (PURE_LANGUAGE, {"protocol/planted.py": "import time"}),
    "stage verbs draw lots": (PURE_PATTERNS, {"pattern.py": "import random"}),
    "a pattern starts tasks": (PURE_PATTERNS, {"patterns/debate_judge.py": "import asyncio"}),
    "a pattern reads files through a neighbour": (
        PURE_PATTERNS,
        {
            "patterns/debate_judge.py": "import agentcanvas.memory",
            "memory/__init__.py": "import os",
        },
    ),
    "a pattern looks at the clock": (
        PURE_PATTERNS,
        {"patterns/debate_judge.py": "import agentcanvas.clock", "clock.py": ""},
    ),
    "a flow model opens files": (PURE_PATTERNS, {"flows/model.py": "import pathlib"}),
    "store reads the time itself": (ONE_CLOCK, {"store/planted.py": "import time"}),
    "a pattern uses a pattern": (
        PATTERNS,
        {"patterns/one.py": "import agentcanvas.patterns.two", "patterns/two.py": ""},
    ),
    "a runtime uses a runtime": (
        RUNTIMES,
        {
            "agents/runtimes/one.py": "import agentcanvas.agents.runtimes.a2a",
            "agents/runtimes/a2a.py": "",
        },
    ),
    "one CLI uses another": (
        COMMANDS,
        {
            "agents/runtimes/cli/codex.py": "import agentcanvas.agents.runtimes.cli.claude",
            "agents/runtimes/cli/claude.py": "",
        },
    ),
    "a broker uses a broker": (
        BROKERS,
        {
            "hub/brokers/nats.py": "import agentcanvas.hub.brokers.embedded",
            "hub/brokers/embedded.py": "",
        },
    ),
    "the hub picks a broker": (
        CHOSEN,
        {"hub/router.py": "import agentcanvas.hub.brokers.embedded", "hub/brokers/embedded.py": ""},
    ),
    "the host picks a runtime": (
        CHOSEN,
        {
            "agents/host.py": "import agentcanvas.agents.runtimes.script",
            "agents/runtimes/script.py": "",
        },
    ),
    "a command starts a server itself": (
        CHOSEN,
        {"cli/planted.py": "import agentcanvas.web.socket", "web/socket.py": ""},
    ),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--config", ROOT / ".importlinter", "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def plant(files: Mapping[str, str], folder: Path) -> None:
    """Copy the package and put these files into it, with the packages they need."""
    copy = folder / "agentcanvas"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in files.items():
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(copy).parents:
            (copy / parent / "__init__.py").touch()
        path.write_text(f"{text}\n")


def test_the_tree_keeps_every_contract() -> None:
    linted = lint(ROOT / "src")
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_a_planted_violation_breaks_its_contract(violation: str, tmp_path: Path) -> None:
    contract, files = VIOLATIONS[violation]
    plant(files, tmp_path)
    linted = lint(tmp_path)
    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert f"{contract} BROKEN" in linted.stdout


def test_no_module_takes_part_in_an_import_cycle() -> None:
    """Stricter than the contract, which does not compare a package with its own children."""
    graph = grimp.build_graph("agentcanvas", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()
