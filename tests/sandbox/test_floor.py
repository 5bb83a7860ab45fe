"""A process leaves room on the disk; who takes it is ended and named, who did not is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentcanvas.sandbox.confine import Command, View
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.floor import Floor
from agentcanvas.sandbox.limits import Breach, Cause, Limits
from agentcanvas.sandbox.process import Ending, run_confined
from tests.full_disks import fill, free_bytes, make_room, small_disk

pytestmark = pytest.mark.req("H10")

KB, MB = 1024, 1024 * 1024
LIMITS = Limits(deadline_s=60, grace_s=30, poll_s=0.02)


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk() as top:
        (top / "work").mkdir()
        yield top


def wrote(disk: Path, size: int, name: str = "work/file") -> None:
    (disk / name).write_bytes(bytes(size))


async def run(disk: Path, script: str) -> Ending:
    for name in ("home", "tmp"):
        (disk / name).mkdir()
    view = View(
        workspace=disk, tree=disk / "work", home=disk / "home", tmp=disk / "tmp", writable=True
    )
    command = Command(("/bin/sh", "-c", script))
    with anyio.fail_after(50):
        ending, _ = await run_confined(Unconfined(), view, command, LIMITS)
    return ending


async def test_whoever_fills_the_disk_slowly_is_ended_before_it_is_full(disk: Path) -> None:
    ending = await run(
        disk, "trap '' TERM; while :; do head -c 200000 /dev/zero >> big; sleep 0.01; done"
    )
    assert ending.cause is Cause.DISK
    assert "are to stay free" in ending.reason
    assert free_bytes(disk) > 0


async def test_whoever_fills_the_disk_at_once_and_fails_is_told_why(disk: Path) -> None:
    ending = await run(disk, "head -c 30000000 /dev/zero > big; exit 3")
    assert ending.cause is Cause.DISK
    assert ending.reason.startswith("it wrote ")


def looked(floor: Floor) -> Breach | None:
    assert floor.is_near
    return floor.look()


def test_what_somebody_else_writes_ends_nobody(disk: Path) -> None:
    floor = Floor([disk / "work"], LIMITS)
    wrote(disk, 100 * KB)
    fill(disk)
    assert floor.is_low
    assert looked(floor) is None


def test_a_disk_that_was_full_before_ends_nobody(disk: Path) -> None:
    fill(disk)
    floor = Floor([disk / "work"], LIMITS)
    assert not floor.is_low
    assert looked(floor) is None


def test_the_last_of_a_nearly_full_disk_may_not_be_taken_either(disk: Path) -> None:
    fill(disk, but=600 * KB)
    floor = Floor([disk / "work"], LIMITS)
    wrote(disk, 200 * KB)
    assert looked(floor) is None
    wrote(disk, 300 * KB, "work/other")
    breach = looked(floor)
    assert breach is not None
    make_room(disk)
    assert looked(floor) is None


def test_a_small_disk_has_a_small_floor_and_none_is_none(disk: Path) -> None:
    floor = Floor([disk / "work"], LIMITS)
    wrote(disk, 15 * MB)
    assert looked(floor) is None
    unlimited = Floor([disk / "work"], Limits(free_bytes=None))
    fill(disk)
    assert not unlimited.is_low
