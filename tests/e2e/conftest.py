"""One browser a module, and a tab of its own for each test."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.e2e.browser import Browser, Page, find_browser, launched
from tests.e2e.canned import CannedServer

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


# Not longer than a module: as long as it is there, so is its event loop, and whatever calls
# anyio.run in an ordinary test of this process would meet it.
@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    program = find_browser()
    if program is None:
        do_without(
            "no Chromium or Chrome here, or no Playwright to drive it, so nobody looked at the "
            "page: tools/browser.sh"
        )
    async with launched(program) as started:
        yield started


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    opened = await browser.open()
    yield opened
    await opened.leave()


@pytest.fixture
def server(built_page: Path) -> Iterator[CannedServer]:
    """A server that tells the page what the test wants."""
    canned = CannedServer(built_page)
    serving = threading.Thread(target=canned.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    yield canned
    canned.cut_streams()
    canned.shutdown()
    serving.join()
    canned.server_close()
