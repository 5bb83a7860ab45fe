"""Hunks put to work without git: exactly where they say, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.proposals.hunks import MisfitError, blob_id, content_after, surely_apart
from agentcanvas.proposals.outline import read_outline
from tests.proposals.workspaces import diff

pytestmark = pytest.mark.req("S5", "D13")

TEXT = st.lists(st.sampled_from(["a", "b", "\r", "", "ü", "c\r"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join(lines) + "\n"])
)


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_the_file_after_them_is_the_one_that_git_meant(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    folder = tmp_path_factory.mktemp("hunks")
    old, new = before.encode(), after.encode()
    patch = diff(folder, {"f": old}, {"f": new})
    if not patch:
        return
    (section,) = read_outline(patch)
    assert content_after(old, section.hunks) == new
    assert blob_id(new).encode().startswith(section.new)
    assert blob_id(old).encode().startswith(section.old)


def test_on_another_file_they_do_not_fit(tmp_path: Path) -> None:
    lines = [f"{n}\n" for n in range(20)]
    before = "".join(lines).encode()
    patch = diff(tmp_path, {"f": before}, {"f": before.replace(b"12\n", b"x\n")})
    hunks = read_outline(patch)[0].hunks
    for other in (b"first\n" + before, before.replace(b"11\n", b"y\n"), b"", before[:20]):
        with pytest.raises(MisfitError, match="the hunk at line 10 does not fit"):
            content_after(other, hunks)
    with pytest.raises(MisfitError):
        content_after(before, [*hunks, *hunks])


LONG = [f"line {n}\n" for n in range(60)]


def test_far_apart_is_known_without_git_and_near_is_left_to_it() -> None:
    before = "".join(LONG).encode()
    now = before.replace(b"line 30\n", b"mine\n")
    assert surely_apart(before, now, [(10, 11), (50, 52)])
    assert not surely_apart(before, now, [(10, 11), (30, 31)])
    assert not surely_apart(before, now, [(32, 33)]), "a line between is for git to judge"


def test_an_edit_that_a_diff_could_place_elsewhere_is_left_to_git() -> None:
    """One more blank line among many: which one is new, nobody can tell."""
    before = b"first\n" + b"\n" * 30 + b"last\n"
    now = b"first\n" + b"\n" * 31 + b"last\n"
    assert not surely_apart(before, now, [(2, 3)])
    assert not surely_apart(now, before, [(2, 3)])


def test_binary_files_are_left_to_git() -> None:
    before = "".join(LONG).encode()
    assert not surely_apart(before + b"\0", before + b"\0x", [(1, 2)])
