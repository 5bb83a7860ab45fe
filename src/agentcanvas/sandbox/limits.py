"""How much a confined process may take, as one value, and why one ended.

What the kernel can refuse by itself is set as its limits here; what it cannot is looked at by
``watch``. Ending a process is left to ``process``.
"""

from __future__ import annotations

import resource
from enum import StrEnum

import msgspec

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import ON_LINUX

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
_THREADS_A_PROCESS = 16


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a process and all it starts may take; None for no limit.

    The defaults leave room for a coding CLI with a build and a test run below it: seen at their
    peaks, the CLIs alone take up to 0.6 GB and some dozens of processes.
    """

    deadline_s: float | None = None
    silence_s: float | None = None
    output_bytes: int = 16 * _MIB
    """Half of it is kept of the beginning, half of the end."""
    grace_s: float = 5.0
    """From the polite signal to the other one."""
    processes: int | None = 1_000
    cpu_s: float | None = 8 * 3600.0
    """Of all processes together, and of each."""
    memory_bytes: int | None = 8 * _GIB
    file_bytes: int | None = 4 * _GIB
    """The largest file that can be written."""
    open_files: int | None = 16_384
    """In each process."""
    growth_bytes: int | None = 10 * _GIB
    """What may be written to work/, home and tmp, from the start on."""
    growth_files: int | None = 500_000
    free_bytes: int | None = 64 * _MIB
    """What has to stay free on their disks; less on a small disk or one with little left."""
    poll_s: float = 0.5
    """How often is looked at what the kernel does not limit."""


class Cause(StrEnum):
    """Why a process ended: by itself, by a stop, or by the limit that is named."""

    EXITED = "exited"
    STOPPED = "stopped"
    DEADLINE = "deadline"
    SILENCE = "silence"
    PROCESSES = "processes"
    CPU = "cpu"
    MEMORY = "memory"
    FILE_SIZE = "file_size"
    GROWTH = "growth"
    DISK = "disk"

    @property
    def is_greed(self) -> bool:
        """Whether it took too much of the machine: then it gets no time to say good-bye."""
        return self in {Cause.PROCESSES, Cause.CPU, Cause.MEMORY, Cause.GROWTH, Cause.DISK}


class Breach(msgspec.Struct, frozen=True):
    """A limit that was passed, with a sentence that says by how much."""

    cause: Cause
    sentence: str


def impose(pid: int, limits: Limits, *, counted_apart: bool) -> None:
    """Set the kernel's limits for a process that has not begun; what it starts inherits them.

    ``counted_apart`` when RLIMIT_NPROC means its own processes, not all of the user's.
    """
    if not ON_LINUX:
        return
    wanted: dict[int, float | None] = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    if counted_apart and limits.processes is not None:
        # It counts threads. The number of processes is watched; this is for bombs between looks.
        wanted[resource.RLIMIT_NPROC] = limits.processes * _THREADS_A_PROCESS
    try:
        for kind, value in wanted.items():
            if value is not None:
                _lower(pid, kind, max(1, round(value)) if value else 0)
    except ProcessLookupError:
        return  # it failed to start, which is told elsewhere
    except OSError as error:
        raise SandboxError(f"The limits of a process could not be set: {error}") from error


def _lower(pid: int, kind: int, value: int) -> None:
    hard = resource.prlimit(pid, kind)[1]
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.prlimit(pid, kind, (most, most))


def shown_bytes(count: float) -> str:
    """Write a size for people."""
    unit = _GIB if count >= _GIB else _MIB
    return f"{count / unit:.1f} {'GiB' if unit == _GIB else 'MiB'}"
