"""Getting a verdict: the reviewer is asked, then asked again, then a person (R1, R3, D17).

What follows from an answer is decided by ``proposals.review``; here the questions are put.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from agentcanvas.flows.guards import PERSON
from agentcanvas.flows.settle import SettledReview
from agentcanvas.hub.person_inbox import mailbox_of
from agentcanvas.proposals.checks import Evidence, EvidenceStatus
from agentcanvas.proposals.choosing import chosen_in
from agentcanvas.proposals.model import Decision, FileChoice
from agentcanvas.proposals.policy import Breach
from agentcanvas.proposals.remarks import Remarks, with_remarks
from agentcanvas.proposals.review import (
    Escalation,
    GateOptions,
    Outcome,
    ReviewCase,
    Ruling,
    automatic_verdict,
    judge,
)
from agentcanvas.proposals.verdict import ReviewerKind, Verdict, read_verdict
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.protocol.turns import Access
from agentcanvas.runs import prompts
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.continuing import take_through_limits
from agentcanvas.runs.turn import Place, TurnSpec

_AGAIN = "/again:"
_ASKS = frozenset({Outcome.ASK_REVIEWER, Outcome.ASK_AGAIN, Outcome.ASK_PERSON})


class Dossier(Struct, frozen=True, kw_only=True):
    """A proposal with all that is known about it; ``iteration`` starts at 1.

    ``checked_on`` is the generation under its evidence. ``refused`` says why it did not land when a
    person had applied it; then they are asked once more.
    """

    key: str
    ref: ProposalRef
    task_id: str
    instruction: str
    summary: str
    patch: bytes
    breaches: tuple[Breach, ...]
    evidence: Evidence
    iteration: int
    criteria: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    testing_required: bool = False
    checked_on: int | None = None
    refused: str = ""

    def once_more(self, times: int, refused: str) -> Dossier:
        """The same, to be judged again; what is asked and done then has names of its own (D4)."""
        key = f"{self.key.partition(_AGAIN)[0]}{_AGAIN}{times}"
        return msgspec.structs.replace(self, key=key, refused=refused)


class Judged(Struct, frozen=True):
    """A ruling, and what it is about: the proposal, or the part of it that was chosen."""

    ruling: Ruling
    dossier: Dossier


class Looking(Protocol):
    """Who finds out more about a proposal while it is judged."""

    async def part(self, dossier: Dossier, choice: Sequence[FileChoice]) -> Dossier:
        """Give the dossier of a part; the same one when everything was chosen."""
        ...

    async def renewed(self, dossier: Dossier) -> Dossier | None:
        """Give the dossier on the ground of now; None if what it says still holds."""
        ...


class Verdicts:
    """The review of one interaction's proposals."""

    def __init__(self, run: RunContext, review: SettledReview, place: Place) -> None:
        self._run = run
        self._review = review
        self._place = place
        self._options = GateOptions(
            auto_approve=review.auto_approve,
            allow_unverified=review.allow_unverified,
            max_iterations=review.max_iterations,
            escalation_on_max=Escalation(review.escalation_on_max.value),
        )

    @property
    def max_iterations(self) -> int:
        """How many rounds a proposal may take."""
        return self._options.max_iterations

    async def on(self, whole: Dossier, looking: Looking, part: Dossier | None = None) -> Judged:
        """The ruling that settles this round, whoever has to be asked for it.

        ``part`` is what the first question is about, where an earlier verdict has chosen one.
        """
        dossier = part or whole
        verdict = None if dossier.refused else automatic_verdict(self._options)
        seen: EvidenceStatus | None = None
        asked = of_person = 0
        while True:
            if verdict is None and dossier.refused:
                ruling = Ruling(Outcome.ASK_PERSON, dossier.refused)
            else:
                ruling = judge(self._case(dossier, verdict, asked, seen))
            if ruling.outcome is Outcome.APPLY and (now := await looking.renewed(dossier)):
                dossier = now
                continue  # the same verdict, on what is true now
            if ruling.outcome not in _ASKS:
                return Judged(ruling, dossier)
            if ruling.outcome is Outcome.ASK_PERSON or self._reviewer(dossier) == PERSON:
                of_person += 1
                why = "" if ruling.outcome is Outcome.ASK_REVIEWER else ruling.reason
                seen = dossier.evidence.status
                verdict = await self._ask_person(dossier, of_person, why)
                if verdict is not None and verdict.chosen:
                    dossier = await looking.part(whole, verdict.chosen)
                asked = max(1, asked)
            else:
                asked += 1
                again = ruling.reason if ruling.outcome is Outcome.ASK_AGAIN else ""
                seen = dossier.evidence.status
                verdict = await self._ask_reviewer(dossier, asked, again)

    def _reviewer(self, dossier: Dossier) -> str:
        """Nobody reviews their own work (D26)."""
        named = self._review.reviewer
        return PERSON if named == dossier.ref.agent_id else named

    def _case(
        self, dossier: Dossier, verdict: Verdict | None, asked: int, seen: EvidenceStatus | None
    ) -> ReviewCase:
        return ReviewCase(
            author=dossier.ref.agent_id,
            breaches=dossier.breaches,
            evidence=dossier.evidence,
            verdict=verdict,
            seen=seen,
            asked=asked,
            iteration=dossier.iteration,
            testing_required=dossier.testing_required,
            options=self._options,
        )

    def _watched(self, dossier: Dossier, *, known: bool) -> AbstractAsyncContextManager[None]:
        """The proposal under watch; one whose answer is on record waits for nobody any more."""
        if known:
            return nullcontext()
        return self._run.lookout.waiting(dossier.task_id, dossier.ref)

    async def _ask_reviewer(self, dossier: Dossier, asked: int, again: str) -> Verdict | None:
        known = f"{dossier.key}/review:{asked}" in self._run.journal
        async with self._watched(dossier, known=known):
            return await self._reviewed_by_agent(dossier, asked, again)

    async def _reviewed_by_agent(self, dossier: Dossier, asked: int, again: str) -> Verdict | None:
        run, reviewer = self._run, self._reviewer(dossier)
        run.meter.spend_turn()
        outcome = await take_through_limits(
            run,
            TurnSpec(
                key=f"{dossier.key}/review:{asked}",
                place=self._place,
                to=reviewer,
                role="reviewer",
                task_id=f"review-{dossier.task_id}" + (f"-{asked}" if asked > 1 else ""),
                revision=dossier.iteration - 1,
                message=prompts.review_request(
                    worker=run.name_of(dossier.ref.agent_id),
                    task_id=dossier.task_id,
                    instruction=dossier.instruction,
                    summary=dossier.summary,
                    criteria=dossier.criteria,
                    files=dossier.ref.changed_files,
                    evidence=dossier.evidence,
                    notes=dossier.notes,
                    patch=dossier.patch,
                    again=again,
                ),
                access=Access.READ,
                generation=dossier.ref.generation,
                rules=run.rules.get(reviewer, ()),
            ),
        )
        return read_verdict(outcome.report.text, by=reviewer) if outcome.ok else None

    async def _ask_person(self, dossier: Dossier, count: int, why: str) -> Verdict | None:
        run = self._run
        person = run.order.person
        text = prompts.review_for_person(
            worker=run.name_of(dossier.ref.agent_id),
            task_id=dossier.task_id,
            instruction=dossier.instruction,
            summary=dossier.summary,
            files=dossier.ref.changed_files,
            evidence=dossier.evidence,
            notes=dossier.notes,
            why=why,
        )
        ask = PersonAsk(
            ask_id=f"{run.run_id}/{dossier.key}/person:{count}",
            person=person,
            run_id=run.run_id,
            agent_id=dossier.ref.agent_id,
            scope=f"review:{dossier.task_id}",
            text=text,
            instruction="APPLY, REJECT: reason, or REVISE: instructions",
            schema=prompts.VERDICT_SCHEMA,
            problem=why if count > 1 or dossier.refused else "",
            proposal=dossier.ref.proposal_id,
        )
        async with self._watched(dossier, known=run.people.has_heard(ask.ask_id)):
            answer = await run.people.ask(ask)
        return _verdict_of(answer.content, mailbox_of(answer.person or person))


def _verdict_of(content: Any, by: str) -> Verdict | None:
    if isinstance(content, str):
        return read_verdict(content, by=by, kind=ReviewerKind.PERSON)
    if not isinstance(content, Mapping):
        return None
    try:
        decision = Decision(str(content.get("decision", "")).lower())
    except ValueError:
        return None
    try:
        remarks = msgspec.convert(content.get("comments") or (), Remarks)
        chosen = chosen_in(content) if decision is Decision.APPLY else ()
    except msgspec.ValidationError:
        return None
    reason = with_remarks(str(content.get("reason") or ""), remarks)
    return Verdict(decision, by, ReviewerKind.PERSON, reason, chosen=chosen)
