"""The folder proposal/ on disk: proposal.json, changes.patch, summary.md, test.log (S1, S4).

Written by the host, never by the agent's process. proposal.json comes last, so that a folder that
has one has everything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.model import (
    PATCH_FILE,
    PROPOSAL_FILE,
    SUMMARY_FILE,
    TEST_LOG,
    Proposal,
    decode_proposal,
    encode,
)

if TYPE_CHECKING:
    from pathlib import Path


class ProposalFolder(msgspec.Struct, frozen=True):
    """Everything proposal/ holds."""

    proposal: Proposal
    patch: bytes
    summary: str
    test_log: str | None = None

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / PATCH_FILE, self.patch)
        _write(folder / SUMMARY_FILE, self.summary.encode())
        if self.test_log is not None:
            _write(folder / TEST_LOG, self.test_log.encode())
        _write(folder / PROPOSAL_FILE, encode(self.proposal))


def load(folder: Path) -> ProposalFolder:
    log = folder / TEST_LOG
    return ProposalFolder(
        proposal=decode_proposal(_read(folder / PROPOSAL_FILE)),
        patch=_read(folder / PATCH_FILE),
        summary=_read(folder / SUMMARY_FILE).decode(errors="replace"),
        test_log=_read(log).decode(errors="replace") if log.is_file() else None,
    )


def _write(target: Path, data: bytes) -> None:
    fresh = target.with_name(target.name + ".part")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(target)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise ProposalMalformed(
            f"{path.name} is missing from the proposal or unreadable ({problem.strerror}). "
            "Make the proposal again."
        ) from problem
