"""The form that starts a run: images pasted and chosen, looked at, and left out again."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentcanvas.app.office import open_office
from agentcanvas.app.server import read_info
from agentcanvas.hub.images import LARGEST_IMAGE, MOST_IMAGES
from agentcanvas.protocol.records import BlobRef
from agentcanvas.runs.office import Office
from agentcanvas.runs.shown import Side
from tests.e2e.browser import Page, expect
from tests.runs.workspaces import repository

if TYPE_CHECKING:
    from playwright.async_api import FilePayload

pytestmark = [pytest.mark.anyio, pytest.mark.req("F5")]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElF"
    "TkSuQmCC"
)
PASTE = f"""
(() => {{
  const pasted = new DataTransfer();
  const bytes = Uint8Array.from({list(PNG)});
  pasted.items.add(new File([bytes], "shot.png", {{ type: "image/png" }}));
  const event = {{ clipboardData: pasted, bubbles: true, cancelable: true }};
  document.querySelector("form.start textarea").dispatchEvent(new ClipboardEvent("paste", event));
}})()
"""


async def choose(page: Page, *files: tuple[str, bytes]) -> None:
    chosen: list[FilePayload] = [
        {"name": name, "mimeType": "image/png", "buffer": content} for name, content in files
    ]
    await page.tab.locator("form.start input[type=file]").set_input_files(chosen)


@asynccontextmanager
async def form(page: Page, folder: Path) -> AsyncIterator[tuple[Office, Path]]:
    """The start form of an empty workspace, opened by its key."""
    root = repository(folder, {"greeting.txt": "hello\n"})
    async with open_office(root, serve=True, port=0) as office:
        info = read_info(root)
        assert info is not None
        await page.goto(f"{info.link}#/runs")
        await page.wait_for_text(".connection", "Live")
        await page.role("button", "New run").first.wait_for()
        await page.press("c")
        await page.tab.locator("form.start textarea").wait_for()
        yield office, root


async def test_an_image_is_pasted_shown_and_removed_and_a_bad_one_is_refused(
    page: Page, tmp_path: Path, built_page: Path
) -> None:
    async with form(page, tmp_path / "repo") as (_, root):
        await page.look(PASTE)
        await page.wait_for("document.querySelector('.start-images img')?.naturalWidth === 10")
        assert list((root / ".agentcanvas" / "blobs").glob("??/*"))
        await page.role("button", "Remove shot.png").click()
        await page.wait_for("!document.querySelector('.start-images')")
        await choose(page, ("bad.png", b"no image"))
        await page.wait_for_text(".toast", "use PNG, JPEG")


async def test_the_form_says_how_many_images_go_along_and_holds_to_it(
    page: Page, tmp_path: Path, built_page: Path
) -> None:
    async with form(page, tmp_path / "repo"):
        await page.wait_for_text("form.start", "at most 10 images of up to 21 MB each")
        await page.tab.get_by_label("What should be done?").fill("Look")
        await page.tab.get_by_placeholder("my-agent").fill("true")
        await choose(page, ("huge.png", PNG + bytes(LARGEST_IMAGE)))
        await page.wait_for_text(".toast", "huge.png is larger than 21 MB")
        await choose(page, *((f"{n}.png", PNG + bytes([n])) for n in range(MOST_IMAGES + 1)))
        await expect(page.tab.locator(".start-images img")).to_have_count(MOST_IMAGES + 1)
        start = page.role("button", "Start")
        await expect(start).to_have_attribute("aria-disabled", "true")
        await expect(start).to_have_attribute("title", re.compile("at most 10 images"))
        await page.role("button", "Remove 3.png").click()
        await expect(start).not_to_have_attribute("aria-disabled", "true")


async def test_start_sends_the_image_along_and_it_reaches_the_worker(
    page: Page, tmp_path: Path, built_page: Path
) -> None:
    async with form(page, tmp_path / "repo") as (office, _):
        await page.tab.get_by_label("What should be done?").fill("Look at the picture")
        await page.tab.get_by_placeholder("my-agent").fill("cp {images} seen.png; echo seen")
        await choose(page, ("shot.png", PNG))
        await page.tab.get_by_alt_text("shot.png").wait_for()
        await page.role("button", "Start").click()
        await page.wait_for_text(".waiting", "Waiting for you")
        (run,) = await office.runs()
        assert run.team == ("Coder",)
        order = await office.order(run.run_id)
        assert order.images == (BlobRef.of(PNG, "image/png"),)
        assert await office.file(run.run_id, "task-1", "seen.png", Side.AFTER) == PNG
        assert page.complaints == []
