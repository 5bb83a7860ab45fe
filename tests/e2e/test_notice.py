"""The desktop is told of what waits for a person: if they wished it, and only while they look away.

A browser without a screen has no desktop, so a notice here is a page's object that writes down what
was asked of it. Everything before it is real, the gesture included that a browser wants to see.
"""

from __future__ import annotations

import pytest

from tests.e2e import story
from tests.e2e.browser import Page
from tests.e2e.canned import CannedServer

pytestmark = [pytest.mark.anyio, pytest.mark.req("D24")]

DESKTOP = """
window.asked = [];
window.shown = [];
window.answer = "granted";
window.isAway = false;
window.Notification = class {
  static permission = localStorage.permission ?? "default";
  static async requestPermission() {
    window.asked.push(navigator.userActivation.isActive);
    return (localStorage.permission = this.permission = window.answer);
  }
  constructor(title, { body, tag }) {
    if (window.hasNoDesktop) throw new TypeError("Illegal constructor");
    Object.assign(this, { title, body, tag, isOpen: true });
    window.shown.push(this);
  }
  close() { this.isOpen = false; }
};
Object.defineProperty(document, "hidden", { get: () => window.isAway });
window.focus = () => { window.isAway = false; };
"""
SHOWN = "shown.map(({ title, body, isOpen }) => [title, body, isOpen])"
BADGE = "document.title.startsWith('({}) ')"


async def opened(page: Page, server: CannedServer) -> None:
    """The page of a run that nobody is asked about yet, on a desktop that can be asked."""
    server.happen(story.begin(), story.dispatch("T1", "Write it"))
    await page.tab.add_init_script(DESKTOP)
    await page.goto(server.address)
    await page.wait_for_text(".connection", "Live")


async def switch(page: Page, *, found: str) -> None:
    """By the command bar, where a person finds it."""
    await page.command_bar()
    await page.type("desktop")
    await page.wait_for_text("[cmdk-item][data-selected=true]", found)
    await page.press("Enter")


async def asks(page: Page, server: CannedServer, task: str, *, badge: int) -> None:
    """Something waits for a person, and the page knows it."""
    server.happen(story.ask(task, f"Apply {task}?"))
    await page.wait_for(BADGE.format(badge))


async def test_nobody_is_asked_or_told_who_did_not_wish_it(
    page: Page, server: CannedServer
) -> None:
    await opened(page, server)
    await page.look("isAway = true")
    await asks(page, server, "T1", badge=1)
    assert await page.look("[asked, shown]") == [[], []]


async def test_a_gesture_asks_for_leave_and_only_who_looks_away_is_told(
    page: Page, server: CannedServer
) -> None:
    await opened(page, server)
    await switch(page, found="Notify me on the desktop")
    await page.wait_for("JSON.parse(localStorage['agentcanvas.prefs'] ?? '{}').notify")
    assert await page.look("asked") == [True]
    await asks(page, server, "T1", badge=1)
    assert await page.look(SHOWN) == []

    await page.look("isAway = true")
    await asks(page, server, "T2", badge=2)
    assert await page.look(SHOWN) == [["AgentCanvas needs you", "Apply T2?", True]]
    await page.look("shown[0].onclick()")
    await page.wait_for_text(".inbox .collab-card", "Apply T2?")
    assert await page.look("[isAway, shown[0].isOpen]") == [False, False]

    await page.reload()
    await page.wait_for(BADGE.format(2))
    await page.look("isAway = true")
    assert await page.look(SHOWN) == [], "what waited before is no news"
    await asks(page, server, "T3", badge=3)
    assert await page.look("[asked.length, shown.length]") == [0, 1], "the wish is kept"
    await switch(page, found="Turn off desktop notifications")
    await asks(page, server, "T4", badge=4)
    assert await page.look("shown.length") == 1, "until it is taken back"
    assert page.complaints == []


async def test_who_refuses_the_leave_hears_where_to_give_it(
    page: Page, server: CannedServer
) -> None:
    await opened(page, server)
    await page.look("answer = 'denied'")
    await switch(page, found="Notify me on the desktop")
    await page.wait_for_text(".toast", "The browser does not allow")
    await page.look("isAway = true")
    await asks(page, server, "T1", badge=1)
    assert await page.look(SHOWN) == []


@pytest.mark.parametrize("desktop", ["hasNoDesktop = true", "delete window.Notification"])
async def test_a_browser_that_has_no_notices_loses_nothing_else(
    page: Page, server: CannedServer, desktop: str
) -> None:
    await opened(page, server)
    await page.look(desktop)
    await switch(page, found="Notify me on the desktop")
    await page.look("isAway = true")
    await asks(page, server, "T1", badge=1)
    await page.wait_for_text(".collab-card", "Apply T1?")
    assert page.complaints == []
