"""Where a person steps in: plans changed, runs begun again, reports taken home, reasons read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from agentcanvas.app.demo import order_for
from agentcanvas.runs.state import RunStatus
from tests.e2e.browser import Page, expect
from tests.e2e.ledger import proposed
from tests.e2e.scene import Scene, scene

pytestmark = [pytest.mark.anyio, pytest.mark.req("U2", "U5")]


@pytest.fixture
async def stage(tmp_path: Path, built_page: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path / "textkit", built_page) as stage:
        yield stage


async def test_a_plan_is_changed_and_then_carried_out_as_it_stands(
    page: Page, stage: Scene
) -> None:
    order = msgspec.structs.replace(order_for(stage.root), approve_plan=True)
    run_id = await stage.engine.start(order)
    await stage.until_it_rests(run_id)
    await page.goto(stage.info.link)
    await page.wait_for_text(".collab-card[data-open]", "Waiting for approval of the plan")
    await page.press("i")
    plan = page.role("dialog")
    words = plan.get_by_label("What slugs should do")
    await words.fill(f"{await words.input_value()} Say why in a comment.")
    await plan.get_by_role("button", name="Remove wrap").click()
    await plan.get_by_role("button", name="Approve this plan").click()
    await expect(plan).to_contain_text("Nothing is waiting for you")
    await stage.until_it_rests(run_id)
    state = await stage.engine.state(run_id)
    assert state.tasks["slugs"].instruction.endswith("Say why in a comment.")
    assert "wrap" not in state.tasks
    assert page.complaints == []


async def test_a_run_that_has_ended_is_gone_on_with_or_begun_again_from_the_list(
    page: Page, stage: Scene
) -> None:
    first = await stage.solo("Fail", "exit 3")
    await stage.until_it_rests(first)
    await page.goto(f"{stage.info.link}#/runs")
    await page.role("button", "Resume").click()
    await page.wait_for_text(".line", "Run resumed")
    await stage.until_it_rests(first)
    await page.press("g l")
    await page.role("button", "Retry").click()
    await page.wait_for("document.querySelectorAll('.nav-recent a').length === 2")
    runs = await stage.engine.runs()
    assert [run.request for run in runs] == ["Fail", "Fail"]
    assert await page.look("location.hash") == f"#/run/{runs[0].run_id}"
    last = await stage.until_it_rests(runs[0].run_id)
    assert (last.payload.done, runs[1].status) == (False, RunStatus.STOPPED)  # type: ignore[union-attr]
    assert page.complaints == []


async def test_a_report_is_copied_and_taken_home_in_each_form(page: Page, stage: Scene) -> None:
    run_id = await stage.solo("Fail", "exit 3")
    await stage.until_it_rests(run_id)
    await page.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"{stage.info.link}#/report/{run_id}")
    await page.wait_for_text(".markdown h1", f"Run Report: one-off / {run_id}")
    await page.press("y")
    await page.wait_for_text(".toast", "Copied")
    copied = await page.look("navigator.clipboard.readText()")
    for form, begins in (("md", "# Run Report"), ("html", "<!doctype html>"), ("json", "{")):
        async with page.tab.expect_download() as coming:
            await page.role("link", f"Download as {form}").click()
        download = await coming.value
        assert download.suggested_filename == f"{run_id}.{form}"
        text = (await download.path()).read_text(encoding="utf-8")
        assert text.lower().startswith(begins.lower())
        assert form != "md" or text == copied
    assert page.complaints == []


async def test_how_a_change_came_about_is_told_for_the_file_that_is_looked_at(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await page.goto(f"{served.link}#/review/{served.run_id}?task=limiter")
        await page.wait_for("document.querySelector('.diff-line')")
        await page.press("n n n")
        await page.role("button", "Show how it came about").focus()
        await page.press("Enter")
        await page.wait_for_text(".trail [data-kind=proposal]", "r1 +7")
        focused = "document.activeElement === document.querySelector('.trail').parentElement"
        assert await page.look(focused)
        kinds = "[...document.querySelectorAll('.trail li')].map((one) => one.dataset.kind)"
        assert await page.look(kinds) == ["task", "message", "checks", "proposal"]
        await page.press("p")
        await page.wait_for_text(".side-part .hint", "For docs/logo.png")
        await page.click(".trail [data-kind=message] a")
        await page.wait_for_text(".talk h2", "Coder")
        assert page.complaints == []
