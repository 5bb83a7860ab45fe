"""Whether two scopes can meet, held against what a scope really matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.flows.overlap import overlap
from agentcanvas.sandbox.globs import within

PIECES = st.sampled_from(["a", "b", "ab", "*", "**", "?", "{a,b}", "a*", "*b", "[a]", "a.{b,c}"])
GLOBS = st.lists(PIECES, min_size=1, max_size=4).map("/".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "aab", "[a]", "a.b"]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/**", "src/a.py", True),
        ("src", "src/deep/er.py", True),
        ("src/*.py", "src/x/*.py", False),
        ("**/test_*.py", "tests/test_a.py", True),
        ("docs/**", "src/**", False),
        ("{src,docs}/*.md", "docs/a.md", True),
        ("*.py", "src/*.py", False),
        ("./src/", "src", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("**", "anything", True),
    ],
)
def test_scopes_meet_or_stay_apart(one: str, other: str, *, expected: bool) -> None:
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


def test_more_choices_than_anybody_could_look_at_may_meet() -> None:
    assert overlap("{a,b}" * 60, "x")
    assert overlap("x", "{" + ",".join(map(str, range(1000))) + "}")


@given(GLOBS, GLOBS, PATHS.map("/".join))
def test_a_path_in_both_scopes_means_that_they_meet(one: str, other: str, path: str) -> None:
    if within(path, [one]) and within(path, [other]):
        assert overlap(one, other)


@given(GLOBS, PATHS.map("/".join))
def test_a_glob_meets_a_file_exactly_when_it_matches_it_or_something_below(
    glob: str, path: str
) -> None:
    if within(path, [glob]):
        assert overlap(glob, path)
    elif not any(within(f"{path}/{rest}", [glob]) for rest in _BELOW):
        # A plain name also covers what is below it, so only that may let the two meet.
        assert not overlap(glob, path) or _may_go_below(glob, path)


_BELOW = ("a", "b", "ab", "a/a", "a/b", "b/a", "a.b", "a.c", "[a]", "a/a/a")


def _may_go_below(glob: str, path: str) -> bool:
    return len(glob.split("/")) > len(path.split("/")) or "**" in glob
