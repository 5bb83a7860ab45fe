"""Waiting proposals that get in each other's way are named by file and lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.collisions import Collision, CollisionKind, collisions
from agentcanvas.proposals.footprint import Span, footprint
from agentcanvas.proposals.quarantine import Quarantine
from agentcanvas.proposals.tree import Entry, Mode
from tests.proposals.workspaces import Files, Link, Script, diff

pytestmark = pytest.mark.req("D7")

LINES = [f"line {n}\n" for n in range(1, 41)]
TEXT = "".join(LINES)
BASE: Files = {"f": TEXT, "g": TEXT, "h": "h\n"}


def changed(*numbers: int) -> str:
    return "".join(f"new {n}\n" if n in numbers else line for n, line in enumerate(LINES, 1))


def found(folder: Path, **after: Files) -> list[Collision]:
    steps = {
        name: footprint(diff(folder / name, BASE, {**BASE, **files}))
        for name, files in after.items()
    }
    return list(collisions(steps))


def test_the_same_lines_are_a_collision_and_their_numbers_are_told(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"f": changed(10, 11)}, p2={"f": changed(11, 12)}, p3={"g": "x\n"})
    assert one == Collision("f", CollisionKind.SAME_LINES, ("p1", "p2"), 10, 12)
    assert not one.kind.merges
    assert one.sentence == "f, lines 10-12, are changed by p1, p2"
    assert one.told_to("p1") == "f, lines 10-12, are also changed by p2"


def test_lines_side_by_side_collide_for_git_cannot_tell_their_order(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"f": changed(10)}, p2={"f": changed(11)})
    assert one.kind is CollisionKind.SAME_LINES


def test_lines_apart_share_only_the_file(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"f": changed(10)}, p2={"f": changed(12)})
    assert one == Collision("f", CollisionKind.SAME_FILE, ("p1", "p2"))
    assert one.kind.merges


def test_insertions_at_one_place_collide(tmp_path: Path) -> None:
    one, two = (TEXT.replace("line 9\n", f"line 9\n{word}\n") for word in ("a", "b"))
    (met,) = found(tmp_path, p1={"f": one}, p2={"f": two})
    assert (met.kind, met.first_line) == (CollisionKind.SAME_LINES, 10)


def test_several_places_of_one_file_are_told_apart(tmp_path: Path) -> None:
    met = found(
        tmp_path, p1={"f": changed(5, 30)}, p2={"f": changed(5)}, p3={"f": changed(30), "h": "x\n"}
    )
    assert [(c.kind, c.proposals, c.first_line) for c in met] == [
        (CollisionKind.SAME_FILE, ("p1", "p2", "p3"), None),
        (CollisionKind.SAME_LINES, ("p1", "p2"), 5),
        (CollisionKind.SAME_LINES, ("p1", "p3"), 30),
    ]


def test_the_same_change_twice_is_harmless(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"f": changed(3)}, p2={"f": changed(3)})
    assert one.kind is CollisionKind.SAME_CHANGE
    assert one.kind.merges


WHOLE: dict[str, Files] = {
    "deleted": {"f": "", "moved": TEXT},
    "a link now": {"f": Link("g")},
    "binary": {"f": b"\0"},
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_file_that_is_replaced_collides_with_every_edit(tmp_path: Path, case: str) -> None:
    after = {**BASE, **WHOLE[case]}
    if case == "deleted":
        del after["f"]
    steps = {
        "p1": footprint(diff(tmp_path / "1", BASE, after)),
        "p2": footprint(diff(tmp_path / "2", BASE, {**BASE, "f": changed(3)})),
    }
    (one,) = collisions(steps)
    assert (one.path, one.kind) == ("f", CollisionKind.WHOLE_FILE)


def test_two_new_files_of_one_name_collide(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"new": "1\n"}, p2={"new": "2\n"})
    assert one.kind is CollisionKind.WHOLE_FILE


def test_a_mode_and_an_edit_of_the_same_file_merge(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"f": Script(TEXT)}, p2={"f": changed(3)})
    assert one.kind is CollisionKind.SAME_FILE


def test_a_file_and_a_folder_of_one_name_collide(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"new": "1\n"}, p2={"new/deep/x": "2\n"})
    assert one == Collision("new", CollisionKind.FILE_AND_FOLDER, ("p1", "p2"))


def test_names_that_differ_only_in_case_collide(tmp_path: Path) -> None:
    (one,) = found(tmp_path, p1={"docs/Read.md": "1\n"}, p2={"docs/read.md": "2\n"})
    assert one == Collision("docs/read.md", CollisionKind.NAME_CLASH, ("p1", "p2"))


FOLDERS: dict[str, tuple[Files, Files, str]] = {
    "two folders": ({"Src/new.py": "1\n"}, {"src/other.py": "2\n"}, "src"),
    "a file and a folder": ({"Src": "1\n"}, {"src/other.py": "2\n"}, "src"),
    "a blank at the end": ({"src/new.py": "1\n"}, {"src /other.py": "2\n"}, "src "),
    "deep below": ({"a/B/x/1": "1\n", "a/B/y/2": "1\n"}, {"a/b/X/2": "2\n"}, "a/b"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_folders_that_differ_only_in_case_collide_once(tmp_path: Path, case: str) -> None:
    one, two, path = FOLDERS[case]
    (met,) = found(tmp_path, p1=one, p2=two, p3={"other/z": "3\n"})
    assert met == Collision(path, CollisionKind.NAME_CLASH, ("p1", "p2"))
    assert met.sentence == f"{path} is the same as another new name on some disks: p1, p2"


def test_files_beside_each_other_in_a_new_folder_do_not_collide(tmp_path: Path) -> None:
    assert found(tmp_path, p1={"src/a": "1\n"}, p2={"src/b": "2\n"}, p3={"src/c/d": "3\n"}) == []


def test_lines_of_different_bases_are_not_compared(tmp_path: Path) -> None:
    later = {"f": "first\n" * 20 + TEXT}
    steps = {
        "p1": footprint(diff(tmp_path / "1", BASE, {**BASE, "f": changed(10)})),
        "p2": footprint(diff(tmp_path / "2", later, {"f": later["f"].replace("line 10\n", "x\n")})),
    }
    (one,) = collisions(steps)
    assert (one.kind, one.first_line) == (CollisionKind.SAME_FILE, None)


def test_nobody_collides_alone_or_with_strangers(tmp_path: Path) -> None:
    assert found(tmp_path, p1={"f": changed(3, 4)}) == []
    assert found(tmp_path, p1={"f": changed(3)}, p2={"g": changed(3)}, p3={"h": "x\n"}) == []


def test_a_patch_that_is_none_is_one_clear_error() -> None:
    with pytest.raises(ProposalMalformed, match="cannot be compared with others: line 1"):
        footprint(b"hello\n")


def test_spans_leave_the_context_out(tmp_path: Path) -> None:
    after = (
        TEXT.replace("line 2\n", "two\n").replace("line 4\n", "").replace("line 6\n", "a\nline 6\n")
    )
    print_of_f = footprint(diff(tmp_path, {"f": TEXT}, {"f": after})).files["f"]
    assert print_of_f.spans == (Span(1, 2), Span(3, 4), Span(5, 5))


@settings(max_examples=25)
@given(st.sets(st.integers(1, 40), max_size=5), st.sets(st.integers(1, 40), max_size=5))
def test_what_is_said_to_merge_does_and_what_is_said_not_to_does_not(
    tmp_path_factory: pytest.TempPathFactory, one: set[int], two: set[int]
) -> None:
    if not one or not two:
        return
    folder = tmp_path_factory.mktemp("collisions")
    # Different words, so that no two of them are the same change.
    mine, theirs = changed(*one), changed(*two).replace("new", "neu")
    met = found(folder, p1={"f": mine}, p2={"f": theirs})
    with Quarantine(largest_file=10**6) as git:
        entries = [{b"f": Entry(Mode.FILE, text.encode())} for text in (TEXT, mine, theirs)]
        _, clashing = git.merge(*entries)
    assert all(each.kind.merges for each in met) == (not clashing)
