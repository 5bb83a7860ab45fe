"""What is known of a task's proposals before anybody judges them, gathered and kept (S5, S8, D13).

A part that a person has chosen gets evidence of its own, and so does a proposal whose ground has
moved since it was checked. Each finding is recorded once, so that a resumed run does not look twice
and cannot come to another result (D3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import anyio.to_thread
from msgspec import Struct, structs

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.checks import Compared, Evidence
from agentcanvas.proposals.choosing import Derived, derive, rest_of
from agentcanvas.proposals.model import FileChoice, brief
from agentcanvas.proposals.policy import Breach, BreachKind, Policy
from agentcanvas.proposals.secrets import secrets_in
from agentcanvas.proposals.self_running import self_running
from agentcanvas.proposals.shelf import ProposalFolder
from agentcanvas.proposals.tree import Tree
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs import events as e
from agentcanvas.runs import shelf
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.evidence import Examiner
from agentcanvas.runs.shelf import Evident
from agentcanvas.runs.verdicts import Dossier
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.globs import within


class _Renewed(Struct, frozen=True):
    """Evidence on the ground of now; None where the ground has not moved, or does not take it."""

    evident: Evident | None


class Examining:
    """Examines the proposals of one task; ``scopes`` are those of flow and interaction."""

    def __init__(
        self,
        run: RunContext,
        examiner: Examiner,
        policy: Policy,
        *,
        scopes: Sequence[tuple[str, ...]] = (),
        interaction_id: str | None = None,
    ) -> None:
        self._run = run
        self._examiner = examiner
        self._policy = policy
        self._scopes = scopes
        self._interaction_id = interaction_id

    async def evident(self, ref: ProposalRef, folder: ProposalFolder) -> Evident:
        """Gather all that is known about a proposal of the shelf, and keep it there."""
        base = await self._run.ground.generation(ref.generation)
        found = await self._examined(ref, folder.patch, base)
        await shelf.keep_evidence(self._run.ground.workspace, ref, found)
        return found

    async def part(self, dossier: Dossier, choice: Sequence[FileChoice]) -> Dossier:
        """The part of a proposal that a person has chosen, as a proposal of its own (D13)."""
        run = self._run
        base = await run.ground.generation(dossier.ref.generation)
        kept = await shelf.take(run.ground.workspace, dossier.ref.run_id, dossier.ref.proposal_id)
        made = await anyio.to_thread.run_sync(partial(_derived, kept, choice, base))
        if made is None:
            return dossier

        async def effect() -> tuple[Evident, Sequence[e.RunEvent]]:
            await shelf.put(run.ground.workspace, made.ref, made.folder)
            evident = await self.evident(made.ref, made.folder)
            return evident, [self._chosen(dossier, made), self.told(dossier.task_id, evident)]

        name = made.ref.proposal_id
        evident = await run.once(f"{dossier.key}/part:{name}", name, Evident, effect)
        return structs.replace(
            dossier,
            ref=made.ref,
            patch=made.folder.patch,
            summary=f"{dossier.summary}\n{_said(made.folder)}",
            breaches=evident.breaches,
            evidence=evident.evidence,
            notes=evident.notes,
            checked_on=made.ref.generation,
        )

    async def renewed(self, dossier: Dossier) -> Dossier | None:
        """The dossier with evidence from the ground of now; None if what it says still holds.

        What was green on other files says nothing about these.
        """
        if not dossier.evidence.checks:
            return None
        run, ref = self._run, dossier.ref

        async def effect() -> tuple[_Renewed, Sequence[e.RunEvent]]:
            now = await run.ground.current()
            if now.number == dossier.checked_on:
                return _Renewed(None), ()
            try:
                evident = await self._examined(ref, dossier.patch, now)
            except ApplyConflict:
                return _Renewed(None), ()  # landing will say it
            evident = structs.replace(evident, checked_on=now.number)
            await shelf.keep_evidence(run.ground.workspace, ref, evident)
            return _Renewed(evident), [self.told(dossier.task_id, evident)]

        step = f"{dossier.key}/renewed:{ref.proposal_id}:{dossier.checked_on}"
        found = (await run.once(step, ref.proposal_id, _Renewed, effect)).evident
        if found is None:
            return None
        return structs.replace(
            dossier, evidence=found.evidence, breaches=found.breaches, checked_on=found.checked_on
        )

    def told(self, task_id: str, evident: Evident) -> e.ChecksRun:
        """What was found, as an event."""
        evidence = evident.evidence
        said = evidence.sentence
        if evident.breaches:
            said = "; ".join(breach.sentence for breach in evident.breaches)
        checked = e.Checked(
            task_id,
            "unsafe" if evident.breaches else evidence.status.value,
            said,
            evidence.tests_run,
            red=_names(evidence.red),
            worse=_names(evidence.worse),
        )
        return e.ChecksRun(
            actor="engine",
            provenance=e.Provenance.SYSTEM,
            interaction_id=self._interaction_id,
            payload=checked,
        )

    async def _examined(self, ref: ProposalRef, patch: bytes, onto: Generation) -> Evident:
        """Evidence for a patch on a generation: its own, or a later one that it is merged into."""
        base = await self._run.ground.generation(ref.generation)
        changed = [file.path for file in ref.changed_files]
        forecast = await self._run.ground.foresee(patch, base, self._policy)
        breaches = (*forecast.breaches, *self._out_of_scope(changed))
        if breaches:
            return Evident(breaches, Evidence(generation=onto.name))
        evidence = await self._examiner.examine(
            base, patch, changed, self._policy, onto=onto if onto.number != base.number else None
        )
        notes = [finding.sentence for finding in secrets_in(patch)]
        notes += [note.sentence for note in self_running(patch, base.tree)]
        return Evident((), evidence, tuple(notes))

    def _out_of_scope(self, changed: Sequence[str]) -> list[Breach]:
        """The scopes of flow and interaction; the task's own is the policy's (S8)."""
        return [
            Breach(BreachKind.OUTSIDE_SCOPE, path, f"is outside {', '.join(globs)}")
            for globs in self._scopes
            for path in changed
            if not within(path, globs)
        ]

    def _chosen(self, dossier: Dossier, made: Derived) -> e.PartChosen:
        origin = made.folder.proposal.derived_from
        payload = e.Part(
            dossier.task_id,
            made.ref.proposal_id,
            dossier.ref.proposal_id,
            origin.chosen if origin else (),
        )
        return e.PartChosen(
            actor=f"person:{self._run.order.person}",
            provenance=e.Provenance.USER_INPUT,
            interaction_id=self._interaction_id,
            payload=payload,
        )


def covers_all(patch: bytes, choice: Sequence[FileChoice]) -> bool:
    """Whether a choice leaves nothing out."""
    return not rest_of(patch, choice)


def _derived(kept: shelf.Kept, choice: Sequence[FileChoice], base: Generation) -> Derived | None:
    """The part as a proposal; None when everything was chosen."""
    if covers_all(kept.folder.patch, choice):
        return None
    with Tree(base.tree) as tree:
        return derive(
            kept.ref, kept.folder, choice, tree, created_at=kept.folder.proposal.created_at
        )


def _said(folder: ProposalFolder) -> str:
    """What ``derive`` adds to the summary: which part it is."""
    return brief(folder.summary.rpartition("\n\n")[2])


def _names(checks: Iterable[Compared]) -> tuple[str, ...]:
    return tuple(each.check.name for each in checks)
