"""Copies and links of trees, also where the disk cannot do it the fast way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agentcanvas.sandbox.copying import copy_file, link_or_copy
from agentcanvas.sandbox.manifest import scan
from agentcanvas.sandbox.stamp import stamp_of
from agentcanvas.sandbox.trees import make_folders, remove_path
from tests.sandbox.conftest import tree_of, write
from tests.sandbox.ordinary_user import as_ordinary_user

pytestmark = pytest.mark.req("S1")


def refuse(number: int) -> object:
    def refusing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refusing


def copied(source: Path, target: Path, mode: int = 0o644) -> None:
    like = stamp_of(source.lstat())
    stamp = copy_file(os.fsencode(source), os.fsencode(target), like, mode)
    assert stamp == stamp_of(target.lstat())


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EINVAL, errno.ENOSYS])
def test_a_disk_without_fast_copies_copies_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write(tmp_path, {"source": b"x" * 3_000_000})
    monkeypatch.setattr("agentcanvas.sandbox.copying.os.copy_file_range", refuse(number))
    copied(tmp_path / "source", tmp_path / "target", 0o755)
    assert (tmp_path / "target").read_bytes() == b"x" * 3_000_000


def test_a_full_disk_is_not_taken_for_a_slow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"source": "x"})
    monkeypatch.setattr("agentcanvas.sandbox.copying.os.copy_file_range", refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="space"):
        copied(tmp_path / "source", tmp_path / "target")


@pytest.mark.parametrize("number", [errno.EMLINK, errno.EPERM, errno.EXDEV])
def test_a_disk_without_links_to_give_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write(tmp_path, {"source": "frozen"})
    (tmp_path / "source").chmod(0o555)
    monkeypatch.setattr("agentcanvas.sandbox.copying.os.link", refuse(number))
    link_or_copy(os.fsencode(tmp_path / "source"), os.fsencode(tmp_path / "target"))
    assert tree_of(tmp_path)[b"target"] == ("program", b"frozen")


def test_the_umask_does_not_change_a_mode(tmp_path: Path) -> None:
    write(tmp_path, {"source": "x"})
    before = os.umask(0o077)
    try:
        copied(tmp_path / "source", tmp_path / "target", 0o664)
    finally:
        os.umask(before)
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o664


def test_an_existing_target_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path, {"source": "new", "target": "old"})
    with pytest.raises(FileExistsError):
        copied(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").read_text() == "old"


def test_every_needed_folder_is_made_once(tmp_path: Path) -> None:
    make_folders(tmp_path / "root", {b"a/b/c", b"a", b"a/b"})
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == [
        "root",
        "root/a",
        "root/a/b",
        "root/a/b/c",
    ]


def test_removal_takes_closed_folders_and_leaves_what_links_lead_to(tmp_path: Path) -> None:
    write(tmp_path, {"tree/a/b": "b", "elsewhere/kept": "k"})
    (tmp_path / "tree/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "tree/a").chmod(0)
    remove_path(tmp_path / "tree")
    remove_path(tmp_path / "tree")  # gone already: fine
    assert set(scan(tmp_path)) == {b"elsewhere/kept"}
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    remove_path(tmp_path / "link")
    assert set(scan(tmp_path)) == {b"elsewhere/kept"}


CLOSED = """
import sys
from pathlib import Path
from agentcanvas.sandbox.trees import remove_path
remove_path(Path(sys.argv[1]))
"""


def test_folders_closed_inside_closed_ones_are_removed(tmp_path: Path) -> None:
    write(tmp_path, {"parent/tree/a/b/c/file": "x", "parent/kept": "k"})
    for folder in ("parent/tree/a/b/c", "parent/tree/a/b", "parent/tree/a", "parent/tree"):
        (tmp_path / folder).chmod(0)
    (tmp_path / "parent").chmod(0o500)
    as_ordinary_user(CLOSED, str(tmp_path / "parent/tree"))
    assert set(scan(tmp_path)) == {b"parent/kept"}
