"""Looking at what a process and all it started take, where the kernel sets no limit by itself.

RLIMIT_AS breaks Node and Java, RLIMIT_NPROC counts a user's other programs too, and no limit of the
kernel is for a folder; cgroups would do it all, but are rarely ours to use. So it is looked at
twice a second, and whoever takes too much is named. Linux only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from agentcanvas.sandbox.limits import Breach, Cause, Limits, shown_bytes
from agentcanvas.sandbox.process_tree import descendants
from agentcanvas.sandbox.written import CLOCK_OF_FILES_LAGS_S, written

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_BLOCK = 512  # of st_blocks, whatever the disk has
_LOOKS_BETWEEN_WALKS = 120


class Usage(msgspec.Struct, frozen=True):
    """What a tree of processes takes at a moment."""

    processes: int
    cpu_s: float
    memory_bytes: int


def usage_of(root: int) -> Usage:
    """Add up a process and all its descendants; memory that several share counts once.

    The first sum counts shared pages several times, which is quick; ``_exact_memory`` is asked
    only when that looks like too much.
    """
    pids = _family(root)
    cpu_s = sum(map(_cpu_s, pids))
    memory = sum(map(_rough_memory, pids))
    return Usage(len(pids), cpu_s, memory)


def _family(root: int) -> list[int]:
    return [root, *(member.pid for member in descendants(root))]


def _cpu_s(pid: int) -> float:
    """Give what it has used, and what those have whose end it has waited for."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return sum(map(int, fields[11:15])) * _TICK_S


def _rough_memory(pid: int) -> int:
    """Count what is in no file of a disk: pages of its own, shared ones, and swapped out ones."""
    told = _sizes(_read(pid, "status"))
    return sum(told.get(name, 0) for name in (b"RssAnon", b"RssShmem", b"VmSwap"))


def _exact_memory(pids: Sequence[int], shared_at_first: int) -> int:
    """Count the proportional shares, and files in memory, which need not be mapped to fill it."""
    own = shared = 0
    files: dict[tuple[int, int], int] = {}
    closed = False
    for pid in pids:
        told = _sizes(_read(pid, "smaps_rollup"))
        if b"Pss_Anon" in told:
            own += told[b"Pss_Anon"] + told.get(b"SwapPss", 0)
            shared += told.get(b"Pss_Shmem", 0)
        else:  # not told by this kernel, or not to us: the rough figure has to do
            own += _rough_memory(pid)
        try:
            files |= _files_in_memory(pid)
        except PermissionError:
            closed = True
    held = sum(files.values())
    if closed:  # closed against us, to hide what is in there: the machine tells
        held = max(held, _shared_on_machine() - shared_at_first)
    return own + max(shared, held)


def _files_in_memory(pid: int) -> dict[tuple[int, int], int]:
    """Give the size of those that a process has open, each under what tells it from others."""
    found: dict[tuple[int, int], int] = {}
    with suppress(FileNotFoundError, ProcessLookupError), os.scandir(f"/proc/{pid}/fd") as opened:
        for entry in opened:
            with suppress(FileNotFoundError, ProcessLookupError):
                if os.readlink(entry.path).startswith("/memfd:"):  # noqa: PTH115 -- asked of every file
                    status = entry.stat()
                    found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    return found


def _shared_on_machine() -> int:
    """Give what all files in memory and all shared memory take together."""
    return _sizes(_bytes_of("/proc/meminfo")).get(b"Shmem", 0)


def _sizes(table: bytes) -> dict[bytes, int]:
    """Read the lines that say a name and a number of kB."""
    rows = (line.split() for line in table.splitlines() if line.endswith(b" kB"))
    return {row[0].rstrip(b":"): int(row[1]) * 1024 for row in rows}


def _read(pid: int, name: str) -> bytes:
    return _bytes_of(f"/proc/{pid}/{name}")


def _bytes_of(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError:
        return b""  # gone meanwhile


class Watch:
    """Looks at one tree of processes and the folders it writes to, from now on."""

    def __init__(self, root: int, folders: Sequence[Path], limits: Limits) -> None:
        self._root = root
        self._limits = limits
        self._growth = Growth(folders, limits)
        self._shared_at_first = _shared_on_machine()

    def look(self) -> Breach | None:
        """Say which limit is passed, if one is."""
        usage = usage_of(self._root)
        return self._of_processes(usage) or self._of_memory(usage) or self._growth.look()

    def _of_processes(self, usage: Usage) -> Breach | None:
        most, cpu_s = self._limits.processes, self._limits.cpu_s
        if most is not None and usage.processes > most:
            sentence = f"it had {usage.processes:,} processes, and {most:,} are allowed"
            return Breach(Cause.PROCESSES, sentence)
        if cpu_s is not None and usage.cpu_s > cpu_s:
            sentence = f"it used {usage.cpu_s:.1f} s of processor time, and {cpu_s:g} are allowed"
            return Breach(Cause.CPU, sentence)
        return None

    def _of_memory(self, usage: Usage) -> Breach | None:
        most = self._limits.memory_bytes
        # What is in files that nobody has mapped is no more than what the machine has of them.
        if most is None or usage.memory_bytes + _shared_on_machine() <= most:
            return None
        exact = _exact_memory(_family(self._root), self._shared_at_first)
        if exact <= most:
            return None
        sentence = f"it used {shown_bytes(exact)} of memory, and {shown_bytes(most)} are allowed"
        return Breach(Cause.MEMORY, sentence)


class Growth:
    """How much was written to some folders from now on.

    What was written is told by its ctime, which nobody can set. Walking a large tree takes a while,
    so it is done only when the disk has lost a good part of what may be written, and now and then.
    """

    def __init__(self, folders: Sequence[Path], limits: Limits) -> None:
        self._folders = folders
        self._limits = limits
        self._since = datetime.now(UTC).timestamp() - CLOCK_OF_FILES_LAGS_S
        self._free = self._free_at_first = self._left()
        self._looks = 0

    def look(self) -> Breach | None:
        """Say whether it is too much."""
        most_bytes, most_files = self._limits.growth_bytes, self._limits.growth_files
        if not self._is_worth_a_walk():
            return None
        found = written(self._folders, self._since)
        size, files = found.size, found.files
        if found.closed:  # closed against us, to hide what is in there: the disk tells
            size = max(size, self._free_at_first[0] - self._free[0])
            files = max(files, self._free_at_first[1] - self._free[1])
        if most_bytes is not None and size > most_bytes:
            allowed = shown_bytes(most_bytes)
            sentence = f"it wrote {shown_bytes(size)} to its folders, and {allowed} are allowed"
            return Breach(Cause.GROWTH, sentence)
        if most_files is not None and files > most_files:
            sentence = f"it wrote {files:,} files, and {most_files:,} are allowed"
            return Breach(Cause.GROWTH, sentence)
        return None

    def _is_worth_a_walk(self) -> bool:
        now = self._left()
        most = (self._limits.growth_bytes, self._limits.growth_files)
        shrunk = any(
            allowed is not None and before - left >= allowed / 4
            for allowed, before, left in zip(most, self._free, now, strict=True)
        )
        self._looks += 1
        if not shrunk and self._looks % _LOOKS_BETWEEN_WALKS:
            return False
        self._free = now
        return any(allowed is not None for allowed in most)

    def _left(self) -> tuple[int, int]:
        """Give the bytes and the names that the disk has left; a home may be on another one."""
        disks = {path.stat().st_dev: path for path in self._folders if path.exists()}
        told = [os.statvfs(path) for path in disks.values()]
        return sum(t.f_bfree * t.f_frsize for t in told), sum(t.f_ffree for t in told)
