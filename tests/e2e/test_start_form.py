"""The form that starts a run: images pasted and chosen, looked at, and left out again."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from agentcanvas.app.office import open_office
from agentcanvas.app.server import read_info
from tests.e2e.browser import Page
from tests.runs.workspaces import repository

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
CHOOSE = """
(() => {
  const chosen = new DataTransfer();
  chosen.items.add(new File(["no image"], "bad.png", { type: "image/png" }));
  const input = document.querySelector("form.start input[type=file]");
  input.files = chosen.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
})()
"""


async def test_an_image_is_pasted_shown_and_removed_and_a_bad_one_is_refused(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    async with open_office(root, serve=True, port=0):
        info = read_info(root)
        assert info is not None
        await page.goto(info.link)
        await page.wait_for_text(".connection", "Live")
        await page.look("location.hash = '#/runs'")
        await page.wait_for("document.body.innerText.includes('New run')")
        await page.press("c")
        await page.wait_for("document.querySelector('form.start textarea')")
        await page.look(PASTE)
        shown = "document.querySelector('.start-images img')?.naturalWidth === 10"
        await page.wait_for(shown)
        assert list((root / ".agentcanvas" / "blobs").glob("??/*"))
        await page.click(".start-images button")
        await page.wait_for("!document.querySelector('.start-images')")
        await page.look(CHOOSE)
        await page.wait_for("document.body.innerText.includes('use PNG, JPEG')")
