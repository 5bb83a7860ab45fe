"""Finding the processes of a sandbox, and making sure that they are gone.

Three marks identify them: they descend from one process, they live in its PID namespace, and they
carry the sandbox's tag in their environment. Starting and stopping is left to ``process``.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread

from agentcanvas.sandbox.confine import ON_LINUX, TAG

_PAUSE_S = 0.005
_PASSES = 400
_LOOKS = 8
"""Whoever begins new ones faster than they are listed is found by the next pass."""


@dataclass(frozen=True)
class Member:
    """One living process; with its start time a number that was given anew is not mistaken."""

    pid: int
    parent: int = field(compare=False)  # an orphan gets another one
    started: int


def living() -> list[Member]:
    """List all processes but zombies."""
    if not ON_LINUX:
        return _listed_by_ps()
    return [member for pid in _numbers() if (member := member_of(pid))]


def _numbers() -> Iterator[int]:
    """Give all processes, those too that are begun by one which is gone before it is looked at."""
    seen: set[int] = set()
    for _ in range(_LOOKS):
        listed = {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208 -- names only
        if not (fresh := listed - seen):
            return
        seen |= fresh
        yield from fresh


def member_of(pid: int) -> Member | None:
    """Look at one process; None when it is gone."""
    if not ON_LINUX:
        return next((member for member in _listed_by_ps() if member.pid == pid), None)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 -- asked of every process
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" else Member(pid, int(fields[1]), int(fields[19]))


def _listed_by_ps() -> list[Member]:
    listing = ["/bin/ps", "-axo", "pid=,ppid=,stat="]
    told = subprocess.run(listing, capture_output=True, check=True).stdout  # noqa: S603 -- fixed
    rows = (line.split() for line in told.decode().splitlines())
    return [Member(int(pid), int(ppid), 0) for pid, ppid, state in rows if state[0] != "Z"]


def descendants(*roots: int) -> list[Member]:
    """List the living processes below the roots, themselves left out."""
    below: dict[int, list[Member]] = {}
    for member in living():
        below.setdefault(member.parent, []).append(member)
    found: list[Member] = []
    waiting = [*roots]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += [child.pid for child in children]
    return found


def namespace_of(pid: int) -> int | None:
    """Give the PID namespace of a process, None where it is ours or cannot be seen."""
    theirs = _namespace(pid)
    return theirs if theirs != _namespace(os.getpid()) else None


def _namespace(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116 -- asked of every process
    except OSError:
        return None  # gone, or another user's: not ours


def marked(tag: str, namespace: int | None = None) -> list[Member]:
    """List the living processes in this PID namespace, or with this tag or one that extends it."""
    if not ON_LINUX:
        return []
    found = (
        member_of(pid)
        for pid in _numbers()
        if (namespace is not None and _namespace(pid) == namespace) or _tags(pid, tag)
    )
    return [member for member in found if member]


def tags_below(tag: str) -> set[str]:
    """List the tags that extend this one and that a living process has."""
    if not ON_LINUX:
        return set()
    return {found for pid in _numbers() for found in _tags(pid, tag)}


def _tags(pid: int, tag: str) -> list[str]:
    """Give what a process has in its environment of a tag: none, or one."""
    mark = f"{TAG}={tag}".encode("utf-8", "surrogateescape")
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 -- asked of every process
            variables = file.read()
    except OSError:
        return []
    if mark not in variables:
        return []
    return [
        variable.partition(b"=")[2].decode("utf-8", "surrogateescape")
        for variable in variables.split(b"\0")
        if variable == mark or variable.startswith(mark + b"/")
    ]


def send(members: Iterable[Member], number: signal.Signals) -> None:
    """Signal processes, never another that has got the number of one that is gone."""
    for member in members:
        with suppress(ProcessLookupError, PermissionError):
            if not hasattr(os, "pidfd_open"):
                os.kill(member.pid, number)
                continue
            handle = os.pidfd_open(member.pid)
            try:
                now = member_of(member.pid)
                if now and now.started == member.started:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


async def end_all(find: Callable[[], list[Member]]) -> int:
    """Kill what ``find`` finds until it finds nothing; gives the number that would not die."""
    left: list[Member] = []
    for _ in range(_PASSES):
        left = await anyio.to_thread.run_sync(find)
        if not left:
            return 0
        send(left, signal.SIGKILL)
        await anyio.sleep(_PAUSE_S)
    return len(left)


async def end_leftovers(tag: str) -> int:
    """End what an earlier attempt of a sandbox left running (D18); gives how many there were.

    Whoever dropped its environment is found through those it descends from, so they are all
    stopped before the first of them dies.
    """
    stopped: set[Member] = set()
    while fresh := set(await anyio.to_thread.run_sync(_family, tag)) - stopped:
        send(fresh, signal.SIGSTOP)
        stopped |= fresh
    send(stopped, signal.SIGKILL)
    await end_all(partial(_among, stopped, tag))
    return len(stopped)


def _family(tag: str) -> list[Member]:
    tagged = marked(tag)
    return [*tagged, *descendants(*(member.pid for member in tagged))]


def _among(known: set[Member], tag: str) -> list[Member]:
    return [*known.intersection(living()), *marked(tag)]
