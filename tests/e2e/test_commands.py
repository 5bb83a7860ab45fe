"""The command bar offers whatever can be done, from wherever one is, and ``?`` tells every key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e import story
from tests.e2e.browser import Page, expect
from tests.e2e.canned import CannedServer
from tests.e2e.ledger import proposed
from tests.e2e.scene import scene

pytestmark = [pytest.mark.anyio, pytest.mark.req("U5")]

EVERYWHERE = {
    "Manual Review Proposal",
    "View Collaboration Report",
    "Answer what waits for you",
    "Start a run",
    "Clean up after old runs",
    "Resume this run",
    "Retry this run",
    "Stop run",
    "Transcript of Coder",
    "Theme: high contrast",
    "Language: 한국어",
    "Notify me on the desktop when something needs me",
}
OF_VIEW = {
    "runs": set[str](),
    "run": {
        "Follow live",
        "Search the timeline",
        "Jump to a time",
        "Group the timeline by task",
        "Show in the timeline: Problems",
        "Diff of the last applied change",
        "Undo the last applied change",
    },
    "review": {
        "Next change",
        "Next file",
        "Mark the file as seen, and go on",
        "Comment on the line",
        "Include or leave out the hunk or file",
        "Only what changed since you looked",
        "Unified or split",
        "Apply the proposal",
        "Send the proposal back",
        "Reject the proposal",
        "Undo the applied change",
        "Next proposal",
    },
    "inbox": set[str](),
    "transcript": {"Follow live", "To the beginning", "Raw lines", "Say something to Coder"},
    "report": {"Copy the report", "Download as md", "Download as html", "Download as json"},
}
READY = "!document.querySelector('#main .loading') && document.querySelector('#main').innerText"


async def test_every_action_is_in_the_command_bar_and_every_key_in_the_help(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await page.goto(served.link)
        keys = {}
        for view, own in OF_VIEW.items():
            await page.look(f"location.hash = '#/{view}/{served.run_id}'")
            await page.tab.locator(f"#main[data-view={view}]").wait_for()
            await page.wait_for(READY)
            await page.command_bar()
            wanted = EVERYWHERE | own
            await page.wait_for_text("[cmdk-item]", min(own, default="Stop run"))
            offered = set(await page.texts("[cmdk-item] > .ellipsis"))
            assert wanted - offered == set(), view
            await page.press("Escape ?")
            await page.wait_for_text("[role=dialog] h2", "Keyboard shortcuts")
            keys[view] = await page.texts("[role=dialog] dd .unseen")
            await page.press("Escape")
            await expect(page.role("dialog")).to_have_count(0)
        for view, told in keys.items():
            assert {"Ctrl K", "?", "Esc", "g r", "i"} <= set(told), view
            twice = [key for key, count in Counter(told).items() if count > 1]
            assert twice == [], view
        assert set("jknpvarxctsuz[]") | {"↓ ↑"} <= set(keys["review"])
        assert page.complaints == []


async def test_a_run_is_started_from_any_view_and_words_for_a_worker_by_keyboard(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with scene(tmp_path / "textkit", built_page) as stage:
        done = await stage.demo()
        await stage.until_it_rests(done)
        await page.goto(f"{stage.info.link}#/report/{done}")
        await page.wait_for_text(".markdown h1", "Run Report")
        await page.command_bar()
        await page.type("start a run")
        await page.wait_for_text("[cmdk-item][data-selected=true]", "Start a run")
        await page.press("Enter")
        await page.wait_for_text("[role=dialog] h2", "Start a run")
        await page.press("Escape")
        await expect(page.role("dialog")).to_have_count(0)
        await page.reload()
        await page.wait_for_text(".runs h2", "Runs")
        assert await page.look("!document.querySelector('[role=dialog]')")

        await page.command_bar()
        await page.type("transcript of coder b")
        # Who is in the team comes with the run, maybe after the words.
        await page.wait_for_text("[cmdk-item][data-selected=true]", "Transcript of Coder B")
        await page.press("Enter")
        await page.wait_for_text(".talk h2", "Coder B")
        await page.press("m")
        await page.wait_for("document.activeElement.matches('.tell input')")
        await page.press("Escape")
        await page.wait_for("document.activeElement === document.body")
        assert page.complaints == []


async def test_a_run_is_started_by_its_key_also_after_the_runs_have_changed(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin())
    await page.goto(f"{server.address}#/runs")
    await page.wait_for_text(".runs h2", "Runs")
    server.happen(story.ask("T1", "Apply T1?"))
    await page.wait_for_text(".needs-you", "1 needs you")
    await page.press("c")
    await page.wait_for_text("[role=dialog] h2", "Start a run")


async def test_a_field_that_was_left_is_not_come_back_to(page: Page, server: CannedServer) -> None:
    server.happen(story.begin())
    await page.goto(server.address)
    await page.wait_for_text(".line", "started")
    await page.press("/")
    await page.wait_for("document.activeElement.matches('.search')")
    await page.press("Escape ?")
    await page.role("dialog").wait_for()
    await page.press("Escape")
    await expect(page.role("dialog")).to_have_count(0)
    await page.press("g r")
    await page.wait_for("location.hash.startsWith('#/review')")


async def test_c_on_a_heading_comments_on_the_first_line_that_is_new(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await page.goto(f"{served.link}#/review/{served.run_id}?task=limiter")
        await page.wait_for("document.querySelector('.diff-line')")
        await page.press("n n n c")
        await page.wait_for("document.activeElement.matches('.thread textarea')")
        text = await page.look("document.querySelector('[data-cursor]').textContent")
        assert "float(burst)" in text
        diff = "document.activeElement.matches('.diff-scroll')"
        await page.press("Escape")
        assert await page.look(diff)
        await page.press("c")
        await page.wait_for("document.activeElement.matches('.thread textarea')")
        await page.type("Why a float?")
        await page.press("Control+Enter")
        await page.wait_for_text(".thread .said", "Why a float?")
        assert await page.look(diff), "so that the arrow keys go on from there"
        assert page.complaints == []
