"""Keeps docs/requirements.md true: which promises are shown by a test, which are still planned.

A test names what it shows with ``@pytest.mark.req("M1", "D2")``. The markers are read from the
source, so nothing has to be imported or run. ``make requirements`` writes the status column;
tests/test_manifest.py fails when it is not what the markers say (D47).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "requirements.md"
TESTS = ROOT / "tests"

ROW = re.compile(
    r"^\| (?P<id>[A-Z]+\d+[a-z]?) \| (?P<words>.+) \| (?P<status>shown|planned) \|$", re.MULTILINE
)
LIKE_A_ROW = re.compile(r"^\|\s*[A-Z]+\d.*$", re.MULTILINE)


class ManifestError(Exception):
    """A marker or a row that cannot be what its author meant; the sentence says what to do."""


def statuses(document: str) -> Mapping[str, str]:
    """Read the status of each requirement; an id that stands twice is an error."""
    found: dict[str, str] = {}
    for line in LIKE_A_ROW.findall(document):
        if not ROW.fullmatch(line):
            raise ManifestError(
                f"docs/requirements.md: write `{line}` as `| id | words | planned |`."
            )
    for row in ROW.finditer(document):
        if row["id"] in found:
            raise ManifestError(f"docs/requirements.md lists {row['id']} twice: remove one row.")
        found[row["id"]] = row["status"]
    return found


def markers(tests: Path) -> Mapping[str, Sequence[str]]:
    """Find, for each requirement id, the places ``file:line`` whose marker names it."""
    found: dict[str, list[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for call in _marker_calls(tree):
            place = f"{path.relative_to(tests.parent)}:{call.lineno}"
            for identifier in _identifiers(call, place):
                found.setdefault(identifier, []).append(place)
    return found


def _marker_calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.req"):
            yield node


def _identifiers(call: ast.Call, place: str) -> Iterator[str]:
    for argument in call.args:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise ManifestError(
                f"{place}: give pytest.mark.req plain strings, they are read as text."
            )
        yield argument.value


def problems(document: str, marked: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Compare both ways; one sentence for each thing that is not as the markers say."""
    listed = statuses(document)
    found = [
        f"{places[0]} names {identifier}, which docs/requirements.md does not list."
        for identifier, places in marked.items()
        if identifier not in listed
    ]
    for identifier, status in listed.items():
        if status == "shown" and identifier not in marked:
            found.append(
                f"{identifier} is called shown, but no test names it: run make requirements."
            )
        if status == "planned" and identifier in marked:
            place = marked[identifier][0]
            found.append(
                f"{identifier} is called planned, but {place} shows it: run make requirements."
            )
    return found


def updated(document: str, marked: Mapping[str, Sequence[str]]) -> str:
    """Write the status column as the markers say."""

    def row(match: re.Match[str]) -> str:
        status = "shown" if match["id"] in marked else "planned"
        return f"| {match['id']} | {match['words']} | {status} |"

    return ROW.sub(row, document)


def main() -> int:
    """Update the document and say how far the tests reach."""
    try:
        marked = markers(TESTS)
        document = updated(DOCUMENT.read_text(encoding="utf-8"), marked)
        unsolved = problems(document, marked)
    except ManifestError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    DOCUMENT.write_text(document, encoding="utf-8")
    listed = statuses(document)
    shown = sum(status == "shown" for status in listed.values())
    sys.stdout.write(f"{shown} of {len(listed)} requirements are shown by tests\n")
    for sentence in unsolved:
        sys.stderr.write(f"{sentence}\n")
    return 1 if unsolved else 0


if __name__ == "__main__":
    sys.exit(main())
