"""The gate: may this proposal land, and if not, what next (R1-R5, C2-C4, D13, D17).

A pure function of a ``ReviewCase``; only ``runs`` asks reviewers and counts rounds. Precedence is
path safety, then checks, then findings, then the decision. Code only ever lowers an apply; the one
exception is ``force_approve``, which a flow must name, which never passes path safety and which is
recorded as forced.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.proposals.checks import Evidence, EvidenceStatus
from agentcanvas.proposals.model import Decision, ProposalReview
from agentcanvas.proposals.policy import Breach
from agentcanvas.proposals.verdict import AUTOMATIC, ReviewerKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ITERATIONS: Final = 3
ASKS: Final = 2


class Escalation(StrEnum):
    """What happens after the last round (R3)."""

    ABORT = "abort"
    FORCE_APPROVE = "force_approve"
    HUMAN_REVIEW = "human_review"


class GateOptions(msgspec.Struct, frozen=True, rename="camel"):
    """What a flow says about its reviews."""

    auto_approve: bool = False
    allow_unverified: bool = False
    max_iterations: int = MAX_ITERATIONS
    escalation_on_max: Escalation = Escalation.HUMAN_REVIEW


class Outcome(StrEnum):
    """What is to be done; the ASKs leave the proposal waiting."""

    APPLY = "apply"
    REJECT = "reject"
    REVISE = "revise"
    ASK_REVIEWER = "ask_reviewer"
    ASK_AGAIN = "ask_again"
    ASK_PERSON = "ask_person"


_DOUBT: Final = {
    EvidenceStatus.PASSED: 0,
    EvidenceStatus.UNVERIFIED: 1,
    EvidenceStatus.UNSOUND: 2,
    EvidenceStatus.RED_BEFORE: 3,
    EvidenceStatus.FAILED: 4,
}


class ReviewCase(msgspec.Struct, frozen=True):
    """Everything that the gate looks at.

    ``asked`` counts how often the reviewer was asked in this round, and ``verdict`` is None while
    no answer could be read. ``seen`` is what the evidence was when it was given: that of a part, or
    on ground that has moved since, may be another. ``iteration`` starts at 1.
    """

    author: str
    breaches: tuple[Breach, ...]
    evidence: Evidence
    verdict: Verdict | None = None
    seen: EvidenceStatus | None = None
    asked: int = 0
    iteration: int = 1
    testing_required: bool = False
    options: GateOptions = GateOptions()

    @property
    def lacks_tests(self) -> bool:
        """The task demands tests, and nothing was verified (S9)."""
        return self.testing_required and self.evidence.status is EvidenceStatus.UNVERIFIED

    @property
    def is_worse_than_seen(self) -> bool:
        """The evidence speaks less for the change than what the verdict stands on."""
        return self.seen is not None and _DOUBT[self.evidence.status] > _DOUBT[self.seen]


class Ruling(msgspec.Struct, frozen=True):
    """The gate's answer; ``forced`` and ``overridden`` go on record with it."""

    outcome: Outcome
    reason: str
    by: str = "system"
    forced: bool = False
    overridden: bool = False

    def review(self, run_id: str, task_id: str, *, applied_at: int | None = None) -> ProposalReview:
        """As the event that R1 asks for; only for an outcome that settles the round."""
        decision = Decision(self.outcome.value)
        return ProposalReview(run_id, task_id, decision, self.reason or None, applied_at)


def judge(case: ReviewCase) -> Ruling:
    """One ruling for one state of affairs."""
    verdict = case.verdict
    if case.breaches:
        return _unsafe(case)
    if verdict is None or not verdict.by.strip():
        return _unanswered(case)
    if verdict.by == case.author:
        return _person("Nobody reviews their own proposal; someone other than its author decides")
    rule = _RULES[verdict.kind, verdict.decision]
    return rule(case, verdict)


def automatic_verdict(options: GateOptions) -> Verdict | None:
    """The verdict of a flow that approves by itself; it passes the gate like any other (R1)."""
    return AUTOMATIC if options.auto_approve else None


def _unsafe(case: ReviewCase) -> Ruling:
    """Nobody can override path safety, so nobody is asked."""
    told = "; ".join(breach.sentence for breach in case.breaches)
    if case.verdict is not None and case.verdict.decision is Decision.REJECT:
        return Ruling(Outcome.REJECT, f"{case.verdict.reason} (and it may not land: {told})")
    if case.iteration < case.options.max_iterations:
        return Ruling(Outcome.REVISE, f"The change may not land: {told}")
    return Ruling(Outcome.REJECT, f"After {case.iteration} rounds it still may not land: {told}")


def _unanswered(case: ReviewCase) -> Ruling:
    if case.asked == 0:
        return Ruling(Outcome.ASK_REVIEWER, "It waits for a verdict")
    if case.asked < ASKS:
        return Ruling(
            Outcome.ASK_AGAIN,
            "No verdict could be read; end with a line APPLY, REJECT: reason or "
            "REVISE: instructions",
        )
    return _person("The reviewer gave no verdict that can be read")


def _person(reason: str) -> Ruling:
    return Ruling(Outcome.ASK_PERSON, reason)


def _rejected(_case: ReviewCase, verdict: Verdict) -> Ruling:
    return Ruling(Outcome.REJECT, verdict.reason or "rejected without a reason", verdict.by)


def _revised(case: ReviewCase, verdict: Verdict) -> Ruling:
    reason = verdict.reason or "a revision was asked for without instructions"
    return _next_round(case, reason, verdict.by)


def _revised_by_person(_case: ReviewCase, verdict: Verdict) -> Ruling:
    """A person is where escalation ends, so their word is not counted against the rounds."""
    reason = verdict.reason or "a revision was asked for without instructions"
    return Ruling(Outcome.REVISE, reason, verdict.by)


def _next_round(case: ReviewCase, reason: str, by: str) -> Ruling:
    """Another revision, or what the flow wants once there have been enough."""
    if case.iteration < case.options.max_iterations:
        return Ruling(Outcome.REVISE, reason, by)
    spent = f"{case.iteration} rounds are spent"
    match case.options.escalation_on_max:
        case Escalation.ABORT:
            return Ruling(Outcome.REJECT, f"{spent}: {reason}", by)
        case Escalation.FORCE_APPROVE:
            return Ruling(Outcome.APPLY, f"{spent}, approved by force: {reason}", by, forced=True)
        case Escalation.HUMAN_REVIEW:
            return _person(f"{spent}: {reason}")


def _objection(case: ReviewCase, verdict: Verdict) -> str:
    """Why an approval does not hold, empty if it does (R3)."""
    if case.evidence.status is EvidenceStatus.FAILED:
        return f"checks fail: {case.evidence.sentence}"
    if not verdict.verified:
        return "the reviewer's own verification did not pass"
    blocking = [finding for finding in verdict.findings if finding.blocks]
    if blocking:
        told = "; ".join(f"{finding.severity}: {finding.description}" for finding in blocking)
        return f"findings are open: {told}"
    return ""


def _approved_by_agent(case: ReviewCase, verdict: Verdict) -> Ruling:
    if objection := _objection(case, verdict):
        return _next_round(case, f"Approved, but {objection}", verdict.by)
    if case.evidence.status in {EvidenceStatus.RED_BEFORE, EvidenceStatus.UNSOUND}:
        return _person(f"The checks cannot tell: {case.evidence.sentence}")
    if case.lacks_tests:
        return _person(f"The task requires tests: {case.evidence.sentence}")
    return Ruling(Outcome.APPLY, verdict.reason or case.evidence.sentence, verdict.by)


def _approved_by_person(case: ReviewCase, verdict: Verdict) -> Ruling:
    """A person may override what the checks and findings say, if they know it and say why (C4)."""
    if case.is_worse_than_seen:
        return _person(
            f"Answer once more, knowing what the checks say now: {case.evidence.sentence}"
        )
    objection = _objection(case, verdict)
    if not objection and case.evidence.worse:
        objection = f"checks fail in another way than before: {case.evidence.sentence}"
    if not objection:
        return Ruling(Outcome.APPLY, verdict.reason or case.evidence.sentence, verdict.by)
    if not verdict.reason.strip():
        return _person(f"To apply it although {objection}, give a reason")
    return Ruling(
        Outcome.APPLY, f"{verdict.reason} (although {objection})", verdict.by, overridden=True
    )


def _approved_automatically(case: ReviewCase, verdict: Verdict) -> Ruling:
    evidence = case.evidence
    unverified = (
        evidence.status is EvidenceStatus.UNVERIFIED
        and case.options.allow_unverified
        and not case.lacks_tests
    )
    if not case.options.auto_approve:
        return _person("This flow does not approve by itself")
    if _objection(case, verdict) or evidence.fewer_tests or evidence.steering:
        return _person(f"Not approved automatically: {evidence.sentence}")
    if evidence.status is EvidenceStatus.PASSED or unverified:
        return Ruling(Outcome.APPLY, f"{verdict.reason}: {evidence.sentence}", verdict.by)
    return _person(f"Not approved automatically: {evidence.sentence}")


_RULES: Final[dict[tuple[ReviewerKind, Decision], Callable[[ReviewCase, Verdict], Ruling]]] = {
    (ReviewerKind.AGENT, Decision.APPLY): _approved_by_agent,
    (ReviewerKind.AGENT, Decision.REJECT): _rejected,
    (ReviewerKind.AGENT, Decision.REVISE): _revised,
    (ReviewerKind.PERSON, Decision.APPLY): _approved_by_person,
    (ReviewerKind.PERSON, Decision.REJECT): _rejected,
    (ReviewerKind.PERSON, Decision.REVISE): _revised_by_person,
    (ReviewerKind.AUTOMATIC, Decision.APPLY): _approved_automatically,
    (ReviewerKind.AUTOMATIC, Decision.REJECT): _rejected,
    (ReviewerKind.AUTOMATIC, Decision.REVISE): _revised,
}
