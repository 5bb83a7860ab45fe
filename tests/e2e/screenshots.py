"""``make screenshots``: each view of the page in light and dark, on a desk and on a phone.

The runs in the pictures are real: the demo's team, and changes that wait for a person.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import anyio

from tests.e2e.browser import Browser, Page, Theme, find_browser, launched
from tests.e2e.conftest import BUILT
from tests.e2e.ledger import flow, proposed
from tests.e2e.scene import Scene, scene

SIZES = {"1440": (1440, 900), "400": (400, 860)}
THEMES: tuple[Theme, ...] = ("light", "dark")
# A sheet that a script makes is no inline style, so the page's content policy lets it be.
STILL = """
(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { animation: none !important; transition: none !important;"
    + " caret-color: transparent !important; }");
  document.adoptedStyleSheets.push(sheet);
})()
"""
# A letter without a font is drawn as the box of every other such letter.
HAS_FONT = """
((letter) => {
  const drawn = [letter, "\\u0378"].map((one) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 40 });
    const pen = canvas.getContext("2d");
    pen.font = "24px sans-serif";
    pen.fillText(one, 4, 30);
    return canvas.toDataURL();
  });
  return drawn[0] !== drawn[1];
})(%r)
"""
LETTERS = {"ko": "한", "zh": "语"}
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
    anyio.run(_take, program, folder)


async def _take(program: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        async with launched(program) as browser, scene(Path(place) / "textkit", BUILT) as stage:
            done = await stage.demo()
            await stage.until_it_rests(done)
            waiting = await stage.solo()
            await stage.until_it_rests(waiting)
            await _shoot_all(browser, stage, done, waiting, folder)
        limiter = flow(reviewed_by="critic", check="true")
        async with (
            launched(program) as browser,
            proposed(Path(place) / "ledger", BUILT, flow_text=limiter) as served,
        ):
            await _shoot_views(
                browser, served.link, {"review": f"#/review/{served.run_id}?task=limiter"}, folder
            )


async def _shoot_views(browser: Browser, link: str, views: dict[str, str], folder: Path) -> None:
    """Each of these places in every theme and size."""
    for theme in THEMES:
        for size, (width, height) in SIZES.items():
            page = await browser.open(width=width, height=height, theme=theme)
            await page.goto(link)
            for name, place in views.items():
                await _shoot(page, place, folder / f"{name}-{size}-{theme}.png")
            await page.close()


async def _shoot_all(browser: Browser, stage: Scene, done: str, waiting: str, folder: Path) -> None:
    views = {
        "runs": "#/runs",
        "run": f"#/run/{done}",
        "run-by-task": f"#/run/{done}?by=task",
        "waiting": f"#/run/{waiting}",
        "inbox": "#/inbox",
        "transcript": f"#/transcript/{done}?agent={quote('coder_a')}",
        "report": f"#/report/{done}",
    }
    await _shoot_views(browser, stage.info.link, views, folder)
    for theme in THEMES:
        page = await browser.open(width=1440, height=900, theme=theme)
        await page.goto(stage.info.link)
        await page.wait_for(SETTLED)
        await _shoot_over(page, "Control+k", folder / f"commands-1440-{theme}.png")
        await _shoot_over(page, "?", folder / f"keys-1440-{theme}.png")
        await page.look("location.hash = '#/runs'")
        await page.wait_for("document.querySelector('.runs')")
        await _shoot_over(page, "c", folder / f"start-1440-{theme}.png")
        await page.close()
    page = await browser.open(width=1440, height=900)
    await page.goto(stage.info.link)
    await page.wait_for(SETTLED)
    await page.look("localStorage.setItem('agentcanvas.prefs', '{\"theme\":\"contrast\"}')")
    await page.reload()
    await _shoot(page, views["run"], folder / "run-1440-contrast.png")
    for language, letter in LETTERS.items():
        if not await page.look(HAS_FONT % letter):
            sys.exit(f"No font here has {letter}: install one (Debian: fonts-noto-cjk)")
        kept = f'{{"theme":"dark","language":"{language}"}}'
        await page.look(f"localStorage.setItem('agentcanvas.prefs', '{kept}')")
        await page.reload()
        await _shoot(page, views["run"], folder / f"run-1440-{language}.png")
    if page.complaints:
        sys.exit("\n".join(page.complaints))


async def _shoot(page: Page, place: str, path: Path) -> None:
    await page.wait_for("document.querySelector('#main')")
    await page.look(f"location.hash = {place!r}")
    await page.wait_for(f"location.hash === {place!r}")
    await page.wait_for(SETTLED)
    await page.look(STILL)
    # What is fetched when a view is there, and drawn once it has come.
    await page.look("new Promise((done) => setTimeout(done, 400))")
    await page.shoot(path)


async def _shoot_over(page: Page, key: str, path: Path) -> None:
    await page.press(key)
    await page.wait_for("document.querySelector('[role=dialog]')")
    await page.look("new Promise((done) => setTimeout(done, 900))")
    await page.shoot(path)
    await page.press("Escape")
    await page.wait_for("!document.querySelector('[role=dialog]')")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"))
