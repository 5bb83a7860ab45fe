"""What lies over the page keeps the focus, gives it back, and keeps the page behind it still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import axe
from tests.e2e.browser import Page, expect
from tests.e2e.scene import scene

pytestmark = [pytest.mark.anyio, pytest.mark.req("U5")]

THEMES = ("light", "dark", "contrast")
TABS = 12
INSIDE = "!!document.activeElement.closest('[role=dialog]')"
STILL = "getComputedStyle(document.body).overflow"


async def opened(page: Page, at: str, by: str) -> None:
    """Open a dialog as a person at the keyboard does: by its key, or from its button."""
    if by.startswith("."):
        await page.tab.locator(by).focus()
        await page.press("Enter")
    else:
        await page.tab.locator(at).focus()
        await page.press(by)
    await page.role("dialog").wait_for()


@pytest.mark.parametrize("theme", THEMES)
async def test_a_dialog_keeps_the_focus_gives_it_back_and_axe_finds_nothing_in_it(
    page: Page, tmp_path: Path, built_page: Path, theme: str
) -> None:
    async with scene(tmp_path / "textkit", built_page) as stage:
        done = await stage.demo()
        waiting = await stage.solo()
        for run_id in (done, waiting):
            await stage.until_it_rests(run_id)
        await page.goto(stage.info.link)
        await page.look(f"localStorage.setItem('agentcanvas.prefs', '{{\"theme\":\"{theme}\"}}')")
        await page.reload()
        found = {}
        for name, view, by in (
            ("commands", f"run/{waiting}", "Control+k"),
            ("keys", f"run/{waiting}", "?"),
            ("what waits", f"run/{waiting}", "i"),
            ("stop", f"run/{waiting}", ".stop"),
            ("undo", f"run/{done}", "z"),
            ("start", "runs", "c"),
            ("clean up", "runs", ".runs > .toolbar .button >> nth=0"),
        ):
            await page.look(f"location.hash = '#/{view}'")
            await page.tab.locator(f"#main[data-view={view.partition('/')[0]}]").wait_for()
            await page.wait_for("!document.querySelector('#main .loading')")
            await opened(page, ".nav a >> nth=0", by)
            begun = by if by.startswith(".") else ".nav a >> nth=0"
            stops = []
            for key in ["Tab"] * TABS + ["Shift+Tab"] * TABS:
                await page.press(key)
                stops.append(await page.look(INSIDE))
            assert all(stops), f"{name}: the focus got out"
            assert await page.look(STILL) == "hidden", name
            found[name] = await axe.findings(page, "document")
            await page.press("Escape")
            await expect(page.role("dialog")).to_have_count(0)
            await expect(page.tab.locator(begun)).to_be_focused()
            assert await page.look(STILL) != "hidden", name
        assert {name: bad for name, bad in found.items() if bad} == {}
        assert await page.look("document.querySelectorAll('style').length") == 0
        assert page.complaints == []
