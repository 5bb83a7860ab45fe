"""Where a browser has no SharedWorker, each tab has a line of its own, and rests unseen."""

from __future__ import annotations

import pytest

from tests.e2e import story
from tests.e2e.browser import Browser, Page
from tests.e2e.canned import CannedServer

pytestmark = [pytest.mark.anyio, pytest.mark.req("V1")]

WITHOUT = {
    "it has none": "delete window.SharedWorker",
    "a setting forbids it": """
        window.SharedWorker = class {
          constructor() { throw new DOMException("not here", "SecurityError"); }
        }""",
    "its script does not come": """
        window.SharedWorker = class extends EventTarget {
          port = { postMessage() {} };
          constructor() { super(); setTimeout(() => this.onerror(new Event("error")), 20); }
        }""",
}
HIDE = """
Object.defineProperty(document, "visibilityState", {
  get: () => (window.isAway ? "hidden" : "visible"),
});
"""
SEQS = "[...document.querySelectorAll('[data-seq]')].map((one) => +one.dataset.seq)"


async def opened(page: Page, server: CannedServer, without: str) -> None:
    await page.tab.add_init_script(f"{without};{HIDE}")
    await page.goto(server.address)
    await page.wait_for_text(".connection", "Live")


@pytest.mark.parametrize("reason", WITHOUT)
async def test_the_page_is_live_and_comes_back_without_a_gap(
    page: Page, server: CannedServer, reason: str
) -> None:
    server.happen(story.begin())
    await opened(page, server, WITHOUT[reason])
    server.happen(story.note("told"))
    await page.wait_for_text(".line", "told")
    seen = server.head
    server.cut_streams()
    server.happen(story.note("missed"))
    await page.wait_for_text(".line", "missed")
    assert server.asked_from[-1] == seen
    assert await page.look(SEQS) == [1, 2, 3]
    assert page.complaints == []


async def test_a_tab_that_nobody_sees_lets_go_of_its_line_and_takes_it_up_where_it_was(
    page: Page, browser: Browser, server: CannedServer
) -> None:
    server.happen(story.begin())
    await opened(page, server, WITHOUT["it has none"])
    other = await browser.open(beside=page)
    await opened(other, server, WITHOUT["it has none"])
    assert len(server.asked_from) == 2, "a line for each"

    await page.look("isAway = true; document.dispatchEvent(new Event('visibilitychange'))")
    seen = server.head
    server.happen(story.note("while it rested"))
    await other.wait_for_text(".line", "while it rested")
    assert await page.look(SEQS) == [1]
    await page.look("isAway = false; document.dispatchEvent(new Event('visibilitychange'))")
    await page.wait_for_text(".line", "while it rested")
    assert server.asked_from[2:] == [seen]
    assert await page.look(SEQS) == [1, 2]
    assert [*page.complaints, *other.complaints] == []
