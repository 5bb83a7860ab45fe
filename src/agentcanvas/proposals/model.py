"""What a proposal is on the wire and on disk, and the life it leads.

``Proposal`` is proposal.json to the letter (S4), ``ProposalReview`` the outcome of the gate (R1),
``AnnounceMessage`` what a worker's turn came to (R4). Pure values; the folder they are kept in is
``shelf``, the rules of the gate are ``review``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from agentcanvas.errors import IllegalTransition, ProposalMalformed
from agentcanvas.protocol.records import ChangedFile

PATCH_FILE: Final = "changes.patch"
SUMMARY_FILE: Final = "summary.md"
PROPOSAL_FILE: Final = "proposal.json"
TEST_LOG: Final = "test.log"
SUMMARY_LINES: Final = 3

_TIME_FORM: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"
Rfc3339 = Annotated[str, msgspec.Meta(pattern=_TIME_FORM)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """camelCase outside, absent rather than null for what has a default."""


class Base(Wire, frozen=True):
    """``git_head`` is null outside git, and then said so rather than left out."""

    git_head: str | None


class SandboxPaths(Wire, frozen=True, omit_defaults=False):
    """Relative to the sandbox."""

    input_dir: str = "input"
    work_dir: str = "work"
    patch_file: str = f"proposal/{PATCH_FILE}"
    summary_file: str = f"proposal/{SUMMARY_FILE}"


class FileChoice(Wire, frozen=True):
    """A file of a proposal, whole, or its hunks by number; 0 is the change of its mode (D13)."""

    path: str
    hunks: tuple[int, ...] | None = None


class DerivedFrom(Wire, frozen=True):
    """The proposal that this one is a part of, and which part."""

    proposal_id: str
    patch_sha256: str
    chosen: tuple[FileChoice, ...]


class Proposal(Wire, frozen=True, omit_defaults=False):
    """proposal.json (S4); only a part of another proposal has ``derived_from``."""

    version: Literal["1"]
    run_id: str
    agent_id: str
    created_at: Rfc3339
    base: Base
    paths: SandboxPaths
    changed_files: tuple[ChangedFile, ...]
    notes: str = ""
    derived_from: DerivedFrom | msgspec.UnsetType = msgspec.UNSET

    def head_warning(self, head: str | None) -> str | None:
        """The sentence for a workspace that has moved on since the sandbox was made (S6)."""
        if head == self.base.git_head:
            return None
        then, now = (sha[:12] if sha else "no commit" for sha in (self.base.git_head, head))
        return f"The workspace is at {now}, the proposal was made at {then}."


class Decision(StrEnum):
    """The three verdicts there are."""

    APPLY = "apply"
    REJECT = "reject"
    REVISE = "revise"


class ProposalReview(Wire, frozen=True):
    """The outcome of the gate (R1); ``applied_at`` is milliseconds since the epoch."""

    run_id: str
    task_id: str
    decision: Decision
    reason: str | None = None
    applied_at: int | None = None


class TestsRun(Wire, frozen=True):
    """How many tests passed and failed, where the output says so."""

    __test__ = False  # pytest would take the name for a test class

    passed: Count
    failed: Count

    @property
    def total(self) -> int:
        return self.passed + self.failed


class WorkStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"


class AnnounceMessage(Wire, frozen=True, kw_only=True):
    """To the orchestrator before the review, to the user after it (R4)."""

    run_id: str
    worker_id: str
    worker_name: str
    status: WorkStatus
    summary: str
    proposal_path: str | None = None
    touched_files: tuple[str, ...]
    tests_run: TestsRun | None = None
    duration_ms: Count


def announce(
    *,
    run_id: str,
    worker_id: str,
    worker_name: str,
    duration_ms: int,
    summary: str,
    proposal: Proposal | None = None,
    proposal_path: str | None = None,
    tests_run: TestsRun | None = None,
    timed_out: bool = False,
) -> AnnounceMessage:
    """What a turn came to: ok only if a proposal was made and it changes something (R4)."""
    touched = tuple(file.path for file in proposal.changed_files) if proposal else ()
    status = WorkStatus.OK if touched else WorkStatus.ERROR
    return AnnounceMessage(
        run_id=run_id,
        worker_id=worker_id,
        worker_name=worker_name,
        status=WorkStatus.TIMEOUT if timed_out else status,
        summary=brief(summary),
        touched_files=touched,
        duration_ms=duration_ms,
        proposal_path=proposal_path if proposal else None,
        tests_run=tests_run,
    )


def brief(summary: str) -> str:
    """The first three lines that say something."""
    lines = [line.strip().lstrip("#").strip() for line in summary.splitlines()]
    return "\n".join([line for line in lines if line][:SUMMARY_LINES])


class ProposalState(StrEnum):
    """Where a proposal stands; ``TRANSITIONS`` holds every legal move."""

    CREATED = "created"
    EVIDENCE = "evidence"
    WAITING = "waiting"
    STALE = "stale"
    CONFLICTS = "conflicts"
    APPLYING = "applying"
    APPLIED = "applied"
    UNDONE = "undone"
    REJECTED = "rejected"
    REVISED = "revised"
    DISCARDED = "discarded"

    @property
    def settled(self) -> bool:
        """Nothing waits for it any more, so its sandbox may be recycled (D15)."""
        return self in SETTLED

    def to(self, target: ProposalState) -> ProposalState:
        legal = TRANSITIONS[self]
        if target not in legal:
            moves = ", ".join(sorted(legal)) or "nothing"
            raise IllegalTransition(
                f"A proposal that is {self} cannot become {target}; it can become {moves}."
            )
        return target


_S = ProposalState
_ENDS: Final = frozenset({_S.REJECTED, _S.REVISED, _S.DISCARDED})
TRANSITIONS: Final[dict[ProposalState, frozenset[ProposalState]]] = {
    _S.CREATED: frozenset({_S.EVIDENCE}) | _ENDS,
    _S.EVIDENCE: frozenset({_S.WAITING}) | _ENDS,
    _S.WAITING: frozenset({_S.APPLYING, _S.STALE, _S.CONFLICTS}) | _ENDS,
    # The base moved under it: what was green there says nothing about here (D13).
    _S.STALE: frozenset({_S.EVIDENCE, _S.CONFLICTS}) | _ENDS,
    # The user's edit may go away again, so that it merges after all.
    _S.CONFLICTS: frozenset({_S.WAITING, _S.STALE}) | _ENDS,
    # A failed apply was rolled back, so the proposal is where it was.
    _S.APPLYING: frozenset({_S.APPLIED, _S.CONFLICTS, _S.WAITING}),
    _S.APPLIED: frozenset({_S.UNDONE}),
    # Taken back, it may be judged again.
    _S.UNDONE: frozenset({_S.WAITING, _S.STALE}),
    _S.REJECTED: frozenset(),
    _S.REVISED: frozenset(),
    _S.DISCARDED: frozenset(),
}
SETTLED: Final = _ENDS | {_S.APPLIED, _S.UNDONE}


def encode(value: Wire) -> bytes:
    """JSON for people: two spaces a level and a last line end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def decode_proposal(data: bytes) -> Proposal:
    try:
        return msgspec.json.decode(data, type=Proposal)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ProposalMalformed(
            f"{PROPOSAL_FILE} cannot be read: {problem}. Make the proposal again."
        ) from problem
