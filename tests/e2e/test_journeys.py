"""What people do with the page, on the real engine and the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunStatus
from tests.e2e.browser import Browser, Page
from tests.e2e.scene import Scene, scene

pytestmark = [pytest.mark.anyio, pytest.mark.req("U2", "U3")]

SLEEPER = "echo begun; sleep 600"


@pytest.fixture
async def stage(tmp_path: Path, built_page: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path / "textkit", built_page) as stage:
        yield stage


async def test_from_the_link_to_the_demo_run_live_and_to_its_report(
    page: Page, stage: Scene
) -> None:
    await page.goto(stage.info.link)
    await page.wait_for_text(".empty", "No runs yet")
    run_id = await stage.demo()
    await page.wait_for_text(".head .pill", "Running")
    await page.wait_for_text(".collab-card[data-event='task_dispatched'] h3", "Planner → Coder A")
    await page.wait_for_text(".collab-card[data-event='run_ended'] h3", "Run done")
    await page.wait_for_text(".head .pill", "Done")
    assert (await stage.engine.state(run_id)).status is RunStatus.DONE
    states = "[...document.querySelectorAll('[data-task]')].map((one) => one.dataset.status)"
    assert await page.look(states) == ["applied", "rejected", "applied"]

    await page.command_bar()
    await page.type("view collab")
    await page.wait_for("document.querySelectorAll('[cmdk-item]').length === 1")
    await page.press("Enter")
    await page.wait_for_text(".markdown h1", f"Run Report: demo / {run_id}")
    await page.reload()
    await page.wait_for_text(".markdown h2", "Final Changes")

    await page.press("g s")
    await page.wait_for_text(".agents-nav [aria-current]", "Coder A")
    await page.wait_for_text(".folded summary", "python3 -m unittest")
    assert page.complaints == []


async def test_stop_asks_once_says_what_stays_and_gives_the_focus_back(
    page: Page, stage: Scene
) -> None:
    run_id = await stage.solo(command=SLEEPER)
    await page.goto(stage.info.link)
    await page.wait_for_text(".agent-state", "Working")
    await page.look("document.querySelector('.stop').focus()")
    await page.press("Enter")
    await page.wait_for_text("[role=dialog]", "Applied changes stay")
    await page.press("Escape")
    await page.wait_for("document.activeElement === document.querySelector('.stop')")
    await page.press("Enter")
    await page.wait_for("document.querySelector('[role=dialog] input')")
    await page.look("document.querySelector('[role=dialog] input').focus()")
    await page.type("the wrong task")
    await page.press("Enter")
    await page.wait_for_text(".collab-card[data-event='run_ended']", "the wrong task")
    state = await stage.engine.state(run_id)
    assert (state.status, state.reason) == (RunStatus.STOPPED, "the wrong task")


async def test_the_work_of_one_agent_is_ended_and_words_reach_it(page: Page, stage: Scene) -> None:
    run_id = await stage.solo(command=SLEEPER)
    await page.goto(f"{stage.info.link}#/transcript/{run_id}")
    await page.click(".tell .input")
    await page.type("Mind the umlauts")
    await page.press("Enter")
    await page.wait_for_text(".toast", "hears it on the next turn")
    await page.look("location.hash = '#/run'")
    await page.wait_for_text(".line", "You say to Coder: Mind the umlauts")
    await page.click(".agent-state .button")
    await page.wait_for_text("[role=dialog]", "the run continues")
    await page.press("Enter")
    await page.wait_for_text(".line[data-tone='danger']", "stopped by you")
    events = [entry.event async for entry in stage.engine.events(run_id, follow=False)]
    assert any(isinstance(event, e.WorkerTold) for event in events)


async def test_two_tabs_are_in_step_and_an_answer_in_one_is_seen_in_both(
    page: Page, browser: Browser, stage: Scene
) -> None:
    run_id = await stage.solo()
    await stage.until_it_rests(run_id)
    await page.goto(stage.info.link)
    await page.wait_for_text(".needs-you", "1")
    other = await browser.open(beside=page)
    await other.goto(f"{stage.info.url}/#/inbox")
    await other.wait_for_text(".inbox .collab-card", "Add a changelog")
    await other.look("document.querySelector('.ask-form [data-look=apply]').click()")
    for tab in (page, other):
        await tab.wait_for("!document.querySelector('.needs-you')")
    await page.wait_for_text(".collab-card[data-event='run_ended']", "Run done")
    assert (stage.root / "CHANGES.md").exists()
    await other.close()


async def test_what_waits_is_answered_from_any_view_without_leaving_it(
    page: Page, stage: Scene
) -> None:
    run_id = await stage.solo()
    await stage.until_it_rests(run_id)
    await page.goto(f"{stage.info.link}#/report/{run_id}")
    await page.wait_for_text(".markdown h1", "Run Report")
    await page.wait_for_text(".waiting", "Waiting for you: Apply the change of Coder")
    await page.press("i")
    await page.wait_for_text("[role=dialog] .collab-card", "Add a changelog")
    reject = "[...document.querySelectorAll('[role=dialog] [data-look=no]')][0].click()"
    await page.look(reject)
    await page.wait_for("document.activeElement.matches('[role=dialog] input')")
    await page.type("Not now")
    await page.press("Enter")
    await page.wait_for("!document.querySelector('.needs-you')")
    assert await page.look("location.hash") == f"#/report/{run_id}"
    events = [entry.event async for entry in stage.engine.events(run_id)]
    verdicts = [one.payload for one in events if isinstance(one, e.ProposalReviewed)]
    assert [(one.decision, one.reason) for one in verdicts] == [("reject", "Not now")]


async def test_without_the_link_the_page_says_where_to_find_it(page: Page, stage: Scene) -> None:
    await page.goto(stage.info.url)
    await page.wait_for_text("body", "Open the link that")
    async with httpx.AsyncClient(base_url=stage.info.url, trust_env=False) as stranger:
        assert (await stranger.get("/api/v1/runs")).status_code == 401
        bearer = {"authorization": f"Bearer {stage.info.token}"}
        for wrong in ({"origin": "http://evil.test"}, {"host": "evil.test"}):
            answer = await stranger.get("/api/v1/runs", headers={**bearer, **wrong})
            assert answer.status_code == 403
