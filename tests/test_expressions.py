"""Regular expressions that every Python we run on reads in the same way."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined] # there is no public way to look into one
from typing import Any

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def texts(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value
            yield value if isinstance(value, str) else value.decode("latin-1")


def steps(parsed: Any) -> Iterator[tuple[str, Any]]:
    """Every operation of a parsed expression, inner ones included, with what it works on."""
    if isinstance(parsed, _parser.SubPattern):
        for name, work in parsed:
            yield str(name), work
            yield from steps(work)
    elif isinstance(parsed, tuple | list):
        for each in parsed:
            yield from steps(each)


def is_misread(expression: str) -> bool:
    """Whether it gives up backtracking around something that backtracks.

    Python 3.11 before 3.11.5 goes on at the wrong place after such a group has failed
    (python/cpython#106052): a check "npm test" was run as "pm test".
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parser.parse(expression)
    except Exception:  # noqa: BLE001 - most texts are no expressions, and may fail in any way
        return False
    return any(
        outer in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP")
        and any(inner in ("MAX_REPEAT", "MIN_REPEAT") for inner, _ in steps(work))
        for outer, work in steps(parsed)
    )


def test_no_expression_is_one_that_an_older_python_misreads() -> None:
    found = [
        f"{file.relative_to(SOURCE)}: {text}"
        for file in sorted(SOURCE.rglob("*.py"))
        for text in texts(file)
        if is_misread(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("expression", "misread"),
    [
        (r"(?:([a-z][a-z0-9]{0,39})=)?+(.*)", True),
        (r"(?>a*b)c", True),
        (r'"(?:[^"]++)*+"', False),
        (r"(?:a*b)?c", False),
        (r"(", False),
    ],
)
def test_what_is_misread_is_known(expression: str, misread: bool) -> None:
    assert is_misread(expression) is misread
