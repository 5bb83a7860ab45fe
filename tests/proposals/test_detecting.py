from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.proposals.checks import Check
from agentcanvas.proposals.detecting import choose_checks, detect
from tests.proposals.workspaces import Files, write_files

pytestmark = pytest.mark.req("D13")

UNITTEST = "import unittest\n\n\nclass T(unittest.TestCase): ...\n"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({}, []),
        ({"README.md": "run the tests"}, []),
        ({"tests/test_a.py": ""}, ["pytest"]),
        ({"test_a.py": ""}, ["pytest"]),
        ({"pytest.ini": ""}, ["pytest"]),
        ({"conftest.py": ""}, ["pytest"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["pytest"]),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, []),
        ({"pyproject.toml": "tool = 1\n"}, []),
        ({"pyproject.toml": "not toml ["}, []),
        ({"setup.cfg": "[tool:pytest]\n"}, ["pytest"]),
        ({"tox.ini": "[pytest]\n"}, ["pytest"]),
        ({"package.json": '{"scripts": {"test": "vitest run"}}'}, ["npm test"]),
        ({"package.json": '{"scripts": {"test": "echo no test specified && exit 1"}}'}, []),
        ({"package.json": '{"scripts": {"build": "tsc"}}'}, []),
        ({"package.json": '{"scripts": []}'}, []),
        ({"package.json": "{"}, []),
        ({"Cargo.toml": ""}, ["cargo test"]),
        ({"go.mod": "module x\n"}, ["go test"]),
        ({"Makefile": "all:\n\techo\ntest: all\n\techo\n"}, ["make test"]),
        ({"Makefile": "test := 1\n"}, []),
        ({"Makefile": "test:\n", "go.mod": ""}, ["go test"]),
        ({"conftest.py": "", "package.json": '{"scripts":{"test":"x"}}'}, ["pytest", "npm test"]),
    ],
)
def test_checks_are_found_where_a_newcomer_would_look(
    tmp_path: Path, files: Files, names: list[str]
) -> None:
    write_files(tmp_path, files)
    assert [check.name for check in detect(tmp_path)] == names


def test_declared_checks_come_before_detected_ones(tmp_path: Path) -> None:
    write_files(tmp_path, {"go.mod": ""})
    assert [check.name for check in choose_checks([], tmp_path)] == ["go test"]
    chosen = choose_checks([Check("lint", "ruff check")], tmp_path)
    assert chosen == (Check("lint", "ruff check", declared=True),)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"test_a.py": UNITTEST}, "python3 -m unittest discover"),
        ({"tests/test_a.py": UNITTEST}, "python3 -m unittest discover -s tests"),
        (
            {"tests/test_a.py": UNITTEST, "tests/__init__.py": ""},
            "python3 -m unittest discover -s tests -t .",
        ),
        ({"test_a.py": UNITTEST, "test_b.py": "import pytest\n"}, "python3 -m pytest"),
        ({"test_a.py": "import unittest\n\n\ndef test_a(): ...\n"}, "python3 -m pytest"),
        ({"test_a.py": UNITTEST, "conftest.py": ""}, "python3 -m pytest"),
        ({"test_a.py": UNITTEST, "pyproject.toml": "[tool.pytest]\n"}, "python3 -m pytest"),
        ({"test_a.py": "x = 1\n"}, "python3 -m pytest"),
    ],
)
def test_tests_that_need_no_pytest_are_run_without_it(
    tmp_path: Path, files: Files, command: str
) -> None:
    write_files(tmp_path, files)
    assert [check.command for check in detect(tmp_path)] == [command]


def test_the_projects_own_environment_runs_its_tests(tmp_path: Path) -> None:
    write_files(tmp_path, {"conftest.py": ""})
    (check,) = detect(tmp_path, ".venv/bin/python")
    assert check == Check("pytest", ".venv/bin/python -m pytest")
