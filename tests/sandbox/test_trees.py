"""Copies and links of trees, also where the disk cannot do it the fast way."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from agentcanvas.sandbox import trees
from agentcanvas.sandbox.manifest import scan, stamp_of
from agentcanvas.sandbox.trees import (
    copy_file,
    in_parallel,
    link_or_copy,
    make_folders,
    remove_path,
)
from tests.sandbox.conftest import tree_of, write

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
    monkeypatch.setattr("agentcanvas.sandbox.trees.os.copy_file_range", refuse(number))
    copied(tmp_path / "source", tmp_path / "target", 0o755)
    assert (tmp_path / "target").read_bytes() == b"x" * 3_000_000


def test_a_full_disk_is_not_taken_for_a_slow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"source": "x"})
    monkeypatch.setattr("agentcanvas.sandbox.trees.os.copy_file_range", refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="space"):
        copied(tmp_path / "source", tmp_path / "target")


@pytest.mark.parametrize("number", [errno.EMLINK, errno.EPERM, errno.EXDEV])
def test_a_disk_without_links_to_give_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write(tmp_path, {"source": "frozen"})
    (tmp_path / "source").chmod(0o555)
    monkeypatch.setattr("agentcanvas.sandbox.trees.os.link", refuse(number))
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


def test_thousands_of_files_are_copied_in_order_and_the_first_error_is_raised(
    tmp_path: Path,
) -> None:
    numbers = list(range(12 * trees._BATCH + 7))
    assert in_parallel(lambda n: n * 2, numbers) == [n * 2 for n in numbers]
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda n: 1 // (n - 700), numbers)


@pytest.mark.parametrize(("together", "many"), [(0.9, True), (1.1, False)])
def test_threads_are_used_where_they_win(together: float, many: bool) -> None:
    ticks = iter([0.0, 1.0, 1.0, 1.0 + together * trees._THREADS])
    numbers = range(12 * trees._BATCH)
    doers = in_parallel(
        lambda _: threading.current_thread().name, numbers, seconds=lambda: next(ticks)
    )
    alone, tried = doers[: 2 * trees._BATCH], (2 + trees._THREADS) * trees._BATCH
    assert set(alone) == {threading.current_thread().name}
    assert (threading.current_thread().name in doers[tried:]) is not many


def test_two_trees_are_made_one_after_the_other() -> None:
    numbers = range(12 * trees._BATCH)
    seen: list[str] = []

    def make(name: str) -> None:
        in_parallel(lambda _: seen.append(name), numbers)

    makers = [threading.Thread(target=make, args=(name,)) for name in "ab"]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert len(seen) == 2 * len(numbers)
    assert len(set(seen[: len(numbers)])) == 1


def test_every_needed_folder_is_made_once(tmp_path: Path) -> None:
    make_folders(os.fsencode(tmp_path / "root"), [b"a/b/c/file", b"a/other", b"top", b"a/b/x"])
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
