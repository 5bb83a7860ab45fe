"""A proposal as it is shown to whoever decides: what it changes, what speaks for and against it.

Values for commands and pages, made from what is kept: the patch, the evidence, the events. How it
stands in the workspace of now is ``lookout``'s to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.checks import Evidence
from agentcanvas.proposals.choosing import HunkPart, parts_of
from agentcanvas.proposals.collisions import Collision
from agentcanvas.proposals.footprint import Touch, footprint
from agentcanvas.proposals.model import (
    Decision,
    DerivedFrom,
    ProposalReview,
    ProposalState,
    Wire,
)
from agentcanvas.proposals.policy import Breach
from agentcanvas.proposals.radar import Outlook
from agentcanvas.proposals.secrets import SecretFinding, secrets_in
from agentcanvas.proposals.self_running import RunNote, self_running
from agentcanvas.proposals.verdict import Finding, read_verdict
from agentcanvas.protocol.records import ChangeStatus
from agentcanvas.runs import events as e
from agentcanvas.runs.shelf import Kept
from agentcanvas.runs.state import TaskState, TaskStatus


class ShownHunk(Wire, frozen=True):
    """One hunk; ``number`` is its name in a choice and stays the same for this proposal.

    Number 0 is the change of the file's mode and has no lines.
    """

    number: int
    old_start: int = 0
    old_count: int = 0
    new_start: int = 0
    new_count: int = 0
    heading: str = ""


class ShownFile(Wire, frozen=True, kw_only=True):
    """One file; without ``hunks`` it is taken whole or not at all."""

    path: str
    status: ChangeStatus
    added: int = 0
    removed: int = 0
    binary: bool = False
    hunks: tuple[ShownHunk, ...] = ()


class ShownReview(Wire, frozen=True, kw_only=True):
    """What somebody said about it."""

    by: str
    decision: Decision
    reason: str = ""
    findings: tuple[Finding, ...] = ()


class Attempt(Wire, frozen=True, kw_only=True):
    """One round of a task, counted from 1; the decision is absent while it waits for one."""

    number: int
    proposal_id: str
    decision: Decision | None = None
    reason: str = ""


class ShownProposal(Wire, frozen=True, kw_only=True):
    """Everything about one attempt at a task; ``ask_id`` is what an answer goes to, if it waits.

    ``outlook`` and ``overlaps`` are there for one that waits: how it stands in the workspace of
    now, and which other waiting proposals it meets, by ``run/proposal``. ``evidence`` is absent for
    one that is unsafe; then ``breaches`` say why.
    """

    run_id: str
    task_id: str
    proposal_id: str
    attempt: int
    worker: str
    status: ProposalState
    generation: int
    created_at: str
    instruction: str = ""
    summary: str = ""
    files: tuple[ShownFile, ...] = ()
    evidence: Evidence | None = None
    evidence_status: str = ""
    evidence_sentence: str = ""
    breaches: tuple[Breach, ...] = ()
    secrets: tuple[SecretFinding, ...] = ()
    self_running: tuple[RunNote, ...] = ()
    reviews: tuple[ShownReview, ...] = ()
    outlook: Outlook | None = None
    overlaps: tuple[Collision, ...] = ()
    ask_id: str | None = None
    attempts: tuple[Attempt, ...] = ()
    derived_from: DerivedFrom | None = None


class Side(StrEnum):
    """Of a file in a proposal: as it was, or as it would be."""

    BEFORE = "before"
    AFTER = "after"


_STATES = {
    TaskStatus.DISPATCHED: ProposalState.REVISED,
    TaskStatus.IN_REVIEW: ProposalState.WAITING,
    TaskStatus.REVISING: ProposalState.REVISED,
    TaskStatus.APPLIED: ProposalState.APPLIED,
    TaskStatus.REJECTED: ProposalState.REJECTED,
    TaskStatus.FAILED: ProposalState.DISCARDED,
    TaskStatus.ANSWERED: ProposalState.DISCARDED,
    TaskStatus.UNDONE: ProposalState.UNDONE,
}


def shown_proposal(
    kept: Kept,
    task: TaskState,
    history: Rounds,
    attempt: int,
    base: Path,
    *,
    ask_id: str | None = None,
) -> ShownProposal:
    """Put together what is known of one attempt; ``base`` is the tree it was made on."""
    proposal, patch = kept.folder.proposal, kept.folder.patch
    evidence = kept.evident.evidence if kept.evident else None
    derived = proposal.derived_from
    is_last = attempt == len(history.attempts)
    notes: tuple[RunNote, ...] = ()
    secrets: tuple[SecretFinding, ...] = ()
    with suppress(ProposalMalformed):  # then the breaches tell
        notes, secrets = self_running(patch, base), secrets_in(patch)
    return ShownProposal(
        run_id=proposal.run_id,
        task_id=task.task_id,
        proposal_id=kept.proposal_id,
        attempt=attempt,
        worker=proposal.agent_id,
        status=_STATES[task.status] if is_last else ProposalState.REVISED,
        generation=kept.generation,
        created_at=proposal.created_at,
        instruction=task.instruction,
        summary=kept.folder.summary.partition("\nHANDOFF\n")[0].strip(),
        files=shown_files(patch),
        evidence=evidence,
        evidence_status=evidence.status.value if evidence else "",
        evidence_sentence=evidence.sentence if evidence else "",
        breaches=kept.evident.breaches if kept.evident else (),
        secrets=secrets,
        self_running=notes,
        reviews=history.reviews(attempt),
        ask_id=ask_id if is_last else None,
        attempts=history.attempts,
        derived_from=derived if isinstance(derived, DerivedFrom) else None,
    )


def shown_files(patch: bytes) -> tuple[ShownFile, ...]:
    """What a patch changes, file by file; nothing where it cannot be read."""
    try:
        touches, parts = footprint(patch).files, parts_of(patch)
    except ProposalMalformed:
        return ()
    return tuple(
        ShownFile(
            path=part.path,
            status=part.status,
            added=_signs(touches[part.path], b"+"),
            removed=_signs(touches[part.path], b"-"),
            binary=any(section.binary for section in touches[part.path].sections),
            hunks=tuple(map(_shown_hunk, part.hunks)),
        )
        for part in parts
    )


def _shown_hunk(part: HunkPart) -> ShownHunk:
    return ShownHunk(**msgspec.structs.asdict(part))


def _signs(touch: Touch, sign: bytes) -> int:
    lines = (line for section in touch.sections for hunk in section.hunks for line in hunk.lines)
    return sum(line[:1] == sign for line in lines)


class Rounds:
    """The rounds of one task, as the run's events tell them."""

    def __init__(self, entries: Sequence[e.Recorded], task_id: str) -> None:
        self._task_id = task_id
        self._worked_on = ""
        self._submitted: list[str] = []
        self._decided: dict[int, tuple[str, ProposalReview]] = {}
        self._asked: dict[str, int] = {}
        self._said: dict[int, list[ShownReview]] = {}
        for entry in entries:
            self._take(entry.event)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All rounds that brought a proposal, in order."""
        found = []
        for number, proposal_id in enumerate(self._submitted, start=1):
            _, review = self._decided.get(number, ("", None))
            found.append(
                Attempt(
                    number=number,
                    proposal_id=proposal_id,
                    decision=review.decision if review else None,
                    reason=(review.reason or "") if review else "",
                )
            )
        return tuple(found)

    def reviews(self, attempt: int) -> tuple[ShownReview, ...]:
        """What was said about one of them: by reviewers, then what was decided."""
        said = list(self._said.get(attempt, ()))
        by, review = self._decided.get(attempt, ("", None))
        if review and not any(each.by == by for each in said):
            said.append(ShownReview(by=by, decision=review.decision, reason=review.reason or ""))
        return tuple(said)

    def _take(self, event: e.RunEvent) -> None:
        match event:
            case e.TurnStarted(payload=begun) if begun.task_id == self._task_id:
                self._worked_on = f"{begun.task_id}.r{begun.revision}"
            case e.TurnStarted(payload=begun) if self._reviews(begun):
                self._asked[begun.turn_id] = len(self._submitted)
            case e.TurnEnded(actor=who, payload=done) if done.turn_id in self._asked:
                self._hear(who, done)
            case e.ProposalSubmitted(payload=submission) if submission.task_id == self._task_id:
                self._submitted.append(self._worked_on)
            case e.ProposalReviewed(actor=who, payload=review) if review.task_id == self._task_id:
                self._decided[len(self._submitted)] = (who, review)
            case _:
                pass

    def _reviews(self, begun: e.TurnBegun) -> bool:
        name = f"review-{self._task_id}"
        return begun.role == "reviewer" and (
            begun.task_id == name or begun.task_id.startswith(f"{name}-")
        )

    def _hear(self, who: str, done: e.TurnDone) -> None:
        verdict = read_verdict(done.text, by=who) if done.ok else None
        if verdict is not None:
            said = ShownReview(
                by=who,
                decision=verdict.decision,
                reason=verdict.reason,
                findings=verdict.findings,
            )
            self._said.setdefault(self._asked[done.turn_id], []).append(said)
