from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.proposals.checks import (
    Check,
    CheckResult,
    CheckRun,
    EvidenceStatus,
    compare,
    run_checks,
)
from agentcanvas.proposals.counts import count_tests
from agentcanvas.proposals.model import TestsRun
from agentcanvas.proposals.steering import Steering
from tests.proposals.workspaces import write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D13")]


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
    "unittest, skipped": ("Ran 5 tests in 0.001s\n\nOK (skipped=2)\n", TestsRun(3, 0)),
    "unittest, all kinds": (
        "Ran 9 tests in 0.001s\n\nFAILED (failures=1, errors=2, skipped=3)\n",
        TestsRun(3, 3),
    ),
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


@pytest.mark.parametrize("case", COUNTED)
@pytest.mark.parametrize("digits", [10, 25, 5000])
def test_a_number_that_nobody_could_keep_is_no_count(case: str, digits: int) -> None:
    output, _ = COUNTED[case]
    counts = count_tests(re.sub(r"\b[1-9]\b(?! (?:total|warning))", "9" * digits, output))
    assert counts is None or 0 <= counts.total < 2**63


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


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("no-such-program", "tests: red → red (command not found)"),
        ("./plain.txt", "tests: red → red (cannot be executed)"),
        ("python3 -m no_such_tool -q", "tests: red → red (no_such_tool is not installed)"),
        ("exit 1", "tests: red → red"),
        ("true", "tests: green → green"),
    ],
)
async def test_a_check_that_could_not_even_begin_is_told_apart(
    tmp_path: Path, command: str, told: str
) -> None:
    write_files(tmp_path, {"plain.txt": "no program"})
    checks = [Check("tests", command)]
    results = await run_checks(checks, tmp_path, run_here)
    assert compare("g0", checks, results, results).sentence == told


async def test_checks_that_fail_more_than_before_say_how_many_did(tmp_path: Path) -> None:
    one = HEAD + "    def test_a(self): self.fail()\n    def test_b(self): pass\n"
    both = one.replace("pass", "self.fail()")
    base = write_files(tmp_path / "base", {"test_it.py": one})
    patched = write_files(tmp_path / "patched", {"test_it.py": both})
    fewest, most = [await run_checks([UNITTEST], tree, run_here) for tree in (base, patched)]
    more = compare("g0", [UNITTEST], fewest, most)
    fewer = compare("g0", [UNITTEST], most, fewest)
    assert more.sentence == "unittest: red → red (2 failed; before: 1 failed)"
    assert fewer.sentence == "unittest: red → red (1 failed)"


def test_the_end_of_what_a_check_printed_comes_in_whole_lines() -> None:
    printed = "\n".join(
        ["begin", *(f"line {number}" for number in range(100)), "\x1b[31mend\x1b[0m"]
    )
    result = CheckResult(passed=False, exit_code=1, output=printed)
    assert result.last_words(100_000) == printed.replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert result.last_words(100_000, 2) == "[100 lines before]\nline 99\nend"
    assert result.last_words(15) == "[100 lines before]\nline 99\nend"


@given(st.text(), st.integers(1, 50), st.none() | st.integers(1, 5))
def test_the_end_of_any_output_is_as_short_as_asked(
    printed: str, most: int, most_lines: int | None
) -> None:
    said = CheckResult(passed=False, exit_code=1, output=printed).last_words(most, most_lines)
    kept = said.partition(" lines before]\n")[2] or said
    assert len(kept) <= most or said.endswith(" lines before]")


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
    steering = [Steering("sub/conftest.py", "sets how tests are run")]
    evidence = compare("g0", [UNITTEST], before, after, steering)
    assert evidence.fewer_tests
    assert evidence.sentence == (
        "unittest: green → green; fewer tests ran than before; the change also edits how"
        " it is checked: sub/conftest.py (sets how tests are run)"
    )


def test_green_tests_do_not_say_how_many_failed() -> None:
    assert CheckResult(passed=True, exit_code=0, tests=TestsRun(3, 0)).detail == ""
    assert CheckResult(passed=False, exit_code=1, tests=TestsRun(3, 2)).detail == "2 failed"
