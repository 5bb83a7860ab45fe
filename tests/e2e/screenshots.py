"""``make screenshots``: each view of the page in light and dark, on a desk and on a phone.

The runs in the pictures are real: the demo's team, and a change that waits for a person.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import anyio
from anyio.to_thread import run_sync

from tests.e2e.browser import Browser, Page, find_browser
from tests.e2e.conftest import BUILT
from tests.e2e.scene import Scene, scene

SIZES = {"1440": (1440, 900), "400": (400, 860)}
THEMES = ("light", "dark")
STILL = (
    "document.head.append(Object.assign(document.createElement('style'),"
    " {textContent: '* { animation: none !important; transition: none !important;"
    " caret-color: transparent !important; }'}))"
)
SETTLED = """
document.querySelector('#main')?.children.length > 0 && !document.querySelector('.loading')
  && document.fonts.status === 'loaded'
"""


def main(folder: Path) -> None:
    """Make all pictures."""
    program = find_browser()
    if program is None:
        sys.exit("No Chromium or Chrome here to take pictures with: tools/browser.sh")
    if not (BUILT / "index.html").exists():
        sys.exit("The page is not built: make ui")
    with tempfile.TemporaryDirectory() as place:
        browser = Browser(program, Path(place) / "profile")
        try:
            anyio.run(_take, browser, Path(place) / "textkit", folder)
        finally:
            browser.close()


async def _take(browser: Browser, place: Path, folder: Path) -> None:
    async with scene(place, BUILT) as stage:
        done = await stage.demo()
        await stage.until_it_rests(done)
        waiting = await stage.solo()
        await stage.until_it_rests(waiting)
        await run_sync(_shoot_all, browser, stage, done, waiting, folder)


def _shoot_all(browser: Browser, stage: Scene, done: str, waiting: str, folder: Path) -> None:
    views = {
        "runs": "#/runs",
        "run": f"#/run/{done}",
        "run-by-task": f"#/run/{done}?by=task",
        "waiting": f"#/run/{waiting}",
        "review": f"#/review/{waiting}?task=task-1",
        "inbox": "#/inbox",
        "transcript": f"#/transcript/{done}?agent={quote('coder_a')}",
        "report": f"#/report/{done}",
    }
    for theme in THEMES:
        for size, (width, height) in SIZES.items():
            page = browser.open(width=width, height=height, theme=theme)
            page.goto(stage.info.link)
            for name, place in views.items():
                _shoot(page, place, folder / f"{name}-{size}-{theme}.png")
            if size == "1440":
                _shoot_over(page, "Ctrl+K", folder / f"commands-{size}-{theme}.png")
                _shoot_over(page, "?", folder / f"keys-{size}-{theme}.png")
                page.look("location.hash = '#/runs'")
                page.wait_for("document.querySelector('.runs')")
                _shoot_over(page, "c", folder / f"start-{size}-{theme}.png")
            page.call("Page.close")
    page = browser.open(width=1440, height=900)
    page.goto(stage.info.link)
    page.wait_for(SETTLED)
    page.look("localStorage.setItem('agentcanvas.prefs', '{\"theme\":\"contrast\"}')")
    page.call("Page.reload")
    _shoot(page, views["run"], folder / "run-1440-contrast.png")
    for language in ("ko", "zh"):
        kept = f'{{"theme":"dark","language":"{language}"}}'
        page.look(f"localStorage.setItem('agentcanvas.prefs', '{kept}')")
        page.call("Page.reload")
        _shoot(page, views["run"], folder / f"run-1440-{language}.png")
    if page.complaints:
        sys.exit("\n".join(page.complaints))


def _shoot(page: Page, place: str, path: Path) -> None:
    page.wait_for("document.querySelector('#main')")
    page.look(f"location.hash = {place!r}")
    page.wait_for(f"location.hash === {place!r}")
    page.wait_for(SETTLED)
    page.look(STILL)
    # What is fetched when a view is there, and drawn once it has come.
    page.look("new Promise((done) => setTimeout(done, 400))")
    page.shoot(path)


def _shoot_over(page: Page, key: str, path: Path) -> None:
    if key == "Ctrl+K":
        page.click(".command-button")
    else:
        page.look(f"window.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}))")
    page.wait_for("document.querySelector('[role=dialog]')")
    page.look("new Promise((done) => setTimeout(done, 900))")
    page.shoot(path)
    page.press("Escape")
    page.wait_for("!document.querySelector('[role=dialog]')")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"))
