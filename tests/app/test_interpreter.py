"""No file of the folder one happens to be in becomes a module of a program that we start."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentcanvas.app.interpreter import environment, program
from agentcanvas.app.patterns import repertoire_here
from agentcanvas.app.trust import trust_now
from agentcanvas.clock import SystemClock
from tests.app.test_own_patterns import RELAY
from tests.runs.workspaces import repository

pytestmark = pytest.mark.req("D43")

SOURCE = Path(__file__).parents[2] / "src" / "agentcanvas"
COMMAND = Path(sys.executable).with_name("agentcanvas")
MARKED = "import pathlib\npathlib.Path({!r}).touch()\n"
MODULES = ("agentcanvas/__init__", "anyio", "msgspec", "resource", "typer", "zoneinfo")

SPOKEN_OF = {
    "app/demo.py": 1,  # the demo's own tests, which the last of its facts runs in its own folder
    "app/doctor.py": 1,  # says which it is
    "cli/demo_run.py": 1,  # looks for what lies beside it
    "sandbox/confinements/bubblewrap.py": 2,  # finds it, and names it among what is mounted
}
"""Where an interpreter is named and not started, or started where its folder is ours."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with files that Python would take for modules; each leaves a mark when run."""
    text = MARKED.format(str(tmp_path / "it ran"))
    names = [f"{module}.py" for module in MODULES]
    points = "[agentcanvas.patterns]\ngift = gift:PATTERN\n"
    return repository(
        tmp_path / "clone",
        dict.fromkeys([*names, "gift.py"], text) | {"gift-1.0.dist-info/entry_points.txt": points},
    )


def ran(clone: Path) -> bool:
    return (clone.parent / "it ran").exists()


def test_a_run_in_the_background_starts_no_python_of_the_repository(clone: Path) -> None:
    words = ("run", "look", "--command", "true", "--unsafe", "--detach", "--json")
    done = subprocess.run([COMMAND, *words], cwd=clone, capture_output=True, text=True, check=False)
    folder = clone / ".agentcanvas"
    try:
        assert done.returncode == 0, done.stderr + (folder / "logs" / "serve.log").read_text()
    finally:
        if (folder / "server.json").exists():
            os.kill(json.loads((folder / "server.json").read_text())["pid"], signal.SIGTERM)
    assert not ran(clone)


def test_a_trial_of_a_pattern_starts_no_python_of_the_repository(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = clone / ".agentcanvas" / "patterns" / "relay.py"
    path.parent.mkdir(parents=True)
    path.write_text(RELAY)
    trust_now(clone, os.environ, SystemClock())
    monkeypatch.chdir(clone)
    assert repertoire_here(clone, os.environ).refused == {}
    assert not ran(clone)


@pytest.mark.parametrize("said", ["", ":", ":/nowhere", "/nowhere:", "/a::/b", ".", "./", "..:x"])
def test_a_python_path_that_leads_to_the_current_folder_leads_nowhere(
    clone: Path, said: str
) -> None:
    variables = environment({**os.environ, "PYTHONPATH": said})
    for words in (("-c", "import typer, msgspec"), ("-m", "agentcanvas.app.pattern_trial", "--x")):
        subprocess.run(program(*words), cwd=clone, env=variables, capture_output=True, check=False)
    assert not ran(clone)


def test_whole_paths_and_all_other_variables_stay_as_they_are() -> None:
    said = {"PYTHONPATH": ":/a::b:/c/d:", "HOME": "/h"}
    assert environment(said) == {"PYTHONPATH": "/a:/c/d", "HOME": "/h"}
    assert environment({"HOME": "/h", "PYTHONPATH": "."}) == {"HOME": "/h"}
    assert environment({}) == {}


def test_every_interpreter_in_the_source_is_started_apart_from_its_folder() -> None:
    unsafe = Counter(
        str(file.relative_to(SOURCE))
        for file in sorted(SOURCE.rglob("*.py"))
        for _ in unsafe_in(ast.parse(file.read_text("utf-8")))
    )
    assert dict(unsafe) == SPOKEN_OF


@pytest.mark.parametrize(
    ("text", "is_safe"),
    [
        ("[sys.executable, '-P', '-c', 'x']", True),
        ("(*(sys.executable, '-I', '-S'), 'x')", True),
        ("(str(_interpreter()), '-I', 'x')", True),
        ("[sys.executable, '-c', 'x']", False),
        ("[sys.executable, '-B', '-P', 'x']", False),
        ("['python3', '-m', 'unittest']", False),
        ("['python3.12', '-I', 'x']", True),
        ("run(sys.executable)", False),
        ("(str(_interpreter()), 'x')", False),
        ("runpy.run_path('x')", False),
    ],
)
def test_a_start_that_could_take_such_files_is_found(text: str, *, is_safe: bool) -> None:
    assert (not list(unsafe_in(ast.parse(text)))) is is_safe


def unsafe_in(tree: ast.AST) -> Iterator[ast.AST]:
    """Every mention of an interpreter that neither -I nor -P follows."""
    follows = {
        part: after
        for node in ast.walk(tree)
        if isinstance(node, ast.List | ast.Tuple)
        for each, after in zip(node.elts, node.elts[1:], strict=False)
        for part in ast.walk(each)
    }
    for node in ast.walk(tree):
        match follows.get(node):
            case ast.Constant(value=str(option)) if option.startswith("-"):
                pass
            case _:
                option = ""
        if names_an_interpreter(node, option) and option not in ("-I", "-P"):
            yield node


def names_an_interpreter(node: ast.AST, option: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name("sys"), attr="executable" | "_base_executable"):
            return True
        case ast.Call(func=ast.Name("_interpreter")) | ast.Name("runpy" | "multiprocessing"):
            return True
        case ast.Constant(value=str(said)) if option:  # without one it is any word
            return said.startswith("python") and not said[6:].strip("0123456789.")
    return False
