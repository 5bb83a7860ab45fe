"""Fresh disks in memory, for tests and benchmarks of what a file system does: ext4, XFS, btrfs.

A sparse image is made, mounted on a loop device, and unlinked at once, so that the last unmount
frees everything. Disks whose maker was killed are found by its process id and taken away before
the next is made. Only root may mount; where a disk cannot be had, ``NoDisk`` says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 -- a name of our own below it, made by mkdtemp

MEGABYTE = 1 << 20
_PREFIX = "agentcanvas-disk-"
_MAKERS: dict[str, Sequence[str]] = {
    # An inode for every 4 kB, as a source tree wants; nothing left for the kernel to write later.
    "ext4": ("mkfs.ext4", "-q", "-F", "-i", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-m", "reflink=1"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
_SEARCHED = (*os.get_exec_path(), "/usr/sbin", "/sbin")


class NoDisk(Exception):
    """There is no such disk to be had here; the text says why."""


def why_no_disk(kind: str) -> str:
    """Say why there can be no fresh disk of a kind here; an empty text where one can be tried."""
    if sys.platform != "linux":
        return "loop devices are Linux's"
    if os.geteuid() != 0:
        return "only root may mount one"
    if not os.path.ismount(MEMORY):
        return f"{MEMORY} is not in memory"
    if not Path("/dev/loop-control").exists():
        return "this machine has no loop devices"
    program = _MAKERS[kind][0]
    if not _found(program):
        return f"there is no {program}; install {_PACKAGES[kind]}"
    return ""


@contextmanager
def fresh_disk(kind: str, megabytes: int, *, options: Sequence[str] = ()) -> Iterator[Path]:
    """Give the top folder of an empty disk in memory; it is gone afterwards, whatever happens.

    ``options`` are more words for the kind's mkfs.
    The image grows with what is written. It may not take more than half of the memory that is free.
    """
    if reason := why_no_disk(kind):
        raise NoDisk(reason)
    remove_leftovers()
    if megabytes * MEGABYTE * 2 > (free := _free_bytes()):
        needed = f"{2 * megabytes} MB of free memory, and there are {free // MEGABYTE}"
        raise NoDisk(f"a disk of {megabytes} MB wants {needed}")
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=MEMORY))
    try:
        image, top = folder / "image", folder / "disk"
        with image.open("wb") as growing:
            growing.truncate(megabytes * MEGABYTE)
        _do(*_MAKERS[kind], *options, str(image))
        top.mkdir()
        _do("mount", "-o", "loop", str(image), str(top))
        image.unlink()  # the loop device keeps it until it is unmounted
        shutil.rmtree(top / "lost+found", ignore_errors=True)
        yield top
    finally:
        _take_away(folder)


def remove_leftovers() -> list[Path]:
    """Take away the disks whose makers were killed; gives their folders."""
    removed = []
    for folder in MEMORY.glob(f"{_PREFIX}*"):
        maker = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if maker.isdecimal() and not Path("/proc", maker).exists():
            _take_away(folder)
            removed.append(folder)
    return removed


def _take_away(folder: Path) -> None:
    """Unmount and remove; what is busy is detached, and goes when its last user does."""
    top = folder / "disk"
    for options in ((), ("--lazy",)):
        if not os.path.ismount(top):
            break
        command = [_found("umount"), *options, str(top)]
        subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    if not os.path.ismount(top):  # else it would empty the disk one file at a time, and then fail
        shutil.rmtree(folder, ignore_errors=True)


def _do(program: str, *arguments: str) -> None:
    command = [_found(program), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise NoDisk(f"{program} failed: {said or f'exit code {done.returncode}'}")


def _found(program: str) -> str:
    return shutil.which(program, path=os.pathsep.join(_SEARCHED)) or ""


def _free_bytes() -> int:
    """What could be written to memory: what is available, bounded by the size of its disk."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next((int(line.split()[1]) for line in lines if line.startswith("MemAvail")), 0)
    return min(available * 1024, shutil.disk_usage(MEMORY).free)
