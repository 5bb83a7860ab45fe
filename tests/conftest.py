"""What every test stands on: asyncio, repeatable examples, and a home of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Repeatable by default, so that CI says the same twice; `dev` looks elsewhere on every run, and
# `fuzz` looks for as long as one has patience. HYPOTHESIS_PROFILE chooses.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("dev", deadline=None, max_examples=100)
settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20000")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# MAKE*, because the tests are usually started by make, and those that run make start afresh.
NOT_INHERITED = ("AGENTCANVAS_", "GIT_", "MAKE", "MFLAGS", "XDG_")

GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.invalid",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.invalid",
    "GIT_CONFIG_NOSYSTEM": "1",
}


# Where the tests run in the background, a shell may have them ignore Ctrl-C, and the commands that
# are ended by it would inherit that and never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Name the event loop that the product runs on; trio is not promised."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give each test process an empty home, so that nobody's settings or git config take part."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(NOT_INHERITED)]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        for name, value in GIT_IDENTITY.items():
            patch.setenv(name, value)
        yield folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the matrices came to: each property's rows, its second column side by side."""
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for report in terminalreporter.stats.get("passed", []):
        for title, row in report.user_properties:
            if isinstance(row, list | tuple) and len(row) == 3:
                name, column, said = map(str, row)
                tables.setdefault(title, {}).setdefault(name, {})[column] = said
    for title, rows in tables.items():
        terminalreporter.section(title)
        for name, cells in sorted(rows.items()):
            terminalreporter.line(name)
            for column, said in cells.items():
                terminalreporter.line(f"    {column:<14} {said}")
