"""The page on the product's own server: the link lets in, and a restart loses nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentcanvas.app.server import serve_beside
from agentcanvas.store import Store
from agentcanvas.web.planning import Budget
from tests.e2e import story
from tests.e2e.browser import Page
from tests.web.office import FakeOffice

pytestmark = [pytest.mark.anyio, pytest.mark.req("V1")]


class Unlimited:
    """As much of a planner as the page asks of one."""

    async def budget(self, run_id: str) -> Budget:
        del run_id
        return Budget()


async def test_the_printed_link_opens_the_page_and_it_comes_back_by_itself_after_a_restart(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    (tmp_path / ".agentcanvas").mkdir()
    async with await Store.open(tmp_path / ".agentcanvas" / "agentcanvas.db") as store:
        office = FakeOffice(store)
        await office.write("run_1", story.begin())
        planner: Any = Unlimited()
        serve = partial(serve_beside, office, store, tmp_path, static=built_page, planner=planner)
        async with serve(port=0) as info:
            await page.goto(info.link)
            await page.wait_for_text(".connection", "Live")
            assert await page.look("location.search") == ""
            assert await page.texts(".workspace") == [tmp_path.name]
            await office.write("run_1", story.dispatch("T1", "Write it"))
            await page.wait_for_text(".collab-card", "Write it")
            assert page.complaints == []

        await page.wait_for_text(".lost", "Connection lost")
        await page.look("location.hash = '#/runs'")
        await page.wait_for_text(".empty", "The server does not answer, or is a newer one")
        await office.write("run_1", story.note("while nobody served"))
        port = urlsplit(info.url).port
        assert port is not None
        async with serve(port=port) as again:
            assert again.url == info.url
            await page.look("document.querySelector('.lost .button')?.click()")
            await page.click(".empty .button")
            await page.wait_for_text(".runs h2", "Runs")
            await page.look("location.hash = '#/run'")
            await page.wait_for_text(".line", "while nobody served")
            await office.write("run_1", story.note("and it goes on"))
            await page.wait_for_text(".line", "and it goes on")
            seqs = "[...document.querySelectorAll('[data-seq]')].map((one) => +one.dataset.seq)"
            assert await page.look(seqs) == [1, 2, 3, 4]
