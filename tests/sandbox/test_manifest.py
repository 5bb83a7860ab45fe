"""The stat manifest sees every edit, and sees no further than it should."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcanvas.sandbox.manifest import differing, newest_change, scan, settle
from tests.sandbox.conftest import write

pytestmark = pytest.mark.req("S5")


def test_a_tree_is_stamped_without_folders_internal_ones_and_what_links_lead_to(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"tree/a": "a", "tree/b/c": "c", "tree/.git/x": "x", "tree/b/.git/y": "y"})
    write(tmp_path, {"tree/dist/z": "z", "tree/b/dist/kept": "k", "elsewhere/secret": "s"})
    (tmp_path / "tree/link").symlink_to(tmp_path / "elsewhere")
    assert set(scan(tmp_path / "tree")) == {b"a", b"b/c", b"b/dist/kept", b"link"}


def test_added_removed_and_touched_paths_differ(tmp_path: Path) -> None:
    write(tmp_path, {"same": "s", "gone": "g", "touched": "t"})
    before = scan(tmp_path)
    settle(tmp_path, newest_change(before.values()))
    (tmp_path / "gone").unlink()
    os.utime(tmp_path / "touched")
    write(tmp_path, {"added": "a"})
    assert differing(before, scan(tmp_path)) == [b"added", b"gone", b"touched"]


def test_after_settling_an_edit_within_the_same_tick_shows(tmp_path: Path) -> None:
    # Without settling, a kernel with coarse clocks gives many of these edits the old ctime.
    for number in range(50):
        file = tmp_path / f"file{number}"
        file.write_bytes(b"before")
        before = scan(tmp_path)
        settle(tmp_path, newest_change(before.values()))
        with file.open("r+b") as opened:
            opened.write(b"after!")
        os.utime(file, ns=(before[file.name.encode()][2], before[file.name.encode()][2]))
        assert differing(before, scan(tmp_path)) == [file.name.encode()]


def test_a_clock_that_was_set_back_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, {"a": "a"})
    in_an_hour = newest_change(scan(tmp_path).values()) + 3_600_000_000_000
    settle(tmp_path, in_an_hour)
    assert os.listdir(tmp_path) == ["a"]  # noqa: PTH208 -- names only


def test_a_folder_closed_to_its_owner_is_opened(tmp_path: Path) -> None:
    write(tmp_path, {"closed/inner": "i"})
    (tmp_path / "closed").chmod(0)
    assert set(scan(tmp_path)) == {b"closed/inner"}
