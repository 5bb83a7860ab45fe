from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.proposals.checks import (
    Check,
    CheckRun,
    EvidenceStatus,
    choose_checks,
    compare,
    detect,
    run_checks,
)
from agentcanvas.proposals.counts import count_tests
from agentcanvas.proposals.model import TestsRun
from tests.proposals.workspaces import Files, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D13")]


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


COUNTED = {
    "pytest": ("F..\n= 1 failed, 5 passed, 2 skipped in 0.12s =\n", TestsRun(5, 1)),
    "pytest, quiet": ("...\n3 passed in 0.01s\n", TestsRun(3, 0)),
    "pytest, long": ("== 3 passed, 1 warning, 2 errors in 61.01s (0:01:01) ==\n", TestsRun(3, 2)),
    "pytest, coloured": (
        "\x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m\n",
        TestsRun(3, 0),
    ),
    "jest": (
        "Test Suites: 1 failed, 1 total\nTests:       1 failed, 5 passed, 6 total\n",
        TestsRun(5, 1),
    ),
    "vitest": (" Test Files  1 passed (1)\n      Tests  1 failed | 5 passed (6)\n", TestsRun(5, 1)),
    "mocha": ("\n  5 passing (8ms)\n  1 failing\n", TestsRun(5, 1)),
    "node": ("# tests 6\n# pass 5\n# fail 1\n# cancelled 0\n", TestsRun(5, 1)),
    "node, spec": ("\u2139 pass 5\n\u2139 fail 0\n", TestsRun(5, 0)),
    "cargo": (
        "test result: ok. 5 passed; 0 failed; 0 ignored;\n\n"
        "test result: FAILED. 1 passed; 2 failed; 0 ignored;\n",
        TestsRun(6, 2),
    ),
    "go -v": ("--- PASS: TestA (0.00s)\n    --- FAIL: TestB/x (0.00s)\nFAIL\n", TestsRun(1, 1)),
    "go": ("ok  \tx/y\t0.01s\n", None),
    "unittest": ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1)\n", TestsRun(3, 2)),
    "unittest, good": ("Ran 5 tests in 0.001s\n\nOK\n", TestsRun(5, 0)),
    "prose": ("I passed 5 tests, 0 failed", None),
    "nothing": ("", None),
}


@pytest.mark.parametrize("case", COUNTED)
def test_counts_are_read_from_the_summary_of_the_runner(case: str) -> None:
    output, counts = COUNTED[case]
    assert count_tests(output) == counts


@given(st.text(), st.sampled_from([output for output, _ in COUNTED.values()]), st.text())
def test_counting_any_output_never_fails(above: str, middle: str, below: str) -> None:
    counts = count_tests(above + middle + below)
    assert counts is None or counts.total >= 0


async def run_here(command: str, tree: Path) -> CheckRun:
    done = await anyio.run_process(
        ["bash", "-c", command], cwd=tree, check=False, stderr=subprocess.STDOUT
    )
    return CheckRun(done.returncode, done.stdout.decode())


UNITTEST = Check("unittest", f"{sys.executable} -m unittest test_it")
HEAD = "import unittest\nclass T(unittest.TestCase):\n"


async def evidence_of(tmp_path: Path, before: str, after: str) -> EvidenceStatus:
    base = write_files(tmp_path / "base", {"test_it.py": before})
    patched = write_files(tmp_path / "patched", {"test_it.py": after})
    evidence = compare(
        "g0",
        [UNITTEST],
        await run_checks([UNITTEST], base, run_here),
        await run_checks([UNITTEST], patched, run_here),
    )
    assert evidence.checks[0].before
    assert evidence.checks[0].before.tests
    assert evidence.tests_run == evidence.checks[0].after.tests
    return evidence.status


GOOD = HEAD + "    def test_a(self): pass\n"
BAD = HEAD + "    def test_a(self): self.fail()\n"


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (BAD, GOOD, EvidenceStatus.PASSED),
        (GOOD, BAD, EvidenceStatus.FAILED),
        (BAD, BAD, EvidenceStatus.RED_BEFORE),
    ],
)
async def test_evidence_compares_base_and_patched_by_real_runs(
    tmp_path: Path, before: str, after: str, status: EvidenceStatus
) -> None:
    assert await evidence_of(tmp_path, before, after) is status


async def test_a_check_may_expect_another_exit_code(tmp_path: Path) -> None:
    check = Check("refuses", "exit 3", expected_exit_code=3)
    results = await run_checks([check], tmp_path, run_here)
    assert results[check].passed


async def test_checks_of_the_same_name_do_not_hide_each_other(tmp_path: Path) -> None:
    checks = [Check("tests", "exit 1"), Check("tests", "exit 0")]
    results = await run_checks(checks, tmp_path, run_here)
    assert compare("g0", checks, {}, results).status is EvidenceStatus.FAILED


def test_a_check_that_was_not_run_is_no_evidence() -> None:
    assert compare("g0", [UNITTEST], {}, {}).status is EvidenceStatus.FAILED


async def test_a_check_that_was_stopped_for_time_has_not_passed(tmp_path: Path) -> None:
    async def too_slow(command: str, tree: Path) -> CheckRun:
        return CheckRun(None, "stopped")

    results = await run_checks([UNITTEST], tmp_path, too_slow)
    assert not results[UNITTEST].passed


async def test_taking_tests_away_is_seen(tmp_path: Path) -> None:
    base = write_files(tmp_path / "base", {"test_it.py": GOOD + "    def test_b(self): pass\n"})
    patched = write_files(tmp_path / "patched", {"test_it.py": GOOD})
    before = await run_checks([UNITTEST], base, run_here)
    after = await run_checks([UNITTEST], patched, run_here)
    evidence = compare("g0", [UNITTEST], before, after, changed=["test_it.py", "sub/conftest.py"])
    assert evidence.fewer_tests
    assert evidence.steered == ("sub/conftest.py",)
    assert "fewer tests" in evidence.sentence
    assert "sub/conftest.py" in evidence.sentence
    assert "green → green" in evidence.sentence
