"""Handing a change in: freeze what is in work/, write proposal/, name it (S4, S5, T3).

The agent's process is gone by then and cannot write to proposal/; the host does.
"""

from __future__ import annotations

import re
from functools import partial

import anyio.to_thread
from msgspec import UNSET, Struct

from agentcanvas.agents.confined import survived
from agentcanvas.agents.handoff import make_handoff
from agentcanvas.agents.runtime import TurnResult
from agentcanvas.clock import Clock
from agentcanvas.errors import SandboxError
from agentcanvas.proposals.model import Base, Proposal, SandboxPaths, brief
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.protocol.forms import StandardResponse, write
from agentcanvas.protocol.packet import Packet
from agentcanvas.protocol.records import ChangedFile, ChangeStatus, ProposalRef
from agentcanvas.protocol.turns import Order
from agentcanvas.sandbox.diff import Patch, make_patch
from agentcanvas.sandbox.paths import shown
from agentcanvas.sandbox.prepare import Sandbox

PATCH_PATH = "proposal/changes.patch"
_FIRST_LINES = 3
_A_WORD = re.compile(r"[^\W\d_]{2}")
_LONGEST_LINE = 500


class HandedIn(Struct, frozen=True):
    """A proposal on the shelf, with what it says for people."""

    ref: ProposalRef
    summary: str
    notes: tuple[str, ...] = ()


async def hand_in(
    sandbox: Sandbox, order: Order, packet: Packet, result: TurnResult, clock: Clock
) -> HandedIn | None:
    """Write proposal/ from what changed in work/; None when nothing did (C12)."""
    if result.left_over:
        raise SandboxError(f"{survived(result.left_over)} Until then its work/ may change.")
    patch = await make_patch(sandbox)
    if not patch.changes:
        return None
    files = _changed_files(patch)
    summary = _summary(result, files)
    handoff = make_handoff(
        task=packet.task,
        response=result.value if isinstance(result.value, StandardResponse) else None,
        sandbox_work_dir=_relative(sandbox, "work"),
        proposal_json=_relative(sandbox, "proposal/proposal.json"),
        changed_files=[file.path for file in files],
        acceptance_criteria=packet.acceptance_criteria,
    )
    agent_id = await anyio.to_thread.run_sync(_agent_of, sandbox)
    folder = ProposalFolder(
        proposal=Proposal(
            version="1",
            run_id=order.run_id,
            agent_id=agent_id,
            created_at=clock.now(),
            base=Base(sandbox.base.git_head),
            paths=SandboxPaths(),
            changed_files=files,
            notes="; ".join(patch.notes),
        ),
        patch=patch.text,
        summary=f"{summary}\n\n{write(handoff)}" if handoff else f"{summary}\n",
    )
    await anyio.to_thread.run_sync(partial(folder.save, sandbox.paths.proposal_dir))
    ref = ProposalRef(
        run_id=order.run_id,
        agent_id=agent_id,
        proposal_id=f"{packet.task_id or order.turn_id}.r{order.revision}",
        generation=sandbox.base.number,
        patch=PATCH_PATH,
        changed_files=files,
    )
    return HandedIn(ref, brief(summary), patch.notes)


def _agent_of(sandbox: Sandbox) -> str:
    return (sandbox.paths.root / "agent_id").read_text("utf-8", "surrogateescape")


def _relative(sandbox: Sandbox, name: str) -> str:
    return (sandbox.paths.root / name).relative_to(sandbox.base.workspace).as_posix()


def _changed_files(patch: Patch) -> tuple[ChangedFile, ...]:
    return tuple(
        ChangedFile(shown(change.path), ChangeStatus(change.status.value))
        for change in patch.changes
    )


def _summary(result: TurnResult, files: tuple[ChangedFile, ...]) -> str:
    """What the worker says it did: its intent and actions, else its first words.

    For one that says nothing, its files speak.
    """
    said = result.value
    if said is not UNSET and isinstance(said, StandardResponse):
        return "\n".join([said.intent, *(f"- {action}" for action in said.actions)])
    lines = [line.strip() for line in result.text.splitlines() if line.strip()]
    # What a command prints may begin with a listing; a change is not called by dots and figures.
    told = next((index for index, line in enumerate(lines) if _A_WORD.search(line)), len(lines))
    lines = lines[told:]
    silent = f"Changed {', '.join(file.path for file in files)}"
    return "\n".join(line[:_LONGEST_LINE] for line in lines[:_FIRST_LINES] or [silent])
