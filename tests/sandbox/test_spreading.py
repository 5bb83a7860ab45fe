"""Work on many files is spread over processes, and comes out as if one had done it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.sandbox import copying, spreading
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.manifest import Manifest, scan
from agentcanvas.sandbox.spreading import BATCH, spread
from agentcanvas.sandbox.trees import make_folders, standing_in
from tests.sandbox.conftest import tree_of, write

pytestmark = pytest.mark.req("S3")

MANY = 12 * BATCH + 7


@pytest.fixture(params=[1, 3])
def helpers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Have so many, however many cores there are."""
    monkeypatch.setattr(spreading, "helpers_at_most", lambda: request.param)
    return int(request.param)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write(tmp_path / "source", {f"{n // 50}/{n % 7}/file{n}": f"{n}" for n in range(MANY)})
    return tmp_path / "source"


@pytest.fixture
def target(tmp_path: Path, source: Path) -> Path:
    make_folders(tmp_path / "target", folders_of(scan(source)))
    return tmp_path / "target"


def copied(source: Path, target: Path, stamps: Manifest) -> Manifest:
    with standing_in(source, target) as folders:
        made = spread(copying.copy, folders, list(stamps.items()))
    return dict(zip(stamps, made, strict=True))


def heard(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many items each batch had that a helper did."""
    batches: list[int] = []
    helper = spreading._helper

    @contextmanager
    def listening(work: str, folders: tuple[int, ...]) -> Iterator[object]:
        with helper(work, folders) as do:

            def noting(items: Sequence[object]) -> object:
                batches.append(len(items))
                return do(items)

            yield noting

    monkeypatch.setattr(spreading, "_helper", listening)
    return batches


def test_thousands_of_files_are_copied_by_several_and_told_in_order(
    source: Path, target: Path, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_helpers = heard(monkeypatch)
    made = copied(source, target, scan(source))
    assert made == scan(target)
    assert tree_of(target) == tree_of(source)
    assert 0 < sum(by_helpers) < MANY


def test_a_few_files_are_not_worth_a_process(
    source: Path, target: Path, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_helpers = heard(monkeypatch)
    some = dict(list(scan(source).items())[: 7 * BATCH])
    assert copied(source, target, some) == scan(target)
    assert by_helpers == []


@pytest.mark.parametrize("which", [0, -1])
def test_an_error_is_the_same_whoever_has_it_and_ends_the_work(
    source: Path, target: Path, helpers: int, which: int
) -> None:
    """Ours are the first files, those of the helpers the last."""
    stamps = scan(source)
    missing = list(stamps)[which]
    (source / os.fsdecode(missing)).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        copied(source, target, stamps)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == missing


def test_a_helper_that_is_ended_is_told(
    source: Path,
    target: Path,
    helpers: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(spreading, "_START", "import os, signal; os.kill(os.getpid(), 9)")
    with pytest.raises(OSError, match="helped to copy was ended") as caught:
        copied(source, target, scan(source))
    assert caught.value.errno == errno.EIO


@pytest.mark.parametrize("interpreter", ["", "/nowhere/python"])
def test_without_another_interpreter_one_does_it_all(
    source: Path, target: Path, helpers: int, interpreter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    assert copied(source, target, scan(source)) == scan(target)


def test_nobody_is_left_over(
    source: Path, target: Path, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    begin = subprocess.Popen

    def noting(*about: Any, **more: Any) -> Any:
        process = begin(*about, **more)
        started.append(process.pid)
        return process

    monkeypatch.setattr(subprocess, "Popen", noting)
    copied(source, target, scan(source))
    assert len(started) == helpers
    assert not any(Path("/proc", str(pid)).exists() for pid in started)


def test_a_helper_ends_when_nobody_is_left_to_hand_it_work(source: Path) -> None:
    """As after kill -9: its end of the pipe says so."""
    with standing_in(source) as folders, spreading._helper("is_untouched", folders) as do:
        (first, stamp), *_ = scan(source).items()
        assert do([(first, stamp), (first, (*stamp[:3], 0, 0))]) == [True, False]
    # Leaving the block only closes the pipe and waits.


def test_two_trees_are_made_one_after_the_other(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "helpers_at_most", lambda: 1)
    at_once: list[int] = []
    now = 0
    helper = spreading._helper

    @contextmanager
    def counting(work: str, folders: tuple[int, ...]) -> Iterator[object]:
        nonlocal now
        now += 1
        at_once.append(now)
        with helper(work, folders) as do:
            yield do
        now -= 1

    monkeypatch.setattr(spreading, "_helper", counting)
    stamps = list(scan(source).items())

    def look() -> None:
        with standing_in(source) as folders:
            assert all(spread(copying.is_untouched, folders, stamps))

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join()
    assert at_once == [1, 1, 1]


def test_a_file_that_does_not_hold_still_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"busy": "0", "target/.keep": ""})
    copy = copying.copy_open_file

    def interrupted(*about: Any) -> object:
        made = copy(*about)
        (tmp_path / "busy").write_text((tmp_path / "busy").read_text() + "x")
        return made

    monkeypatch.setattr(copying, "copy_open_file", interrupted)
    with standing_in(tmp_path, tmp_path / "target") as folders:
        assert copying.freeze(folders, (b"busy", None)) == copying.RESTLESS
    assert not (tmp_path / "target/busy").exists()
