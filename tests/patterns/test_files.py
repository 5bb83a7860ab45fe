"""A pattern is one file that a reader takes in at once; none speaks of another."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from agentcanvas.pattern import Pattern
from agentcanvas.patterns import PATTERNS

pytestmark = pytest.mark.req("I4")

MOST_LINES = 130
MOST_ON_AVERAGE = 115
IDS = [pattern.id for pattern in PATTERNS]


def file_of(pattern: Pattern) -> Path:
    return Path(sys.modules[type(pattern).__module__].__file__ or "")


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_a_file_is_short_and_named_for_its_pattern(pattern: Pattern) -> None:
    file = file_of(pattern)
    assert file.stem == pattern.id
    assert len(file.read_text("utf-8").splitlines()) <= MOST_LINES


def test_most_files_are_about_a_hundred_lines() -> None:
    lengths = [len(file_of(pattern).read_text("utf-8").splitlines()) for pattern in PATTERNS]
    assert sum(lengths) / len(lengths) <= MOST_ON_AVERAGE


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_a_pattern_imports_no_other(pattern: Pattern) -> None:
    tree = ast.parse(file_of(pattern).read_text("utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}"]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    others = {f"agentcanvas.patterns.{id_}" for id_ in IDS}
    assert not imported & others
    assert "agentcanvas.patterns" not in imported
