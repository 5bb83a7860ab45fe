"""What sandboxes cost on the disk: by run, with the largest folders named.

A file with several names is counted once, for the newest run that has it: that is what removing
older runs would not free. Removing is left to ``cleanup``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.sandbox.paths import (
    generations_folder,
    get_sandbox_paths,
    is_run_id,
    own_folder,
    run_folder,
)
from agentcanvas.sandbox.pool import pool_folder

_BLOCK_UNIT = 512
_NAMED = 3
_KEPT = ("proposal", "agent_id")


class FolderUse(msgspec.Struct, frozen=True):
    """A folder, relative to the workspace, and what it takes."""

    path: str
    bytes: int


class RunUse(msgspec.Struct, frozen=True):
    """What a run takes; ``kept`` of it are proposals, which no clean-up removes.

    ``largest`` are the folders that take most of it, ``largest_removable`` those of them that a
    clean-up would remove.
    """

    run_id: str
    bytes: int
    kept: int
    largest: tuple[FolderUse, ...]
    largest_removable: tuple[FolderUse, ...] = ()

    @property
    def removable(self) -> int:
        """What would be free without the run."""
        return self.bytes - self.kept


class DiskUse(msgspec.Struct, frozen=True):
    """All of it; runs in the order in which they were counted."""

    runs: tuple[RunUse, ...]
    pool: int
    trash: int

    @property
    def bytes(self) -> int:
        """The sum."""
        return sum(run.bytes for run in self.runs) + self.pool + self.trash


def runs_on_disk(workspace: Path) -> list[str]:
    """List the runs that have sandboxes or generations, the newest first."""
    found: set[str] = set()
    for folder in (own_folder(workspace, "sandboxes"), own_folder(workspace, "generations")):
        if folder.is_dir():
            entries = (entry for entry in folder.iterdir() if not entry.is_symlink())
            found |= {entry.name for entry in entries if is_run_id(entry.name)}
    return sorted(found, reverse=True)


def trash_folder(workspace: Path) -> Path:
    """Where things wait for their removal."""
    return own_folder(workspace, "trash")


async def disk_use(workspace: Path, order: Iterable[str] | None = None) -> DiskUse:
    """Count; a file that several runs have is counted for the first in ``order``, the newest."""
    return await anyio.to_thread.run_sync(partial(_disk_use, workspace, order))


async def sandbox_size(workspace: Path, run_id: str, agent_id: str) -> int:
    """Say what the sandbox of an agent takes."""
    folder = get_sandbox_paths(workspace, run_id, agent_id).root
    return await anyio.to_thread.run_sync(_bytes_below, folder, set())


def _disk_use(workspace: Path, order: Iterable[str] | None) -> DiskUse:
    counted: set[tuple[int, int]] = set()
    runs = runs_on_disk(workspace) if order is None else order
    used = tuple(_run_use(workspace, run_id, counted) for run_id in runs)
    rest = (pool_folder(workspace), trash_folder(workspace))
    return DiskUse(used, *(_bytes_below(folder, counted) for folder in rest))


def _run_use(workspace: Path, run_id: str, counted: set[tuple[int, int]]) -> RunUse:
    kept: list[FolderUse] = []
    removable: list[FolderUse] = []
    for part in _parts(workspace, run_id):
        use = FolderUse(part.relative_to(workspace).as_posix(), _bytes_below(part, counted))
        is_kept = part.name in _KEPT and _has_proposal(part.parent)
        (kept if is_kept else removable).append(use)
    uses = [*kept, *removable]
    return RunUse(
        run_id,
        sum(use.bytes for use in uses),
        sum(use.bytes for use in kept),
        _largest(uses),
        _largest(removable),
    )


def _largest(uses: list[FolderUse]) -> tuple[FolderUse, ...]:
    most = sorted(uses, key=lambda use: use.bytes, reverse=True)[:_NAMED]
    return tuple(use for use in most if use.bytes)


def _has_proposal(sandbox: Path) -> bool:
    folder = sandbox / "proposal"
    return folder.is_dir() and any(folder.iterdir())


def _parts(workspace: Path, run_id: str) -> Iterator[Path]:
    """List the folders that a reader would want named: g0, work of an agent, and so on."""
    for folder in (generations_folder(workspace, run_id), run_folder(workspace, run_id)):
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        for entry in entries:
            is_sandbox = folder.parent.name == "sandboxes" and entry.is_dir()
            yield from sorted(entry.iterdir()) if is_sandbox else (entry,)


def _bytes_below(path: Path, counted: set[tuple[int, int]]) -> int:
    """Sum up blocks, not sizes: holes cost nothing, and a small file costs a whole block."""
    total = 0
    waiting = [os.fspath(path)]
    while waiting:
        current = waiting.pop()
        try:
            status = os.lstat(current)
        except OSError:
            continue  # it went away meanwhile
        total += _blocks(status, counted)
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += _blocks(entry.stat(follow_symlinks=False), counted)
        except OSError:
            continue  # a file, or a folder that is closed to us
    return total


def _blocks(status: os.stat_result, counted: set[tuple[int, int]]) -> int:
    if status.st_nlink > 1:
        key = (status.st_dev, status.st_ino)
        if key in counted:
            return 0
        counted.add(key)
    return status.st_blocks * _BLOCK_UNIT


def in_words(size: int) -> str:
    """Say a size so that people can compare it."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} bytes"
