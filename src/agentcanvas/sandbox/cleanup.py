"""Clean-up by policy: what goes is announced first, and what is not settled never goes (D15).

Of a run that goes, its generations and the trees and homes of its sandboxes are removed; proposal/
stays. A thing that is removed is first renamed into the trash, which is emptied afterwards: a
removal that is cut off never leaves half a tree under its own name, and is finished the next time.
Who may decide what is settled is above this layer; it is told by ``standings``.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import AgentCanvasError, SandboxError
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.disk import DiskUse, FolderUse, disk_use, runs_on_disk, trash_folder
from agentcanvas.sandbox.generation import told
from agentcanvas.sandbox.paths import (
    HOME_FOLDER,
    SandboxPaths,
    generations_folder,
    owner_of,
    run_folder,
)
from agentcanvas.sandbox.pool import leftovers, pool_folder, pooled_trees
from agentcanvas.sandbox.prepare import is_in_use, open_sandbox, parts_of
from agentcanvas.sandbox.process_tree import end_leftovers
from agentcanvas.sandbox.trees import remove_path

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Keep(msgspec.Struct, frozen=True):
    """What is kept of what could go: the newest runs, within so many bytes."""

    runs: int = 10
    bytes: int = 5_000_000_000


USUAL = Keep()
NOTHING = Keep(runs=0, bytes=0)


class Standing(StrEnum):
    """Where a run stands, as far as its files are concerned."""

    OPEN = "open"
    """It goes on, waits, or has proposals that nobody has judged."""
    SETTLED = "settled"


class Going(msgspec.Struct, frozen=True):
    """A run that goes, what that frees, and where most of it is."""

    run_id: str
    frees: int
    largest: tuple[FolderUse, ...] = ()


class Staying(msgspec.Struct, frozen=True):
    """A run that stays, and why, where that is not only its age."""

    run_id: str
    bytes: int
    reason: str = ""


class Plan(msgspec.Struct, frozen=True):
    """What a clean-up would do."""

    going: tuple[Going, ...]
    staying: tuple[Staying, ...]
    pool: int = 0
    """What the pool frees; 0 when it stays."""
    trash: int = 0
    """What earlier removals have left to do."""

    @property
    def frees(self) -> int:
        """All of it."""
        return sum(run.frees for run in self.going) + self.pool + self.trash


async def plan_cleanup(
    workspace: Path,
    standings: Mapping[str, Standing],
    keep: Keep = USUAL,
    *,
    discard: Collection[str] = (),
) -> Plan:
    """Say what would go. A run that is not in ``standings`` is open if its sandboxes have changes.

    The newest runs count whether they are settled or not; of the rest, and of as many more as it
    takes to come within the bytes, only the settled ones go, the oldest first. What somebody wants
    to ``discard`` goes whatever its age, if it is settled.
    """
    held = {
        run_id: reason
        for run_id in await anyio.to_thread.run_sync(runs_on_disk, workspace)
        if (reason := await _why_held(workspace, run_id, standings.get(run_id))) is not None
    }
    newest_first = runs_on_disk(workspace)
    # Counted last is freed first: a file that two runs have is freed with the one that goes last.
    order = sorted(newest_first, key=lambda run_id: run_id not in held)
    use = await disk_use(workspace, order)
    kept = set(newest_first[: keep.runs]).difference(discard)
    return _planned(use, held, kept, keep.bytes)


def _planned(use: DiskUse, held: Mapping[str, str], newest: set[str], most: int) -> Plan:
    going: list[Going] = []
    staying: list[Staying] = []
    left = use.bytes - use.trash
    pool = use.pool if left > most else 0
    left -= pool
    for run in reversed(use.runs):
        may_go = run.run_id not in held and run.removable
        if may_go and (run.run_id not in newest or left > most):
            going.append(Going(run.run_id, run.removable, run.largest_removable))
            left -= run.removable
        else:
            staying.append(Staying(run.run_id, run.bytes, held.get(run.run_id, "")))
    return Plan(tuple(going), tuple(reversed(staying)), pool, use.trash)


async def clean_up(workspace: Path, plan: Plan) -> None:
    """Do what was announced; a run that has come to life since is left alone."""
    await anyio.to_thread.run_sync(partial(_clean_up, workspace, plan))


async def finish_removals(workspace: Path) -> int:
    """Empty the trash, as after a removal that was cut off; gives the number of things in it."""
    return await anyio.to_thread.run_sync(partial(_empty_trash, workspace))


async def end_strays(workspace: Path) -> int:
    """End whatever runs of a workspace left running; gives how many there were.

    A host that is killed takes its processes along, but for those that were just being started.
    Only for the one who owns the workspace (D1), before anything of its own runs.
    """
    return await end_leftovers(str(workspace / HOME_FOLDER))


async def _why_held(workspace: Path, run_id: str, standing: Standing | None) -> str | None:
    """Say why a run may not go; None if it may."""
    if standing is Standing.OPEN:
        return "not settled yet"
    if await anyio.to_thread.run_sync(is_in_use, run_folder(workspace, run_id)):
        return "its processes still run"
    if standing is None:
        for paths in _sandboxes(workspace, run_id):
            if await _has_changes(workspace, run_id, paths):
                return f"{paths.root.name} has changes that were never handed in"
    return None


async def _has_changes(workspace: Path, run_id: str, paths: SandboxPaths) -> bool:
    """Look for work of somebody; what cannot be compared counts as such."""
    if not paths.record.exists():
        return False  # half made or half removed
    agent_id = owner_of(paths.root)
    try:
        sandbox = await open_sandbox(workspace, run_id, agent_id or paths.root.name)
        return bool((await make_patch(sandbox)).changes)
    except (AgentCanvasError, OSError):
        return True


def _sandboxes(workspace: Path, run_id: str) -> list[SandboxPaths]:
    folder = run_folder(workspace, run_id)
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [SandboxPaths(e) for e in entries if e.is_dir() and not e.is_symlink()]


def _clean_up(workspace: Path, plan: Plan) -> None:
    try:
        for run in plan.going:
            if not is_in_use(run_folder(workspace, run.run_id)):
                _throw_run_away(workspace, run.run_id)
        if plan.pool:
            for entry in pooled_trees(workspace):
                _throw_away(workspace, entry)
        for entry in [*leftovers(workspace)]:
            _throw_away(workspace, entry)
        _remove_if_empty(pool_folder(workspace))
        _empty_trash(workspace)
    except OSError as error:
        raise SandboxError(
            f"The clean-up could not be finished: {told(error)}; it goes on the next time"
        ) from error


def _throw_run_away(workspace: Path, run_id: str) -> None:
    for paths in _sandboxes(workspace, run_id):
        if paths.root.name.startswith("."):
            _throw_away(workspace, paths.root)  # an evidence copy that was cut off
            continue
        for part in parts_of(paths):  # the record first: from then on it is no sandbox
            _throw_away(workspace, part)
        _remove_if_empty(paths.proposal_dir)
        if not paths.proposal_dir.exists():
            _throw_away(workspace, paths.root)
    _remove_if_empty(run_folder(workspace, run_id))
    _throw_away(workspace, generations_folder(workspace, run_id))


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _throw_away(workspace: Path, path: Path) -> None:
    trash = trash_folder(workspace)
    with suppress(FileNotFoundError):  # gone already, or taken from the pool just now
        try:
            trash.mkdir(parents=True, exist_ok=True)
            path.rename(trash / f"{secrets.token_hex(8)}-{path.name[:40]}")
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            _throw_away_without_room(workspace, path)


def _throw_away_without_room(workspace: Path, path: Path) -> None:
    """Do the same on a full disk, which has no room for the trash: a folder becomes the trash."""
    _empty_trash(workspace)
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)  # as the trash has to be
        path.rename(trash_folder(workspace))
        _empty_trash(workspace)
    else:
        path.unlink()


def _empty_trash(workspace: Path) -> int:
    trash = trash_folder(workspace)
    waiting = list(trash.iterdir()) if trash.is_dir() else []
    for path in waiting:
        remove_path(path)
    _remove_if_empty(trash)
    return len(waiting)
