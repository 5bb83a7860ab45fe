"""Proposals of a run, kept by name: a worker's proposal/ holds only its latest (S1, D15)."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import anyio.to_thread

from agentcanvas.proposals import shelf
from agentcanvas.proposals.model import PATCH_FILE, PROPOSAL_FILE, TEST_LOG
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.sandbox.paths import HOME_FOLDER, checked_run_id, get_sandbox_paths, sanitised

_LONGEST = 80


def name_of(proposal_id: str) -> str:
    """A folder's name for any proposal id."""
    plain = sanitised(proposal_id)[:_LONGEST].lstrip(".")
    if plain == proposal_id:
        return plain
    return f"{plain}-{hashlib.sha256(proposal_id.encode()).hexdigest()[:8]}"


def folder_of(workspace: Path, run_id: str, proposal_id: str) -> Path:
    """Where a proposal is kept."""
    return workspace / HOME_FOLDER / "proposals" / checked_run_id(run_id) / name_of(proposal_id)


def patch_of(workspace: Path, ref: ProposalRef) -> str:
    """Where the patch of a kept proposal is, relative to the workspace."""
    folder = folder_of(workspace, ref.run_id, ref.proposal_id)
    return (folder / PATCH_FILE).relative_to(workspace).as_posix()


async def keep(workspace: Path, ref: ProposalRef) -> ProposalFolder:
    """Copy a proposal from its worker's sandbox, unless that was done before; give it."""
    return await anyio.to_thread.run_sync(partial(_keep, workspace, ref))


async def keep_log(workspace: Path, ref: ProposalRef, log: str) -> None:
    """Put what the checks said beside the proposal."""
    target = folder_of(workspace, ref.run_id, ref.proposal_id) / TEST_LOG
    await anyio.Path(target).write_text(log, "utf-8", "replace")


def _keep(workspace: Path, ref: ProposalRef) -> ProposalFolder:
    target = folder_of(workspace, ref.run_id, ref.proposal_id)
    if not (target / PROPOSAL_FILE).is_file():
        source = get_sandbox_paths(workspace, ref.run_id, ref.agent_id).proposal_dir
        shelf.load(source).save(target)
    return shelf.load(target)
