"""A disk in memory is there while it is used, and nothing of it is left afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools import loop_disks
from tools.loop_disks import MEMORY, NoDisk, fresh_disk, remove_leftovers, why_no_disk

KIND = "ext4"
SIZE = 64

needs_disks = pytest.mark.skipif(bool(why_no_disk(KIND)), reason=f"no disk: {why_no_disk(KIND)}")


def disks_of(maker: int) -> list[Path]:
    return list(MEMORY.glob(f"agentcanvas-disk-{maker}-*"))


def disk_or_skip(kind: str) -> None:
    try:
        with fresh_disk(kind, SIZE):
            pass
    except NoDisk as reason:
        pytest.skip(f"no disk: {reason}")


@needs_disks
def test_a_disk_is_empty_and_goes_with_all_that_is_on_it() -> None:
    disk_or_skip(KIND)
    with fresh_disk(KIND, SIZE) as top:
        assert os.path.ismount(top)
        assert list(top.iterdir()) == []
        (top / "file").write_text("x")
    assert not top.exists()
    assert disks_of(os.getpid()) == []


@needs_disks
def test_a_disk_goes_when_its_user_fails_or_is_interrupted() -> None:
    disk_or_skip(KIND)
    for problem in (ValueError, KeyboardInterrupt):
        with pytest.raises(problem), fresh_disk(KIND, SIZE):
            raise problem
    assert disks_of(os.getpid()) == []


@needs_disks
def test_a_disk_goes_while_somebody_still_has_a_file_on_it_open() -> None:
    disk_or_skip(KIND)
    with fresh_disk(KIND, SIZE) as top:
        busy = (top / "file").open("w")
    try:
        assert disks_of(os.getpid()) == []
    finally:
        busy.close()


@needs_disks
def test_what_a_killed_maker_left_is_taken_away_before_the_next_disk_is_made() -> None:
    disk_or_skip(KIND)
    script = (
        "from tools.loop_disks import fresh_disk\n"
        f"with fresh_disk({KIND!r}, {SIZE}) as top:\n"
        "    print(top, flush=True)\n"
        "    input()\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        top = Path(maker.stdout.readline().decode().strip())
        assert os.path.ismount(top)
        maker.send_signal(signal.SIGKILL)
        maker.wait()
    assert os.path.ismount(top)
    remove_leftovers()
    assert not top.exists()
    assert disks_of(maker.pid) == []


@needs_disks
def test_a_disk_larger_than_half_of_the_free_memory_is_refused() -> None:
    with pytest.raises(NoDisk, match="MB of free memory"), fresh_disk(KIND, 1 << 30):
        pass


def test_why_there_is_no_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_no_disk(KIND) == "only root may mount one"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(loop_disks, "MEMORY", Path("/nowhere"))
    assert why_no_disk(KIND) == "/nowhere is not in memory"
    with pytest.raises(NoDisk, match="not in memory"), fresh_disk(KIND, SIZE):
        pass
    monkeypatch.setattr(sys, "platform", "darwin")
    assert why_no_disk(KIND) == "loop devices are Linux's"
