"""docs/requirements.md and the markers of the tests say the same, in both directions (D47)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.requirements import (
    DOCUMENT,
    TESTS,
    ManifestError,
    markers,
    problems,
    statuses,
    updated,
)

pytestmark = pytest.mark.req("D47")

LIST = """
| id | promise | status |
| --- | --- | --- |
| M1 | Messages are read | shown |
| I4a | Defaults are valid | planned |
"""


def numbered(prefix: str, last: int, *, width: int = 1) -> set[str]:
    return {f"{prefix}{number:0{width}}" for number in range(1, last + 1)}


def test_the_list_and_the_markers_agree() -> None:
    found = problems(DOCUMENT.read_text(encoding="utf-8"), markers(TESTS))
    assert not found, "\n".join(found)


def test_the_list_is_complete() -> None:
    counts = {"PR": 6, "W": 3, "M": 5, "T": 6, "L": 1, "H": 11, "I": 5, "S": 9, "R": 5}
    counts |= {"V": 6, "U": 5, "F": 6, "C": 13, "D": 49}
    expected = {"I4a"} | numbered("P", 20, width=2)
    for prefix, last in counts.items():
        expected |= numbered(prefix, last)
    assert set(statuses(DOCUMENT.read_text(encoding="utf-8"))) == expected


def test_a_marker_for_an_unknown_id_is_told_with_its_place() -> None:
    found = problems(LIST, {"M1": ["tests/a.py:1"], "M9": ["tests/a.py:2"]})
    assert found == ["tests/a.py:2 names M9, which docs/requirements.md does not list."]


def test_a_promise_called_shown_without_a_test_is_told() -> None:
    (found,) = problems(LIST, {})
    assert found.startswith("M1 is called shown, but no test names it")


def test_a_promise_called_planned_with_a_test_is_told() -> None:
    (found,) = problems(LIST, {"M1": ["tests/a.py:1"], "I4a": ["tests/a.py:2"]})
    assert found.startswith("I4a is called planned, but tests/a.py:2 shows it")


def test_updating_writes_the_status_column_and_nothing_else() -> None:
    marked = {"I4a": ["tests/a.py:2"]}
    after = updated(LIST, marked)
    assert after == LIST.replace("read | shown", "read | planned").replace(
        "valid | planned", "valid | shown"
    )
    assert not problems(after, marked)


def test_an_id_listed_twice_is_refused() -> None:
    with pytest.raises(ManifestError, match="lists M1 twice"):
        statuses(LIST + "| M1 | Again | planned |\n")


def test_a_row_with_an_unknown_status_is_refused() -> None:
    with pytest.raises(ManifestError, match="M2"):
        statuses(LIST + "| M2 | Something | done |\n")


def test_markers_are_read_from_functions_modules_and_parameters(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "deep"
    folder.mkdir(parents=True)
    (folder / "test_one.py").write_text(
        "import pytest\n"
        'pytestmark = [pytest.mark.anyio, pytest.mark.req("A1")]\n'
        '@pytest.mark.req("B1", "B2")\n'
        "def test_b(): ...\n"
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("C1"))])\n'
        "def test_c(x): ...\n"
        '"""@pytest.mark.req("D1") in a text is no marker"""\n'
    )
    (folder / "helper.py").write_text('import pytest\nx = pytest.mark.req("E1")\n')
    assert markers(tmp_path / "tests") == {
        "A1": ["tests/deep/test_one.py:2"],
        "B1": ["tests/deep/test_one.py:3"],
        "B2": ["tests/deep/test_one.py:3"],
        "C1": ["tests/deep/test_one.py:5"],
    }


def test_a_marker_that_cannot_be_read_as_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import pytest\npytestmark = pytest.mark.req(NAME)\n")
    with pytest.raises(ManifestError, match=r"test_one\.py:2"):
        markers(tmp_path)
