"""Looks over a page with axe-core, as a person with other eyes, ears or hands would meet it."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser import Page

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"

RUN = """
axe.run(%s, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) =>
      node.html.slice(0, 200) + " " + node.failureSummary).join(" | ")}`))
"""


async def findings(page: Page, within: str = '"#main"') -> list[str]:
    """What is serious or critical in the view, or in all of the ``document``."""
    await page.look(AXE.read_text("utf-8") + "\n;null")
    found: list[str] = await page.look(RUN % within)
    return found
