"""How many tests passed and failed, read from what a test runner prints.

Only summaries that are unmistakable are read; for the rest there is no count, and the exit code
alone decides. A count never decides anything by itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.model import TestsRun

if TYPE_CHECKING:
    from collections.abc import Callable

TAIL: Final = 200_000
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# No more digits than the store can hold: a test may print any number.
_PYTEST: Final = re.compile(r"^=* ?((?:\d{1,9} [a-z]+(?:, )?)+) in [\d.]+s\b.*$", re.MULTILINE)
_NUMBERED: Final = re.compile(r"\b(\d{1,9}) ([a-z]+)")
_UNITTEST: Final = re.compile(r"^Ran (\d{1,9}) tests? in [\d.]+s$", re.MULTILINE)
_UNITTEST_END: Final = re.compile(r"^(?:FAILED|OK) \((.*)\)$", re.MULTILINE)
_UNITTEST_BAD: Final = re.compile(r"\b(?:failures|errors)=(\d{1,9})\b")
_UNITTEST_SKIPPED: Final = re.compile(r"\bskipped=(\d{1,9})\b")
_CARGO: Final = re.compile(r"^test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed;", re.MULTILINE)
# Blanks before a word are on its line: with \s a page of empty lines would be read once for each.
_GO: Final = re.compile(r"^[ \t]*--- (PASS|FAIL): ", re.MULTILINE)
_JEST: Final = re.compile(r"^Tests:[ \t]+(.{0,200}\d total)$", re.MULTILINE)
_VITEST: Final = re.compile(
    r"^[ \t]*Tests[ \t]+((?:\d{1,9} [a-z]+(?: \| )?)+) \(\d{1,9}\)$", re.MULTILINE
)
_MOCHA: Final = re.compile(r"^[ \t]*(\d{1,9}) (passing|failing)\b", re.MULTILINE)
_NODE: Final = re.compile(r"^(?:#|\u2139) (pass|fail) (\d{1,9})$", re.MULTILINE)


def uncoloured(output: str) -> str:
    """What a terminal would show, in one colour."""
    return _COLOUR.sub("", output)


def count_tests(output: str) -> TestsRun | None:
    """The counts, or None when no known runner summed up."""
    text = uncoloured(output[-TAIL:]).replace("\r\n", "\n")
    found = (reader(text) for reader in _READERS)
    return next((counts for counts in found if counts is not None), None)


def _summed(words: str) -> TestsRun:
    """``3 passed, 1 failed, 2 errors`` in any order."""
    numbers = {word: int(number) for number, word in _NUMBERED.findall(words)}
    failed = sum(numbers.get(word, 0) for word in ("failed", "error", "errors"))
    return TestsRun(passed=numbers.get("passed", 0), failed=failed)


def _last(pattern: re.Pattern[str]) -> Callable[[str], TestsRun | None]:
    def read(text: str) -> TestsRun | None:
        lines = pattern.findall(text)
        return _summed(lines[-1]) if lines else None

    return read


def _cargo(text: str) -> TestsRun | None:
    """One summary a crate and one for the documentation tests."""
    rows = _CARGO.findall(text)
    if not rows:
        return None
    return TestsRun(sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows))


def _go(text: str) -> TestsRun | None:
    """Passing tests are named only with ``-v``; without them there is nothing to count."""
    ends = _GO.findall(text)
    if "PASS" not in ends:
        return None
    return TestsRun(ends.count("PASS"), ends.count("FAIL"))


def _pairs(pattern: re.Pattern[str], good: str, bad: str) -> Callable[[str], TestsRun | None]:
    def read(text: str) -> TestsRun | None:
        counted = dict.fromkeys((good, bad), 0)
        rows = [sorted(row) for row in pattern.findall(text)]  # digits sort before letters
        for number, word in rows:
            counted[word] = int(number)
        return TestsRun(counted[good], counted[bad]) if rows else None

    return read


def _unittest(text: str) -> TestsRun | None:
    ran = _UNITTEST.findall(text)
    if not ran:
        return None
    ends = _UNITTEST_END.findall(text)
    end = ends[-1] if ends else ""
    failed = sum(map(int, _UNITTEST_BAD.findall(end)))
    skipped = sum(map(int, _UNITTEST_SKIPPED.findall(end)))
    return TestsRun(passed=max(int(ran[-1]) - failed - skipped, 0), failed=failed)


_READERS: Final = (
    _last(_PYTEST),
    _last(_JEST),
    _last(_VITEST),
    _cargo,
    _unittest,
    _go,
    _pairs(_MOCHA, "passing", "failing"),
    _pairs(_NODE, "pass", "fail"),
)
