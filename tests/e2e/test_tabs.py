"""All tabs of a browser share one stream, so that more than six can be open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import story
from tests.e2e.browser import Browser, Page
from tests.e2e.canned import CannedServer

TABS = 8


@pytest.fixture
def server(built_page: Path) -> Iterator[CannedServer]:
    canned = CannedServer(built_page)
    serving = threading.Thread(target=canned.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    yield canned
    canned.cut_streams()
    canned.shutdown()
    serving.join()
    canned.server_close()


@pytest.mark.req("V1")
def test_eight_tabs_are_live_over_one_stream(
    page: Page, browser: Browser, server: CannedServer
) -> None:
    server.happen(story.begin())
    tabs = [page, *(browser.open(beside=page) for _ in range(TABS - 1))]
    for tab in tabs:
        tab.call("Page.bringToFront")
        tab.goto(server.address)
        tab.wait_for_text(".line", "started")
    server.happen(story.note("told to all"))
    for tab in tabs:
        tab.call("Page.bringToFront")  # a browser lets others wait longer
        tab.wait_for_text(".line", "told to all")
    assert len(server.asked_from) == 1
    server.cut_streams()
    server.happen(story.note("and again"))
    for tab in tabs:
        tab.call("Page.bringToFront")
        tab.wait_for_text(".line", "and again")
    assert len(server.asked_from) == 2
    for tab in tabs[1:]:
        tab.call("Page.close")
