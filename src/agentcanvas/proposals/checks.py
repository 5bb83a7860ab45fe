"""Evidence: what the checks say before a patch and after it (D13).

Which checks there are is for ``detecting`` or a flow to say. Where and how a command runs is the
caller's: a ``Runner`` gets a command and a tree, both trees at the workspace's own path where that
can be had (D9).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from agentcanvas.proposals.counts import count_tests, uncoloured
from agentcanvas.proposals.model import TestsRun, Wire
from agentcanvas.proposals.steering import Steering, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

OUTPUT_KEPT: Final = 20_000
# What a shell exits with when there is nothing to run; a person mends that, not the worker.
_NEVER_RAN: Final[Mapping[int | None, str]] = {126: "cannot be executed", 127: "command not found"}
# All that Python says to -m of a module that is not there.
_NO_MODULE: Final = re.compile(r"\A\S*python\S*: No module named '?([\w.]+)'?\Z")


class Check(Wire, frozen=True):
    """One command whose exit code says yes or no; ``declared`` by a flow, or detected."""

    name: str
    command: str
    expected_exit_code: int = 0
    declared: bool = False


class CheckRun(Wire, frozen=True):
    """What a runner brings back; ``exit_code`` None means it was stopped for the time it took.

    ``unsound`` says why the run may have tested other code than the tree holds (D9).
    """

    exit_code: int | None
    output: str = ""
    unsound: str = ""


class Runner(Protocol):
    """Runs a command, confined, in a tree; the caller's, for only it knows sandboxes."""

    async def __call__(self, command: str, tree: Path) -> CheckRun: ...


class CheckResult(Wire, frozen=True):
    """One check on one tree."""

    passed: bool
    exit_code: int | None
    output: str = ""
    tests: TestsRun | None = None
    unsound: str = ""

    @property
    def detail(self) -> str:
        """What is known beside its colour, in a word or two; often nothing."""
        if self.tests is not None and self.tests.failed:
            return f"{self.tests.failed} failed"
        if self.passed:
            return ""
        if missing := _NO_MODULE.search(self.output.rstrip()):
            return f"{missing[1]} is not installed"
        return _NEVER_RAN.get(self.exit_code, "")

    def last_words(self, most: int, most_lines: int | None = None) -> str:
        """The end of what it printed, in whole lines and without colours."""
        lines = uncoloured(self.output).rstrip().splitlines()
        kept: list[str] = []
        room = most
        for line in reversed(lines[-most_lines:] if most_lines else lines):
            room -= len(line) + 1
            if room < 0 and kept:
                break
            kept.append(line[-most:])
        left_out = len(lines) - len(kept)
        head = [f"[{left_out:,} lines before]"] if left_out else []
        return "\n".join([*head, *reversed(kept)])


NOT_RUN: Final = CheckResult(passed=False, exit_code=None, output="not run")


class Compared(Wire, frozen=True):
    """One check before and after; ``before`` None when it was not run on the base."""

    check: Check
    before: CheckResult | None
    after: CheckResult

    @property
    def was_green(self) -> bool:
        return self.before is None or self.before.passed

    @property
    def fewer_tests(self) -> bool:
        """A check can be made green by taking its tests away."""
        then, now = self.before and self.before.tests, self.after.tests
        return bool(then and (now is None or now.total < then.total))

    @property
    def is_worse(self) -> bool:
        """Red with the change, and not just as it was: was green, or fails more or otherwise."""
        then, now = self.before, self.after
        if now.passed:
            return False
        if then is None or then.passed:
            return True
        if then.tests and now.tests:
            # Some runners exit with the number of failures, so the counts say more than the code.
            return now.tests.failed > then.tests.failed or self.fewer_tests
        return bool(then.tests) or then.exit_code != now.exit_code

    @property
    def sentence(self) -> str:
        then = _word(self.before.passed) if self.before else "not run"
        details = [self.after.detail]
        if self.is_worse and self.before and self.before.detail:
            details.append(f"before: {self.before.detail}")
        told = "; ".join(filter(None, details))
        now = _word(self.after.passed)
        return f"{self.check.name}: {then} → {now}{told and f' ({told})'}"


class EvidenceStatus(StrEnum):
    """What the checks together allow; the worst comes first."""

    FAILED = "failed"
    RED_BEFORE = "red_before"
    UNSOUND = "unsound"
    UNVERIFIED = "unverified"
    PASSED = "passed"


class Evidence(Wire, frozen=True):
    """All checks of a proposal, on the generation that it was made on.

    ``steering`` are files of the change that also decide what the checks do.
    """

    generation: str
    checks: tuple[Compared, ...] = ()
    steering: tuple[Steering, ...] = ()

    @property
    def red(self) -> tuple[Compared, ...]:
        """What does not hold with the patch, whether it held before or not."""
        return tuple(compared for compared in self.checks if not compared.after.passed)

    @property
    def worse(self) -> tuple[Compared, ...]:
        """What the change makes red, or redder than it was."""
        return tuple(compared for compared in self.checks if compared.is_worse)

    @property
    def status(self) -> EvidenceStatus:
        if any(compared.was_green for compared in self.red):
            return EvidenceStatus.FAILED
        if self.red:
            return EvidenceStatus.RED_BEFORE
        if any(compared.after.unsound for compared in self.checks):
            return EvidenceStatus.UNSOUND
        return EvidenceStatus.PASSED if self.checks else EvidenceStatus.UNVERIFIED

    @property
    def fewer_tests(self) -> bool:
        return any(compared.fewer_tests for compared in self.checks)

    @property
    def tests_run(self) -> TestsRun | None:
        """The sum over the checks that counted, for the announcement (R4)."""
        counted = [c.after.tests for c in self.checks if c.after.tests]
        if not counted:
            return None
        return TestsRun(sum(t.passed for t in counted), sum(t.failed for t in counted))

    @property
    def sentence(self) -> str:
        """Before → after, for people."""
        if not self.checks:
            return "unverified: no checks are declared or detected"
        parts = [compared.sentence for compared in self.checks]
        parts += [c.after.unsound for c in self.checks if c.after.unsound]
        if self.fewer_tests:
            parts.append("fewer tests ran than before")
        if self.steering:
            parts.append(f"the change also edits how it is checked: {told(self.steering)}")
        return "; ".join(parts)


def _word(passed: bool) -> str:
    return "green" if passed else "red"


async def run_checks(
    checks: Iterable[Check], tree: Path, runner: Runner
) -> dict[Check, CheckResult]:
    """One after another: they share a tree and may write to it."""
    results = {}
    for check in dict.fromkeys(checks):
        run = await runner(check.command, tree)
        results[check] = CheckResult(
            passed=run.exit_code == check.expected_exit_code,
            exit_code=run.exit_code,
            output=run.output[-OUTPUT_KEPT:],
            tests=count_tests(run.output),
            unsound=run.unsound,
        )
    return results


def compare(
    generation: str,
    checks: Iterable[Check],
    before: Mapping[Check, CheckResult],
    after: Mapping[Check, CheckResult],
    steering: Iterable[Steering] = (),
) -> Evidence:
    """Put both sides together; the caller runs ``before`` once for each generation and keeps it.

    A check that was not run on the patched tree counts as failed: silence is no evidence.
    """
    return Evidence(
        generation=generation,
        checks=tuple(
            Compared(check=check, before=before.get(check), after=after.get(check, NOT_RUN))
            for check in dict.fromkeys(checks)
        ),
        steering=tuple(steering),
    )
