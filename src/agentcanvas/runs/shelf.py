"""Proposals of a run, kept by name: a worker's proposal/ holds only its latest (S1, D15)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import NotFound
from agentcanvas.proposals import shelf
from agentcanvas.proposals.checks import Evidence
from agentcanvas.proposals.model import PATCH_FILE, PROPOSAL_FILE, TEST_LOG, Wire, encode
from agentcanvas.proposals.policy import Breach
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.sandbox.paths import (
    HOME_FOLDER,
    checked_run_id,
    get_sandbox_paths,
    own_folder,
    sanitised,
)

_LONGEST = 80
_RECORD = "evidence.json"


class Evident(msgspec.Struct, frozen=True):
    """What is known about a proposal before anybody judges it; ``notes`` are for the reviewer.

    ``checked_on`` is the generation under the evidence, if that is not the proposal's own.
    """

    breaches: tuple[Breach, ...]
    evidence: Evidence
    notes: tuple[str, ...] = ()
    checked_on: int | None = None


class Kept(msgspec.Struct, frozen=True):
    """A proposal on the shelf; ``evident`` is None until it was examined.

    Then its generation is not known either, and counts as the first.
    """

    ref: ProposalRef
    folder: ProposalFolder
    evident: Evident | None = None

    @property
    def proposal_id(self) -> str:
        return self.ref.proposal_id

    @property
    def generation(self) -> int:
        return self.ref.generation

    @property
    def checked_on(self) -> int | None:
        """The generation its checks ran on; None when nothing was checked."""
        if self.evident is None or not self.evident.evidence.checks:
            return None
        moved_to = self.evident.checked_on
        return self.generation if moved_to is None else moved_to


class _Record(Wire, frozen=True):
    """What is kept beside a proposal: the name it has in messages, and its evidence."""

    ref: ProposalRef
    evident: Evident


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


def kept_list(workspace: Path, run_id: str, name: str, paths: Sequence[str]) -> Path:
    """Write paths, each ended by a zero byte as git reads them, beside the proposals of a run."""
    folder = own_folder(workspace, "proposals") / checked_run_id(run_id)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name_of(name)}.paths"
    file.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
    return file


async def keep(workspace: Path, ref: ProposalRef) -> ProposalFolder:
    """Copy a proposal from its worker's sandbox, unless that was done before; give it."""
    return await anyio.to_thread.run_sync(partial(_keep, workspace, ref))


async def keep_evidence(workspace: Path, ref: ProposalRef, evident: Evident) -> None:
    """Put what is known about it beside the proposal, and what the checks said as a log."""
    folder = anyio.Path(folder_of(workspace, ref.run_id, ref.proposal_id))
    await (folder / TEST_LOG).write_text(_log_of(evident.evidence), "utf-8", "replace")
    fresh = folder / f"{_RECORD}.part"
    await fresh.write_bytes(encode(_Record(ref, evident)))
    await fresh.replace(folder / _RECORD)


async def put(workspace: Path, ref: ProposalRef, folder: ProposalFolder) -> None:
    """Keep a proposal that no worker has handed in: a part of another."""
    target = folder_of(workspace, ref.run_id, ref.proposal_id)
    await anyio.to_thread.run_sync(folder.save, target)


async def take(workspace: Path, run_id: str, proposal_id: str) -> Kept:
    """Give what is kept of a proposal."""
    return await anyio.to_thread.run_sync(partial(_take, workspace, run_id, proposal_id))


def _take(workspace: Path, run_id: str, proposal_id: str) -> Kept:
    folder = folder_of(workspace, run_id, proposal_id)
    if not (folder / PROPOSAL_FILE).is_file():
        raise NotFound(f"There is no proposal {proposal_id} in {run_id}.")
    kept = shelf.load(folder)
    with suppress(OSError, msgspec.DecodeError):
        record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=_Record)
        return Kept(record.ref, kept, record.evident)
    proposal = kept.proposal
    ref = ProposalRef(
        run_id=proposal.run_id,
        agent_id=proposal.agent_id,
        proposal_id=proposal_id,
        generation=0,
        patch=proposal.paths.patch_file,
        changed_files=proposal.changed_files,
    )
    return Kept(ref, kept)


def _log_of(evidence: Evidence) -> str:
    parts = [evidence.sentence]
    for compared in evidence.checks:
        parts.append(f"== {compared.check.name}: {compared.check.command}")
        parts.append(compared.after.output)
    return "\n".join(parts) + "\n"


def _keep(workspace: Path, ref: ProposalRef) -> ProposalFolder:
    target = folder_of(workspace, ref.run_id, ref.proposal_id)
    if not (target / PROPOSAL_FILE).is_file():
        source = get_sandbox_paths(workspace, ref.run_id, ref.agent_id).proposal_dir
        shelf.load(source).save(target)
    return shelf.load(target)
