"""docs/patterns: each page says what its pattern is for, when not to use it, who speaks when."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.patterns import PATTERNS

pytestmark = pytest.mark.req("I4")

DOCS = Path(__file__).parents[2] / "docs" / "patterns"


@pytest.mark.parametrize("id_", [pattern.id for pattern in PATTERNS])
def test_a_page_says_what_it_is_for_and_when_not(id_: str) -> None:
    page = (DOCS / f"{id_}.md").read_text("utf-8")
    prose = page.partition("<!-- generated: reference -->")[0]
    assert prose.startswith(f"# {id_}\n")
    assert "\n**When not to.** " in prose
    assert "\nAfter " in prose
    assert "\nsequenceDiagram\n" in prose
    assert len(prose) < 3_000, "a page is short"
