"""A real Chromium, driven by Playwright: what the tests, benchmarks and pictures say to it.

Playwright brings its own driver and none of its browsers: the one of this machine is used. What is
here is the vocabulary that tests share; whatever else Playwright can do is one step away, by
``page.tab``. Waiting happens in the page, on what it shows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if (
    TYPE_CHECKING
):  # not every machine has a Playwright, and without it the tests are to skip, loudly
    from playwright import async_api as playwright
    from playwright.async_api._generated import LocatorAssertions

PATIENCE_S = 20
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FETCHED = Path(__file__).parents[2] / ".browser" / "chromium"

# The graphics card of a test machine is none, and no proxy may stand between page and server.
FLAGS = ("--disable-gpu", "--no-proxy-server")

# Playwright's own waiting evaluates text in the page later on, which our content policy forbids.
WAIT = """
new Promise((done, fail) => {
  const until = performance.now() + %d;
  (function look() {
    const found = (%s);
    if (found) done(found instanceof Node ? true : found);
    else if (performance.now() > until) fail(new Error("still not so: " + %s));
    else setTimeout(look, 15);
  })();
})
"""

Theme = Literal["dark", "light"]

# Read before the tests put the user's settings aside.
NAMED = os.environ.get("AGENTCANVAS_BROWSER")


def expect(locator: playwright.Locator) -> LocatorAssertions:
    """Playwright's own assertions, which wait as long as everything here."""
    from playwright.async_api import expect as patiently  # noqa: PLC0415  # see above

    patiently.set_options(timeout=PATIENCE_S * 1000)
    return patiently(locator)


def find_browser() -> str | None:
    """The browser of this machine, if it has one, and what it is driven with."""
    if find_spec("playwright") is None:
        return None
    found = NAMED or next(filter(None, map(shutil.which, NAMES)), None)
    return found or next((str(path) for path in (Path(MAC), FETCHED) if path.exists()), None)


@asynccontextmanager
async def launched(program: str) -> AsyncIterator[Browser]:
    """A browser process with a profile of its own."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  # see above

    is_root = os.geteuid() == 0  # whom Chromium refuses its own sandbox
    async with async_playwright() as driver:
        process = await driver.chromium.launch(
            executable_path=program, args=FLAGS, chromium_sandbox=not is_root
        )
        try:
            yield Browser(process)
        finally:
            await process.close()


@dataclass(frozen=True)
class Browser:
    """One browser process."""

    process: playwright.Browser

    async def open(
        self,
        *,
        width: int = 1280,
        height: int = 800,
        theme: Theme = "dark",
        beside: Page | None = None,
        **more: Any,
    ) -> Page:
        """A new tab, alone with its cookies, or beside another one of the same person."""
        context = (
            beside.tab.context
            if beside
            else await self.process.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme, **more
            )
        )
        context.set_default_timeout(PATIENCE_S * 1000)
        return Page(await context.new_page())


@dataclass
class Page:
    """One tab: what a person could do with it, and what it complained about."""

    tab: playwright.Page
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tab.on("console", self._hear)
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, said: playwright.ConsoleMessage) -> None:
        if said.type in {"error", "warning"}:
            self.complaints.append(f"{said.type}: {said.text} {said.location['url']}")

    def role(self, role: Any, name: str | re.Pattern[str] | None = None) -> playwright.Locator:
        """What an assistive technology finds under a role and a name."""
        return self.tab.get_by_role(role, name=name)

    def find(self, selector: str, text: str | None = None) -> playwright.Locator:
        """The elements of a selector that are to be seen, and hold a text."""
        holds = None if text is None else re.compile(re.escape(text))
        return self.tab.locator(selector).filter(has_text=holds, visible=True)

    async def goto(self, address: str) -> None:
        await self.tab.goto(address)

    async def reload(self) -> None:
        await self.tab.reload()

    async def look(self, expression: str) -> Any:
        """The value of an expression in the page, which may be a promise."""
        return await self.tab.evaluate(expression)

    async def wait_for(self, expression: str) -> Any:
        """The value of an expression, once it is something."""
        return await self.look(WAIT % (PATIENCE_S * 1000, expression, json.dumps(expression)))

    async def wait_for_text(self, selector: str, text: str) -> None:
        await self.find(selector, text).first.wait_for()

    async def texts(self, selector: str) -> Sequence[str]:
        return await self.tab.locator(selector).all_text_contents()

    async def press(self, names: str) -> None:
        """Press the named keys, one after the other."""
        for name in names.split():
            await self.tab.keyboard.press(name)

    async def type(self, text: str) -> None:
        """Put text where the focus is, as if it were typed."""
        await self.tab.keyboard.insert_text(text)

    async def command_bar(self) -> None:
        await self.press("Control+k")
        await expect(self.tab.locator("[cmdk-input]")).to_be_focused()

    async def click(self, selector: str) -> None:
        await self.tab.locator(selector).first.click()

    async def wheel(self, selector: str, by: int) -> None:
        """Turn the wheel over an element."""
        await self.tab.locator(selector).first.hover()
        await self.tab.mouse.wheel(0, by)

    async def resize(self, width: int, height: int) -> None:
        await self.tab.set_viewport_size({"width": width, "height": height})

    async def prefer(self, theme: Theme) -> None:
        await self.tab.emulate_media(color_scheme=theme)

    async def come_to_front(self) -> None:
        await self.tab.bring_to_front()

    async def shoot(self, path: Path) -> None:
        await self.tab.screenshot(path=path)

    async def close(self) -> None:
        """Close this tab; tabs beside it stay."""
        await self.tab.close()

    async def leave(self) -> None:
        """Close this tab and those beside it, and forget their cookies."""
        await self.tab.context.close()
