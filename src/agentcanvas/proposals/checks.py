"""Evidence: what the checks say before a patch and after it (D13).

Checks are declared by a flow or detected in the base, never in the patched tree, or a patch could
bring its own judge. Where and how a command runs is the caller's: a ``Runner`` gets a
command and a tree, both trees at the workspace's own path where that can be had (D9).
"""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from agentcanvas.proposals.counts import count_tests
from agentcanvas.proposals.model import TestsRun, Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

LARGEST_MANIFEST: Final = 1024 * 1024
OUTPUT_KEPT: Final = 20_000
_NPM_DEFAULT: Final = "no test specified"
_MAKE_TEST: Final = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_PYTEST_FILES: Final = ("pytest.ini", "pytest.toml", ".pytest.ini", "conftest.py")


_STEERING: Final = frozenset(
    {*_PYTEST_FILES, "setup.cfg", "tox.ini", "pyproject.toml", "package.json", "Cargo.toml"}
    | {"go.mod", "GNUmakefile", "makefile", "Makefile", "build.rs"}
)


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
    def sentence(self) -> str:
        then = _word(self.before.passed) if self.before else "not run"
        counted = f" ({self.after.tests.failed} failed)" if self.after.tests else ""
        return f"{self.check.name}: {then} → {_word(self.after.passed)}{counted}"


class EvidenceStatus(StrEnum):
    """What the checks together allow; the worst comes first."""

    FAILED = "failed"
    RED_BEFORE = "red_before"
    UNSOUND = "unsound"
    UNVERIFIED = "unverified"
    PASSED = "passed"


class Evidence(Wire, frozen=True):
    """All checks of a proposal, on the generation that it was made on.

    ``steered`` are files of the change that also decide what the checks do.
    """

    generation: str
    checks: tuple[Compared, ...] = ()
    steered: tuple[str, ...] = ()

    @property
    def status(self) -> EvidenceStatus:
        red = [compared for compared in self.checks if not compared.after.passed]
        if any(compared.was_green for compared in red):
            return EvidenceStatus.FAILED
        if red:
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
        if self.steered:
            parts.append(f"the change also edits how it is checked: {', '.join(self.steered)}")
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
    changed: Iterable[str] = (),
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
        steered=tuple(path for path in changed if path.rpartition("/")[2] in _STEERING),
    )


def choose_checks(declared: Iterable[Check], base: Path) -> tuple[Check, ...]:
    """Declared ones if there are any, else what is detected in the base."""
    chosen = tuple(msgspec.structs.replace(check, declared=True) for check in declared)
    return chosen or detect(base)


def detect(root: Path) -> tuple[Check, ...]:
    """What a newcomer would run here; ``make test`` only where nothing more direct is known."""
    found = []
    if _has_pytest(root):
        found.append(Check("pytest", "python -m pytest"))
    if _has_npm_test(root):
        found.append(Check("npm test", "npm test"))
    if (root / "Cargo.toml").is_file():
        found.append(Check("cargo test", "cargo test"))
    if (root / "go.mod").is_file():
        found.append(Check("go test", "go test ./..."))
    if not found and _has_make_test(root):
        found.append(Check("make test", "make test"))
    return tuple(found)


def _has_pytest(root: Path) -> bool:
    if any((root / name).is_file() for name in _PYTEST_FILES):
        return True
    if "[tool:pytest]" in _text(root / "setup.cfg") or "[pytest]" in _text(root / "tox.ini"):
        return True
    try:
        tools = tomllib.loads(_text(root / "pyproject.toml")).get("tool")
    except tomllib.TOMLDecodeError:
        tools = None
    if isinstance(tools, dict) and "pytest" in tools:
        return True
    return any(next((root / name).glob("test_*.py"), None) for name in ("tests", "test", "."))


def _has_npm_test(root: Path) -> bool:
    try:
        package = msgspec.json.decode(_text(root / "package.json") or "{}", type=_Package)
    except msgspec.DecodeError:
        return False
    return bool(package.scripts.test) and _NPM_DEFAULT not in package.scripts.test


class _Scripts(msgspec.Struct, frozen=True):
    test: str = ""


class _Package(msgspec.Struct, frozen=True):
    scripts: _Scripts = _Scripts()


def _has_make_test(root: Path) -> bool:
    makefiles = (root / name for name in ("GNUmakefile", "makefile", "Makefile"))
    return any(_MAKE_TEST.search(_text(path)) for path in makefiles)


def _text(path: Path) -> str:
    """The start of a file, empty when there is none: a repository may hold anything."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_MANIFEST).decode(errors="replace")
    except OSError:
        return ""
