"""One task, from its dispatch until it is settled (V4, D6).

Dispatch, turn, proposal, evidence, verdict, then apply, reject or once more. Every part is recorded
with its events in one transaction, so that a resumed run goes on where it was cut off and nothing
happens twice (D3).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, structs

from agentcanvas.flows.guards import Land
from agentcanvas.pattern import Ask, Fate, Work
from agentcanvas.proposals.checks import Evidence
from agentcanvas.proposals.model import Decision, brief
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.review import Outcome, Ruling
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.protocol.kinds import AttemptSummary
from agentcanvas.protocol.records import FailureClass, ProposalRef
from agentcanvas.protocol.turns import Access
from agentcanvas.runs import events as e
from agentcanvas.runs import prompts, shelf
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.continuing import take_through_limits
from agentcanvas.runs.evidence import Examiner
from agentcanvas.runs.examining import Examining
from agentcanvas.runs.landing import Landed, land
from agentcanvas.runs.offstage import Settled
from agentcanvas.runs.shelf import Evident
from agentcanvas.runs.task_events import TaskEvents
from agentcanvas.runs.turn import Place, TurnOutcome, TurnSpec
from agentcanvas.runs.verdicts import Dossier, Verdicts

_WORTH_A_RETRY = frozenset(
    {FailureClass.CRASH, FailureClass.UNKNOWN, FailureClass.SERVER, FailureClass.NETWORK}
)
"""What may go better the second time (C1); the others fail the same way again."""


class Terms(Struct, frozen=True):
    """What holds for every task of an interaction."""

    verdicts: Verdicts
    examiner: Examiner
    place: Place
    orchestrator: str
    land: Land = Land.WORKTREE
    scopes: tuple[tuple[str, ...], ...] = ()


class Assignment:
    """One ask with a work product."""

    def __init__(self, run: RunContext, terms: Terms, step: str, ask: Ask) -> None:
        assert ask.work is not None, "a task has a work product"
        self._run = run
        self._terms = terms
        self._step = step
        self._ask = ask
        self._work: Work = ask.work
        self._turns = 1
        self._message = ask.message
        self._previous: list[AttemptSummary] = []
        self._generation: int | None = None
        self._session = ""
        self._worker = ask.to
        """Who does it: its worker, or whoever it was handed over to."""
        interaction = terms.place.interaction_id or None
        self._events = TaskEvents(
            run, ask.work.task_id, interaction_id=interaction, orchestrator=terms.orchestrator
        )
        self._examining = Examining(
            run,
            terms.examiner,
            self._policy,
            scopes=terms.scopes,
            interaction_id=interaction,
        )

    async def carry_out(self) -> Settled:
        """Work until the task is settled; a candidate is settled when its evidence is there."""
        revision = 0
        while True:
            key = f"{self._step}/r{revision}"
            turn = await self._have_turn(key, revision)
            self._worker = turn.by or self._worker
            if turn.ok and turn.report.proposal is UNSET and self._work.optional:
                return await self._answered(key, turn)
            if not turn.ok or turn.report.proposal is UNSET:
                return await self._without_proposal(key, turn)
            assert isinstance(turn.report.proposal, ProposalRef)
            self._session = turn.report.session_id
            dossier = await self._examine(key, turn, turn.report.proposal, revision)
            if not self._ask.land:
                return self._settled(turn.report.text, proposal=dossier.ref)
            settled = await self.judge(dossier, revision)
            if settled is not None:
                return self._in_own_words(settled, turn)
            revision += 1
            self._run.meter.spend_turn()
            self._turns += 1

    def _in_own_words(self, settled: Settled, turn: TurnOutcome) -> Settled:
        """With all that was said, where others read that; a report is told in brief."""
        if not self._work.optional or settled.fate is Fate.FAILED:
            return settled
        return structs.replace(settled, text=turn.report.text)

    async def judge_candidate(self, ref: ProposalRef) -> Settled:
        """Have one judged that was handed in earlier; a verdict to revise it is a rejection.

        Its worker has gone on to other things, so there is nobody to send it back to.
        """
        self._turns = 0
        folder = await shelf.keep(self._run.ground.workspace, ref)
        evident = await self._run.once(
            f"{self._step}/evidence", ref.proposal_id, Evident, lambda: self._evident(ref, folder)
        )
        dossier = self._dossier(self._step, ref, folder, evident, 1)
        settled = await self.judge(dossier, 0)
        if settled is not None:
            return settled
        return self._settled(dossier.summary, Fate.REJECTED, self._previous[-1].feedback, ref)

    async def _evident(
        self, ref: ProposalRef, folder: ProposalFolder
    ) -> tuple[Evident, Sequence[e.RunEvent]]:
        return await self._examining.evident(ref, folder), ()

    async def judge(self, dossier: Dossier, revision: int) -> Settled | None:
        """Have a proposal judged and landed; None when it goes back to its worker."""
        before = self._run.meter.turns
        dossier, ruling, landed = await self._verdict(dossier)
        self._turns += self._run.meter.turns - before
        if landed is not None:
            if landed.failure:
                return self._settled(landed.failure, Fate.FAILED, landed.failure)
            if not landed.conflict:
                return self._settled(dossier.summary, proposal=dossier.ref)
            if revision + 1 >= self._terms.verdicts.max_iterations:
                return self._settled(dossier.summary, Fate.FAILED, landed.conflict, dossier.ref)
            ruling = Ruling(Outcome.REVISE, landed.conflict)
            self._begin_anew(landed.conflict, dossier.evidence)
        elif await self._has_no_ground(dossier, ruling):
            self._begin_anew(ruling.reason, dossier.evidence)
        else:
            self._message = prompts.revision(self._ask.message, ruling.reason, dossier.evidence)
            self._generation = dossier.ref.generation
        await self._close_round(dossier, ruling)
        if ruling.outcome is Outcome.REJECT:
            return self._settled(dossier.summary, Fate.REJECTED, ruling.reason, dossier.ref)
        self._previous.append(AttemptSummary(revision + 1, Decision.REVISE.value, ruling.reason))
        return None

    async def _verdict(self, whole: Dossier) -> tuple[Dossier, Ruling, Landed | None]:
        """The ruling, what it is about, and how it landed if it was to.

        What a person has applied and the ground refuses goes on waiting for them: it may be their
        own edit that is in the way, and a revision is a turn that nobody has asked for.
        """
        part: Dossier | None = None
        refusals = 0
        while True:
            judged = await self._terms.verdicts.on(whole, self._examining, part)
            dossier, ruling = judged.dossier, judged.ruling
            if ruling.outcome is not Outcome.APPLY:
                return dossier, ruling, None
            landed = await land(
                self._run,
                dossier,
                ruling,
                way=self._terms.land,
                policy=self._policy,
                events=self._events,
            )
            if not (landed.conflict and ruling.by.startswith("person:")):
                return dossier, ruling, landed
            refusals += 1
            whole = whole.once_more(refusals, landed.conflict)
            part = dossier.once_more(refusals, landed.conflict)

    async def _has_no_ground(self, dossier: Dossier, ruling: Ruling) -> bool:
        """Whether a round on the same ground could not lead to anything that lands."""
        if dossier.refused or dossier.checked_on != dossier.ref.generation:
            return True
        if ruling.outcome is not Outcome.REVISE or not ruling.by.startswith("person:"):
            return False

        async def effect() -> tuple[bool, Sequence[e.RunEvent]]:
            base = await self._run.ground.generation(dossier.ref.generation)
            forecast = await self._run.ground.foresee(dossier.patch, base, self._policy)
            return bool(forecast.conflicts), ()

        return await self._run.once(
            f"{dossier.key}/conflicts", dossier.ref.proposal_id, bool, effect
        )

    def _begin_anew(self, reason: str, evidence: Evidence) -> None:
        """What was wrong shows on the ground of now only, so the next round stands on that."""
        self._generation = None
        self._session = ""  # it knows files that are no longer so
        self._message = prompts.anew(self._ask.message, reason, evidence)

    # -- the turn --------------------------------------------------------------------------------

    async def _have_turn(self, key: str, revision: int) -> TurnOutcome:
        outcome = await self._take_turn(f"{key}/work", revision)
        late = outcome.report.timed_out
        if outcome.ok or not (late or outcome.failure in _WORTH_A_RETRY):
            return outcome
        self._run.meter.spend_turn()
        self._turns += 1
        # What was late gets twice the time; what failed otherwise may go better now (C1).
        return await self._take_turn(
            f"{key}/retry", revision, again=True, patience=2 if late else 1
        )

    async def _take_turn(
        self, key: str, revision: int, *, again: bool = False, patience: int = 1
    ) -> TurnOutcome:
        run, ask, work = self._run, self._ask, self._work
        generation = self._generation
        if generation is None and key not in run.journal:
            generation = (await run.ground.current()).number
        spec = TurnSpec(
            key=key,
            place=self._terms.place,
            to=self._worker,
            message=self._message,
            role=ask.role,
            number=ask.number,
            task_id=work.task_id,
            revision=revision,
            again=again,
            patience=patience,
            access=Access.WORK,
            own_words=work.optional,
            generation=generation,
            on=tuple(shelf.patch_of(run.ground.workspace, ref) for ref in ask.on),
            session="" if again else self._session,
            scope=work.scope,
            testing_required=work.testing_required,
            acceptance_criteria=work.acceptance_criteria,
            previous_attempts=tuple(self._previous),
            rules=run.rules.get(self._worker, ()),
        )
        dispatched = self._events.dispatched(self._worker, self._message)
        return await take_through_limits(run, spec, dispatched)

    async def _answered(self, key: str, turn: TurnOutcome) -> Settled:
        """A task of which words were enough."""
        text = turn.report.text

        async def effect() -> tuple[Settled, Sequence[e.RunEvent]]:
            return self._settled(text), self._events.answered(self._worker, text)

        return await self._run.once(f"{key}/answered", text, Settled, effect)

    async def _without_proposal(self, key: str, turn: TurnOutcome) -> Settled:
        """A task that brought nothing to judge: an error, never a success (R4, C12)."""
        reason = turn.reason or f"{self._run.name_of(self._worker)} changed nothing"
        text = turn.report.text

        async def effect() -> tuple[Settled, Sequence[e.RunEvent]]:
            fate = Fate.TIMED_OUT if turn.report.timed_out else Fate.FAILED
            settled = self._settled(text, fate, reason, failure=turn.failure)
            return settled, self._events.failed(self._worker, reason, turn)

        return await self._run.once(f"{key}/failed", reason, Settled, effect)

    # -- the proposal ----------------------------------------------------------------------------

    async def _examine(
        self, key: str, turn: TurnOutcome, ref: ProposalRef, revision: int
    ) -> Dossier:
        """Shelve a proposal, gather its evidence, and tell everybody that it is there."""
        run = self._run
        folder = await shelf.keep(run.ground.workspace, ref)
        summary = turn.report.summary or _said(folder)

        async def effect() -> tuple[Evident, Sequence[e.RunEvent]]:
            evident = await self._examining.evident(ref, folder)
            submitted = self._events.submitted(self._worker, turn, folder, summary, evident)
            return evident, [self._examining.told(self._work.task_id, evident), *submitted]

        evident = await run.once(f"{key}/evidence", ref.proposal_id, Evident, effect)
        return self._dossier(key, ref, folder, evident, revision + 1)

    def _dossier(
        self, key: str, ref: ProposalRef, folder: ProposalFolder, evident: Evident, iteration: int
    ) -> Dossier:
        return Dossier(
            key=key,
            ref=ref,
            task_id=self._work.task_id,
            instruction=self._ask.message,
            summary=_said(folder),
            patch=folder.patch,
            breaches=evident.breaches,
            evidence=evident.evidence,
            notes=evident.notes,
            iteration=iteration,
            criteria=self._work.acceptance_criteria,
            testing_required=self._work.testing_required,
            checked_on=ref.generation if evident.checked_on is None else evident.checked_on,
        )

    @property
    def _policy(self) -> Policy:
        return Policy(scope=self._work.scope or ())

    # -- the end of a round ----------------------------------------------------------------------

    async def _close_round(self, dossier: Dossier, ruling: Ruling) -> None:
        async def effect() -> tuple[Ruling, Sequence[e.RunEvent]]:
            return ruling, [self._events.reviewed(dossier, ruling)]

        await self._run.once(f"{dossier.key}/verdict", dossier.ref.proposal_id, Ruling, effect)

    def _settled(
        self,
        text: str,
        fate: Fate = Fate.DONE,
        reason: str = "",
        proposal: ProposalRef | None = None,
        *,
        failure: FailureClass | None = None,
    ) -> Settled:
        return Settled(
            text,
            fate,
            reason,
            proposal=proposal,
            failure=failure,
            turns=self._turns,
            messages=2 * self._turns,
        )


def _said(folder: ProposalFolder) -> str:
    """What the worker said it did; the block that hands it over is for machines."""
    return brief(folder.summary.partition("\nHANDOFF\n")[0])
