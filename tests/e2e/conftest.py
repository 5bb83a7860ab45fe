"""One browser a test process, and a tab of its own for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.e2e.browser import Browser, Page, find_browser

BUILT = Path(__file__).parents[2] / "src" / "agentcanvas" / "web" / "_ui"
IN_CI = "CI" in os.environ


def do_without(what: str) -> NoReturn:
    """Skip loudly at home; where CI runs, nothing may go unseen."""
    if IN_CI:
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def built_page() -> Path:
    if not (BUILT / "index.html").exists():
        do_without("the page is not built: make ui")
    return BUILT


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        do_without("no Chromium or Chrome here, so nobody looked at the page: tools/browser.sh")
    started = Browser(program, tmp_path_factory.mktemp("browser") / "profile")
    yield started
    started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.open()
    yield opened
    opened.call("Page.close")
