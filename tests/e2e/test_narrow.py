"""A phone has everything, and nothing on it is cut off or too small for a finger."""

from __future__ import annotations

import pytest

from agentcanvas.proposals.model import Decision
from tests.e2e import story
from tests.e2e.browser import Page
from tests.e2e.canned import CannedServer

pytestmark = [pytest.mark.anyio, pytest.mark.req("U5")]

ENDLESS = "Migrate every service of the monorepo to the limiter that nobody has read yet"
CUT_OFF = """
((where) => [...document.querySelectorAll(`${where} :is(a, button, input, textarea, h2, h3, p)`)]
  .filter((one) => one.getClientRects().length && !one.closest('.toolbar, .unseen'))
  .filter((one) => {
    const {left, right} = one.getBoundingClientRect();
    const within = (one.closest('.dialog') ?? document.body).getBoundingClientRect();
    return left < within.left || right > within.right;
  })
  .map((one) => one.outerHTML.slice(0, 140)))(%r)
"""


def happen(server: CannedServer) -> None:
    server.happen(story.begin("The older one"), story.end("time is up", done=False), run="run_0")
    server.happen(story.begin(ENDLESS), *story.whole()[1:])
    server.happen(story.ask("T3", f"Apply T3? {ENDLESS}"))


@pytest.mark.parametrize("width", [360, 400, 900])
async def test_runs_and_what_waits_are_whole_and_within_reach(
    page: Page, server: CannedServer, width: int
) -> None:
    happen(server)
    await page.resize(width, 800)
    await page.goto(f"{server.address}#/runs")
    await page.wait_for("document.querySelectorAll('.runs tbody tr').length === 2")
    assert await page.look(CUT_OFF % ".runs") == []
    assert await page.texts(".run-team p") == ["Orchestrator, Coder, Tester"] * 2
    for name in ("Resume", "Retry"):
        assert await page.role("button", name).is_visible()
    await page.press("i")
    await page.wait_for("document.querySelectorAll('[role=dialog] .ask-form').length === 2")
    assert await page.look(CUT_OFF % "[role=dialog]") == []
    await page.press("Escape")
    assert await page.look("document.querySelector('.command-button').clientWidth") < 60
    if width < 720:
        height = "document.querySelector('.runs .row-actions .button').offsetHeight"
        assert await page.look(height) >= 36
        shown = "[...document.querySelectorAll('.button .keys')].filter((one) => one.offsetWidth)"
        assert await page.look(f"{shown}.length") == 0
    assert page.complaints == []


async def test_the_search_of_the_timeline_is_in_sight_on_a_phone(
    page: Page, server: CannedServer
) -> None:
    happen(server)
    await page.resize(400, 800)
    await page.goto(f"{server.address}#/run/run_1")
    await page.wait_for_text(".collab-card", "Apply T3?")
    right = "document.querySelector('.search').getBoundingClientRect().right"
    assert await page.look(right) <= 401  # pixels come in parts


async def test_whose_transcript_it_is_is_in_sight_on_a_phone(
    page: Page, server: CannedServer
) -> None:
    happen(server)
    await page.resize(400, 800)
    await page.goto(f"{server.address}#/transcript/run_1")
    await page.wait_for_text(".agents-nav [aria-current]", "Tester")
    right = "document.querySelector('.agents-nav [aria-current]').getBoundingClientRect().right"
    assert await page.look(right) <= 401  # pixels come in parts


async def test_the_tasks_of_a_run_can_be_read_at_a_glance(page: Page, server: CannedServer) -> None:
    server.happen(story.begin())
    for number in range(1, 13):
        server.happen(story.dispatch(f"T{number}", "Move a service"))
        if number < 10:
            server.happen(
                story.proposal(f"T{number}", "Moved"),
                story.verdict(f"T{number}", Decision.REJECT, "Not so"),
            )
    await page.goto(f"{server.address}#/run/run_1")
    await page.wait_for("document.querySelectorAll('.tasks li').length === 12")
    widths = (
        "[...document.querySelectorAll('.progress rect')].map((one) => one.width.baseVal.value)"
    )
    assert await page.look(widths) == [0, 9, 0, 3]
    await page.role("button", "Hide settled tasks").click()
    assert await page.texts(".tasks .task-id") == ["T10", "T11", "T12"]
    await page.role("button", "Show all tasks").click()
    assert await page.texts(".tasks .task-state >> nth=-1") == ["Working"]
    server.happen(story.end("time is up", done=False))
    await page.wait_for_text(".tasks .task-state", "Unfinished")
    link = page.tab.locator(".tasks [data-task=T1] a")
    assert await link.get_attribute("href") == "#/review/run_1?task=T1"
    assert await page.tab.locator(".tasks [data-task=T12] a").count() == 0
