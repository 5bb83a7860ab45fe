"""All tabs of a browser share one stream, so that more than six can be open."""

from __future__ import annotations

import pytest

from tests.e2e import story
from tests.e2e.browser import Browser, Page
from tests.e2e.canned import CannedServer

TABS = 8


@pytest.mark.req("V1")
async def test_eight_tabs_are_live_over_one_stream(
    page: Page, browser: Browser, server: CannedServer
) -> None:
    server.happen(story.begin())
    tabs = [page, *[await browser.open(beside=page) for _ in range(TABS - 1)]]
    for tab in tabs:
        await tab.come_to_front()
        await tab.goto(server.address)
        await tab.wait_for_text(".line", "started")
    server.happen(story.note("told to all"))
    for tab in tabs:
        await tab.come_to_front()  # a browser lets others wait longer
        await tab.wait_for_text(".line", "told to all")
    assert len(server.asked_from) == 1
    server.cut_streams()
    server.happen(story.note("and again"))
    for tab in tabs:
        await tab.come_to_front()
        await tab.wait_for_text(".line", "and again")
    assert len(server.asked_from) == 2
    for tab in tabs[1:]:
        await tab.close()
