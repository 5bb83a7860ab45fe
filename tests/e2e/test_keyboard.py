"""From the demo's link by keyboard alone: each thing one must know takes at most two actions.

An action is one press, a chord of two keys after each other, or words typed into what has the focus
and Enter. Every question starts from the page as the link opens it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.browser import Page
from tests.e2e.scene import scene

pytestmark = [pytest.mark.anyio, pytest.mark.req("U5")]


class Hands:
    """A person with a keyboard, who counts."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.actions = 0

    async def press(self, keys: str) -> None:
        """One key, or two after each other."""
        self.actions += 1
        await self._page.press(keys)

    async def command(self, words: str) -> None:
        """Ctrl+K, a few letters, Enter: open the bar, and choose."""
        self.actions += 2
        await self._page.command_bar()
        await self._page.type(words)
        await self._page.wait_for("document.querySelector('[cmdk-item][data-selected=true]')")
        await self._page.press("Enter")

    async def enter(self) -> None:
        """Press Enter on what has the focus."""
        self.actions += 1
        await self._page.press("Enter")

    async def sees(self, selector: str, text: str) -> None:
        await self._page.wait_for_text(selector, text)


async def test_each_thing_one_must_know_takes_at_most_two_actions(
    page: Page, tmp_path: Path, built_page: Path
) -> None:
    async with scene(tmp_path / "textkit", built_page) as stage:
        run_id = await stage.demo()
        await stage.until_it_rests(run_id)

        async def state(hands: Hands) -> None:
            await hands.sees(".head .pill", "Done")

        async def waits(hands: Hands) -> None:
            await hands.sees(".waiting", "Done: quality_gate")

        async def rejected(hands: Hands) -> None:
            await hands.sees(".tasks [data-status=rejected]", "wrap() cuts words in two")

        async def applied(hands: Hands) -> None:
            await hands.press("d")
            await hands.sees(".diff-line[data-sign='+']", "def wrap")

        async def undone(hands: Hands) -> None:
            await hands.press("z")
            await hands.sees("[role=dialog]", "Undo wrap-2?")
            await hands.enter()
            await hands.sees(".tasks [data-status=undone]", "wrap-2")

        questions: tuple[Callable[[Hands], Awaitable[None]], ...] = (
            state,
            waits,
            rejected,
            applied,
            undone,
        )
        taken = {}
        for question in questions:
            await page.goto("about:blank")
            await page.goto(stage.info.link)
            await page.wait_for("document.querySelector('.timeline [data-seq]')")
            hands = Hands(page)
            await question(hands)
            taken[question.__name__] = hands.actions
        assert all(count <= 2 for count in taken.values()), taken
        assert not (stage.root / "textkit" / "wrapping.py").exists()
        assert page.complaints == []
