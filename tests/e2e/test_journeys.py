"""What people do with the page, on the real engine and the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.to_thread import run_sync

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


async def wait_for_text(page: Page, selector: str, text: str) -> None:
    await run_sync(page.wait_for_text, selector, text)


async def wait_for(page: Page, expression: str) -> Any:
    return await run_sync(page.wait_for, expression)


async def test_from_the_link_to_the_demo_run_live_and_to_its_report(
    page: Page, stage: Scene
) -> None:
    await run_sync(page.goto, stage.info.link)
    await wait_for_text(page, ".empty", "No run yet")
    run_id = await stage.demo()
    await wait_for_text(page, ".head .pill", "Running")
    await wait_for_text(page, ".collab-card[data-event='task_dispatched'] h3", "Planner → Coder A")
    await wait_for_text(page, ".collab-card[data-event='run_ended'] h3", "Run done")
    await wait_for_text(page, ".head .pill", "Done")
    assert (await stage.engine.state(run_id)).status is RunStatus.DONE
    states = "[...document.querySelectorAll('[data-task]')].map((one) => one.dataset.status)"
    assert await run_sync(page.look, states) == ["applied", "rejected", "applied"]

    await run_sync(page.command_bar)
    await run_sync(page.type, "view collab")
    await wait_for(page, "document.querySelectorAll('[cmdk-item]').length === 1")
    await run_sync(page.press, "Enter")
    await wait_for_text(page, ".markdown h1", f"Run Report: demo / {run_id}")
    await run_sync(page.call, "Page.reload")
    await wait_for_text(page, ".markdown h2", "Final Changes")

    await run_sync(page.keys, "gs")
    await wait_for_text(page, ".agents-nav [aria-current]", "Coder A")
    await wait_for_text(page, ".folded summary", "python3 -m unittest")
    assert page.complaints == []


async def test_stop_asks_once_says_what_stays_and_gives_the_focus_back(
    page: Page, stage: Scene
) -> None:
    run_id = await stage.solo(command=SLEEPER)
    await run_sync(page.goto, stage.info.link)
    await wait_for_text(page, ".agent-state", "Working")
    await run_sync(page.look, "document.querySelector('.stop').focus()")
    await run_sync(page.press, "Enter")
    await wait_for_text(page, "[role=dialog]", "What was applied stays")
    await run_sync(page.press, "Escape")
    await wait_for(page, "document.activeElement === document.querySelector('.stop')")
    await run_sync(page.press, "Enter")
    await wait_for(page, "document.querySelector('[role=dialog] input')")
    await run_sync(page.look, "document.querySelector('[role=dialog] input').focus()")
    await run_sync(page.type, "the wrong task")
    await run_sync(page.press, "Enter")
    await wait_for_text(page, ".collab-card[data-event='run_ended']", "the wrong task")
    state = await stage.engine.state(run_id)
    assert (state.status, state.reason) == (RunStatus.STOPPED, "the wrong task")


async def test_the_work_of_one_agent_is_ended_and_words_reach_it(page: Page, stage: Scene) -> None:
    run_id = await stage.solo(command=SLEEPER)
    await run_sync(page.goto, f"{stage.info.link}#/transcript/{run_id}")
    await run_sync(page.click, ".tell .input")
    await run_sync(page.type, "Mind the umlauts")
    await run_sync(page.press, "Enter")
    await wait_for_text(page, ".toast", "hears it with its next turn")
    await run_sync(page.keys, "")
    await run_sync(page.look, "location.hash = '#/run'")
    await wait_for_text(page, ".line", "You say to Coder: Mind the umlauts")
    await run_sync(page.click, ".agent-state .button")
    await wait_for_text(page, "[role=dialog]", "the run goes on")
    await run_sync(page.press, "Enter")
    await wait_for_text(page, ".line[data-tone='danger']", "stopped by you")
    events = [entry.event async for entry in stage.engine.events(run_id, follow=False)]
    assert any(isinstance(event, e.WorkerTold) for event in events)


async def test_two_tabs_are_in_step_and_an_answer_in_one_is_seen_in_both(
    page: Page, browser: Browser, stage: Scene
) -> None:
    run_id = await stage.solo()
    await stage.until_it_rests(run_id)
    await run_sync(page.goto, stage.info.link)
    await wait_for_text(page, ".needs-you", "1")
    other = await run_sync(partial(browser.open, beside=page))
    await run_sync(other.goto, f"{stage.info.url}/#/inbox")
    await wait_for_text(other, ".inbox .collab-card", "Add a changelog")
    await run_sync(other.look, "document.querySelector('.ask-form [data-look=apply]').click()")
    for tab in (page, other):
        await wait_for(tab, "!document.querySelector('.needs-you')")
    await wait_for_text(page, ".collab-card[data-event='run_ended']", "Run done")
    assert (stage.root / "CHANGES.md").exists()
    await run_sync(other.call, "Page.close")


async def test_what_waits_is_answered_from_any_view_without_leaving_it(
    page: Page, stage: Scene
) -> None:
    run_id = await stage.solo()
    await stage.until_it_rests(run_id)
    await run_sync(page.goto, f"{stage.info.link}#/report/{run_id}")
    await wait_for_text(page, ".markdown h1", "Run Report")
    await wait_for_text(page, ".waiting", "Waiting for you: Apply the change of Coder")
    await run_sync(page.keys, "i")
    await wait_for_text(page, "[role=dialog] .collab-card", "Add a changelog")
    reject = "[...document.querySelectorAll('[role=dialog] [data-look=no]')][0].click()"
    await run_sync(page.look, reject)
    await wait_for(page, "document.activeElement.matches('[role=dialog] input')")
    await run_sync(page.type, "Not now")
    await run_sync(page.press, "Enter")
    await wait_for(page, "!document.querySelector('.needs-you')")
    assert await run_sync(page.look, "location.hash") == f"#/report/{run_id}"
    events = [entry.event async for entry in stage.engine.events(run_id)]
    verdicts = [one.payload for one in events if isinstance(one, e.ProposalReviewed)]
    assert [(one.decision, one.reason) for one in verdicts] == [("reject", "Not now")]


async def test_without_the_link_the_page_says_where_to_find_it(page: Page, stage: Scene) -> None:
    await run_sync(page.goto, stage.info.url)
    await wait_for_text(page, "body", "Open the link that")
    async with httpx.AsyncClient(base_url=stage.info.url, trust_env=False) as stranger:
        assert (await stranger.get("/api/v1/runs")).status_code == 401
        bearer = {"authorization": f"Bearer {stage.info.token}"}
        for wrong in ({"origin": "http://evil.test"}, {"host": "evil.test"}):
            answer = await stranger.get("/api/v1/runs", headers={**bearer, **wrong})
            assert answer.status_code == 403
