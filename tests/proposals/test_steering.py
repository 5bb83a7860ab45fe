"""A change that also edits how it is checked is told so, with a reason a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.proposals import steering as module
from agentcanvas.proposals.demands import LOOSENED
from agentcanvas.proposals.steering import (
    BESIDE_A_SCRIPT,
    GIVEN_TO_A_CHECK,
    IN_PLACE_OF_A_TOOL,
    IN_PLACE_OF_PYTHON,
    RUN_BY_A_CHECK,
    Steering,
    steering_of,
    told,
)
from tests.proposals.workspaces import Files, diff

pytestmark = pytest.mark.req("D13", "R1")


def reasons(
    changed: list[str],
    command: str = "true",
    *,
    scripts: dict[str, str] | None = None,
    new: bool = True,
) -> dict[str, str]:
    found = steering_of(b"", changed, [command], scripts=scripts or {}, is_new=lambda _: new)
    return {each.path: each.reason for each in found}


SETTINGS = {
    "Python's tests": "conftest.py tests/unit/conftest.py pytest.ini .pytest.toml pyproject.toml"
    " setup.cfg tox.ini noxfile.py x.dist-info/entry_points.txt PyProject.toml",
    "Python starts": "sitecustomize.py usercustomize.py src/x.pth sitecustomize/__init__.py",
    "Python's test tools": "unittest/__main__.py unittest.py _pytest/config.py pytest.py pluggy.py"
    " pytest_cov.py packaging/__init__.py",
    "JavaScript's tests": "package.json web/package.json .npmrc .yarnrc .yarnrc.yml .pnp.cjs"
    " .pnpmfile.cjs jest.config.js jest.setup.ts vitest.config.mts vitest.workspace.ts .mocharc.yml"
    " karma.conf.js babel.config.json .babelrc src/setupTests.ts __mocks__/fs.js tsconfig.json",
    "Rust's tests": "Cargo.toml .cargo/config.toml build.rs rust-toolchain .config/nextest.toml",
    "Go's tests": "go.mod go.work go.env vendor/github.com/x/assert/assert.go",
    "holds the commands": "Makefile GNUmakefile makefile rules/a.mk justfile Taskfile.yml",
    "built and run": "CMakeLists.txt pom.xml gradlew phpunit.xml build.gradle.kts .rspec",
    "version of a tool": ".tool-versions .python-version mise.toml",
    "variables": ".env .env.test",
    "a linter": "mypy.ini ruff.toml .eslintrc.json eslint.config.mjs .golangci.yml",
}


@pytest.mark.parametrize("words", SETTINGS)
def test_settings_of_tools_are_told_by_their_names(words: str) -> None:
    paths = SETTINGS[words].split()
    found = reasons(paths)
    assert list(found) == paths
    assert all(words in reason for reason in found.values()), found


def test_other_files_steer_nothing() -> None:
    paths = [
        "app.py",
        "src/unittest.py",
        "docs/index.md",
        "lib/vendor/x.go",
        "src/jest.ts",
        "a/package.jsonl",
    ]
    assert (
        reasons([*paths, "tests/test_new.py", "email/templates/a.html"], "python3 -m pytest") == {}
    )


@pytest.mark.parametrize(
    ("command", "path", "reason"),
    [
        ("python3 -m mytool", "mytool/__main__.py", IN_PLACE_OF_A_TOOL),
        ("python3 -m mytool", "mytool.py", IN_PLACE_OF_A_TOOL),
        ("python3 -m mytool.sub", "MyTool.py", IN_PLACE_OF_A_TOOL),
        ("cd sub && python3 -m mytool", "sub/mytool.py", IN_PLACE_OF_A_TOOL),
        ("nox -s tests", "nox.py", IN_PLACE_OF_A_TOOL),
        ("python3 -m unittest", "argparse.py", IN_PLACE_OF_PYTHON),
        ("python3 -m unittest", "json/__init__.py", IN_PLACE_OF_PYTHON),
        ("python3 tests/run.py", "tests/json.py", IN_PLACE_OF_PYTHON),
        ("./run-tests.sh", "run-tests.sh", RUN_BY_A_CHECK),
        ("python3 tests/run.py", "tests/run.py", RUN_BY_A_CHECK),
        ("cd web && node t.js", "web/t.js", RUN_BY_A_CHECK),
        ("npm test", "t.js", RUN_BY_A_CHECK),
        ("mytool --config my.cfg", "my.cfg", GIVEN_TO_A_CHECK),
    ],
)
def test_what_a_check_starts_is_told(command: str, path: str, reason: str) -> None:
    assert reasons([path], command, scripts={"test": "node t.js"}) == {path: reason}


def test_what_a_script_of_tests_imports_is_told_and_what_it_tests_is_not() -> None:
    assert reasons(["tests/help.py"], "python3 tests/run.py", new=False) == {
        "tests/help.py": BESIDE_A_SCRIPT
    }
    assert reasons(["tests/help.py"], "python3 tests/run.py", new=True) == {}
    assert reasons(["app.py"], "python3 run.py", new=False) == {}


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("pytest tests/test_a.py", "tests/test_a.py"),
        ("grep -q hello greeting.txt", "greeting.txt"),
        ("test ! -e app.py && mypy --strict app.py", "app.py"),
    ],
)
def test_what_a_check_looks_at_is_what_it_judges(command: str, path: str) -> None:
    assert reasons([path], command, new=False) == {}


def test_a_module_of_the_users_that_is_called_like_one_of_python_may_change() -> None:
    assert reasons(["calendar.py"], "python3 -m pytest", new=False) == {}


def test_tests_that_demand_less_are_among_them(tmp_path: Path) -> None:
    before: Files = {"test_a.py": "def test_a():\n    assert f() == 1\n"}
    patch = diff(tmp_path, before, {"test_a.py": "def test_a():\n    pass\n"})
    found = steering_of(patch, ["test_a.py"], ["pytest"], scripts={}, is_new=lambda _: False)
    assert found == (Steering("test_a.py", LOOSENED),)


def test_people_are_told_the_first_files_of_each_reason() -> None:
    found = [Steering(f"vendor/{number}.go", "is one") for number in range(9)]
    most = module._MOST_NAMED
    names = ", ".join(each.path for each in found[:most])
    assert (
        told([*found, Steering("b", "is two")])
        == f"{names} and {9 - most} more (is one); b (is two)"
    )
