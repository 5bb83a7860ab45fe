"""How one task is put on record: what becomes of it, as events and announcements (V4, R4)."""

from __future__ import annotations

from agentcanvas.proposals.model import AnnounceMessage, WorkStatus, announce, brief
from agentcanvas.proposals.review import Ruling
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.runs import events as e
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.shelf import Evident
from agentcanvas.runs.turn import TurnOutcome
from agentcanvas.runs.verdicts import Dossier
from agentcanvas.sandbox.paths import get_sandbox_paths


class TaskEvents:
    """Writes the events of one task for whoever records them."""

    def __init__(
        self, run: RunContext, task_id: str, *, interaction_id: str | None, orchestrator: str
    ) -> None:
        self._run = run
        self._task_id = task_id
        self._interaction_id = interaction_id
        self._orchestrator = orchestrator

    def dispatched(self, worker: str, message: str) -> e.TaskDispatched:
        """A worker was given it."""
        return e.TaskDispatched(
            actor=self._orchestrator,
            provenance=e.Provenance.ORCHESTRATOR_TO_WORKER,
            interaction_id=self._interaction_id,
            payload=e.Dispatch(self._task_id, worker, message),
        )

    def answered(self, worker: str, text: str) -> list[e.RunEvent]:
        """Words were enough."""
        return [
            e.TaskAnswered(
                actor=worker,
                provenance=e.Provenance.SYSTEM,
                interaction_id=self._interaction_id,
                payload=e.Answered(self._task_id, brief(text)),
            )
        ]

    def failed(self, worker: str, reason: str, turn: TurnOutcome) -> list[e.RunEvent]:
        """It brought nothing to judge."""
        told = announce(
            run_id=self._run.run_id,
            worker_id=worker,
            worker_name=self._run.name_of(worker),
            duration_ms=turn.duration_ms,
            summary=reason,
            timed_out=turn.report.timed_out,
        )
        return [
            self._announced(worker, told),
            e.TaskFailed(
                actor=worker,
                provenance=e.Provenance.SYSTEM,
                interaction_id=self._interaction_id,
                payload=e.Failure(self._task_id, reason),
            ),
        ]

    def submitted(
        self, worker: str, turn: TurnOutcome, folder: ProposalFolder, summary: str, evident: Evident
    ) -> list[e.RunEvent]:
        """A proposal is there."""
        tests = evident.evidence.tests_run
        told = announce(
            run_id=self._run.run_id,
            worker_id=worker,
            worker_name=self._run.name_of(worker),
            duration_ms=turn.duration_ms,
            summary=summary,
            proposal=folder.proposal,
            proposal_path=self._proposal_path(worker),
            tests_run=tests,
        )
        return [
            e.ProposalSubmitted(
                actor=worker,
                provenance=e.Provenance.WORKER_PROPOSAL,
                interaction_id=self._interaction_id,
                payload=e.Submission(self._task_id, len(told.touched_files), told.summary, tests),
            ),
            self._announced(worker, told),
        ]

    def reviewed(
        self, dossier: Dossier, ruling: Ruling, *, applied_at: int | None = None
    ) -> e.ProposalReviewed:
        """It was judged."""
        provenance = e.Provenance.ORCHESTRATOR_TO_WORKER
        if ruling.by.startswith("person:"):
            provenance = e.Provenance.USER_INPUT
        elif ruling.by == "system":
            provenance = e.Provenance.SYSTEM
        return e.ProposalReviewed(
            actor=ruling.by,
            provenance=provenance,
            interaction_id=self._interaction_id,
            payload=ruling.review(self._run.run_id, dossier.task_id, applied_at=applied_at),
        )

    def applied(self, dossier: Dossier, ruling: Ruling, landed: e.Landed) -> list[e.RunEvent]:
        """It is in the workspace."""
        worker = dossier.ref.agent_id
        told = AnnounceMessage(
            run_id=self._run.run_id,
            worker_id=worker,
            worker_name=self._run.name_of(worker),
            status=WorkStatus.OK,
            summary=brief(dossier.summary),
            proposal_path=self._proposal_path(worker),
            touched_files=landed.files,
            tests_run=dossier.evidence.tests_run,
            duration_ms=0,
        )
        return [
            self.reviewed(dossier, ruling, applied_at=self._run.clock.now_ms()),
            e.ProposalLanded(
                actor="engine",
                provenance=e.Provenance.SYSTEM,
                interaction_id=self._interaction_id,
                payload=landed,
            ),
            e.Announced(
                actor=self._orchestrator,
                provenance=e.Provenance.ANNOUNCE_USER,
                interaction_id=self._interaction_id,
                payload=told,
            ),
        ]

    def _announced(self, worker: str, told: AnnounceMessage) -> e.Announced:
        return e.Announced(
            actor=worker,
            provenance=e.Provenance.ANNOUNCE_INTERNAL,
            interaction_id=self._interaction_id,
            payload=told,
        )

    def _proposal_path(self, worker: str) -> str:
        paths = get_sandbox_paths(self._run.ground.workspace, self._run.run_id, worker)
        found = paths.proposal_dir / "proposal.json"
        return found.relative_to(self._run.ground.workspace).as_posix()
