"""Keeping the disk in bounds after each run (D15): trees are used again, old runs go, announced.

What is not settled never goes, proposals stay, and so does whatever a process still uses. A removal
that is cut off is finished the next time. With a run go the images that no other one needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from agentcanvas.errors import SandboxError
from agentcanvas.hub import images
from agentcanvas.runs import events as e
from agentcanvas.runs.office import RunOrder, RunSummary
from agentcanvas.runs.state import RunState, TaskStatus
from agentcanvas.sandbox.cleanup import USUAL, Keep, Plan, Standing, clean_up, plan_cleanup
from agentcanvas.sandbox.paths import (
    HOME_FOLDER,
    SandboxPaths,
    generations_folder,
    owner_of,
    run_folder,
)
from agentcanvas.sandbox.pool import MOST_TREES, pooled_trees
from agentcanvas.sandbox.prepare import open_sandbox, retire_sandbox

_UNSETTLED = frozenset({TaskStatus.DISPATCHED, TaskStatus.IN_REVIEW, TaskStatus.REVISING})
_FOLDERS_NAMED = 3


class Started(Protocol):
    """Who knows the runs, and what each was started with."""

    async def runs(self) -> tuple[RunSummary, ...]: ...

    async def order(self, run_id: str) -> RunOrder: ...


def standing_of(state: RunState, *, is_ending: bool = False) -> Standing:
    """Where a run stands, as far as its files are concerned."""
    is_over = is_ending or state.status.is_over
    waits = any(task.status in _UNSETTLED for task in state.tasks.values())
    return Standing.SETTLED if is_over and not waits else Standing.OPEN


async def retire(workspace: Path, run_id: str) -> None:
    """Give the trees of a settled run to the next ones, as far as the pool has room.

    What there is no room for stays where it is, until it is old enough to go.
    """
    for agent_id in await anyio.to_thread.run_sync(_agents, workspace, run_id):
        if len(await anyio.to_thread.run_sync(pooled_trees, workspace)) >= MOST_TREES:
            return
        with suppress(SandboxError):  # damaged, or in use: it goes another time
            await retire_sandbox(await open_sandbox(workspace, run_id, agent_id))


async def plan(workspace: Path, standings: Mapping[str, Standing], keep: Keep = USUAL) -> Plan:
    """Say what would go."""
    return await plan_cleanup(workspace, standings, keep)


async def carry_out(workspace: Path, announced: Plan) -> None:
    """Do what was announced; what cannot be removed now is tried again the next time."""
    with suppress(SandboxError):
        await clean_up(workspace, announced)


async def idle_images(
    workspace: Path, runs: Started, *, now_ms: int, going: Collection[str] = ()
) -> dict[str, int]:
    """The images that no run needs once these are gone, by their hash, with their sizes.

    A run needs its images until it is over, and as long as its files are here.
    """
    needed: set[str] = set()
    for run in await runs.runs():
        has_files = generations_folder(workspace, run.run_id).exists() and run.run_id not in going
        if has_files or not run.status.is_over:
            needed |= {ref.sha256 for ref in (await runs.order(run.run_id)).images}
    return await images.idle_images(workspace / HOME_FOLDER, needed, now_ms=now_ms)


async def drop_images(workspace: Path, found: Collection[str]) -> None:
    """Remove images; what cannot be removed now goes another time."""
    with suppress(OSError):
        await images.drop_images(workspace / HOME_FOLDER, found)


def announcement(announced: Plan) -> e.CleaningUp:
    """What goes and what that frees, as an event."""
    uses = sorted(
        (use for run in announced.going for use in run.largest),
        key=lambda use: use.bytes,
        reverse=True,
    )
    payload = e.Going(
        tuple(run.run_id for run in announced.going),
        announced.frees,
        tuple(e.Folder(use.path, use.bytes) for use in uses[:_FOLDERS_NAMED]),
    )
    return e.CleaningUp(actor="engine", provenance=e.Provenance.SYSTEM, payload=payload)


def _agents(workspace: Path, run_id: str) -> list[str]:
    folder = run_folder(workspace, run_id)
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    owners = [owner_of(each) for each in entries if SandboxPaths(each).record.is_file()]
    return [owner for owner in owners if owner is not None]
