"""What a check starts is read from its command as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.proposals.invocation import invocation_of

pytestmark = pytest.mark.req("D13")


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("./run-tests.sh", {"run-tests.sh"}),
        ("python3 tests/run.py --all", {"python3", "tests/run.py"}),
        ("node t.js", {"node", "t.js"}),
        ("CI=1 timeout 60 bash -e ci/test.sh", {"timeout", "bash", "ci/test.sh"}),
        ("make build && ./check", {"make", "check"}),
        ("sh -c 'python3 tests/run.py'", {"sh", "python3", "tests/run.py"}),
        ("if true; then ./a.sh; fi", {"a.sh"}),
        ("uv run tests/run.py", {"uv", "tests/run.py"}),
        (". ./env.sh; pytest", {"env.sh", "pytest"}),
        ("! ./a.sh", {"a.sh"}),
        ("echo 'an open quote", {"echo"}),
    ],
)
def test_programs_are_what_a_shell_would_start(command: str, programs: set[str]) -> None:
    assert programs <= invocation_of([command], {}).programs


def test_options_and_their_values_are_not_started() -> None:
    found = invocation_of(["python3 -W ignore -m pytest -q tests/test_a.py"], {})
    assert "pytest" in found.modules
    assert "tests/test_a.py" not in found.programs


def test_a_module_is_named_by_its_first_part() -> None:
    assert "unittest" in invocation_of(["python3 -m unittest.main"], {}).modules


@pytest.mark.parametrize(
    "command",
    [
        "pytest -c my.file",
        "make -f ./my.file test",
        "node --require ./my.file t.js",
        "jest --config=my.file",
        "mypy --config-file my.file",
    ],
)
def test_files_that_an_option_names_as_settings_are_found(command: str) -> None:
    assert "my.file" in invocation_of([command], {}).settings


def test_scripts_of_a_package_are_followed() -> None:
    scripts = {
        "pretest": "node before.js",
        "test": "npm run unit",
        "unit": "node t.js",
        "build": "node build.js",
    }
    programs = invocation_of(["npm test"], scripts).programs
    assert {"before.js", "t.js"} <= programs
    assert "build.js" not in programs
    assert "t.js" not in invocation_of(["make test"], scripts).programs


def test_scripts_that_start_each_other_come_to_an_end() -> None:
    scripts = {"test": "npm run a", "a": "npm run b && npm test", "b": "npm run a"}
    assert "npm" in invocation_of(["npm test"], scripts).programs


@pytest.mark.parametrize("command", ["cd web && npm test", "npm --prefix web test", "make -C web"])
def test_a_folder_that_is_entered_counts_as_well(command: str) -> None:
    assert {"", "web"} <= invocation_of([command], {}).folders


@given(st.lists(st.text()), st.dictionaries(st.text(), st.text()))
def test_any_words_are_read(commands: list[str], scripts: dict[str, str]) -> None:
    invocation_of(commands, scripts)
