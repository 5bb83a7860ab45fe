"""An approved proposal on its way into the workspace, once and on record (D3, D16)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentcanvas.errors import ApplyConflict, ApplyError, StoreFull, UnsafePatch
from agentcanvas.flows.guards import Land
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.review import Ruling
from agentcanvas.proposals.ways import Branch, Commit, Message, Way, Worktree
from agentcanvas.runs import events as e
from agentcanvas.runs import shelf
from agentcanvas.runs.context import RunContext
from agentcanvas.runs.naming import in_words
from agentcanvas.runs.task_events import TaskEvents
from agentcanvas.runs.verdicts import Dossier
from agentcanvas.sandbox.paths import HOME_FOLDER
from agentcanvas.store.room import is_full


class Landed(Struct, frozen=True):
    """How it went; ``conflict`` is the sentence of a proposal that the ground refused."""

    files: tuple[str, ...] = ()
    conflict: str = ""
    failure: str = ""


async def land(
    run: RunContext,
    dossier: Dossier,
    ruling: Ruling,
    *,
    way: Land,
    policy: Policy,
    events: TaskEvents,
) -> Landed:
    """Apply it, or find out what stands against that."""
    transaction = f"{run.run_id}.{shelf.name_of(dossier.ref.proposal_id)}"

    async def effect() -> tuple[Landed, Sequence[e.RunEvent]]:
        applying = e.Applying(dossier.task_id, transaction)
        await run.logbook.write(
            e.ApplyStarted(actor="engine", provenance=e.Provenance.SYSTEM, payload=applying)
        )
        base = await run.ground.generation(dossier.ref.generation)
        try:
            receipt = await run.ground.land(
                transaction, dossier.patch, base, policy, _way(way, dossier)
            )
        except ApplyConflict as conflict:
            return Landed(conflict=in_words(str(conflict))), []
        except (ApplyError, UnsafePatch) as error:
            if is_full(run.ground.workspace / HOME_FOLDER):
                # No fault of the change, and not forever: the run is taken up with this step.
                raise StoreFull(
                    f"The disk is full, so {dossier.task_id} could not land and nothing was changed"
                ) from error
            return Landed(failure=str(error)), [_warned(str(error))]
        files = tuple(file.path for file in receipt.changed_files)
        landed = e.Landed(dossier.task_id, files, receipt.commit, transaction)
        return Landed(files), events.applied(dossier, ruling, landed)

    return await run.once(f"{dossier.key}/land", dossier.ref.proposal_id, Landed, effect)


def _way(land: Land, dossier: Dossier) -> Way:
    message = Message(
        summary=dossier.summary,
        proposal_id=dossier.ref.proposal_id,
        run_id=dossier.ref.run_id,
        agent_id=dossier.ref.agent_id,
    )
    match land:
        case Land.COMMIT:
            return Commit(message)
        case Land.BRANCH:
            name = shelf.name_of(dossier.ref.proposal_id)
            return Branch(f"agentcanvas/{dossier.ref.run_id}/{name}", message)
        case _:
            return Worktree()


def _warned(sentence: str) -> e.WarningGiven:
    return e.WarningGiven(
        actor="engine", provenance=e.Provenance.SYSTEM, payload=e.Warned(sentence)
    )
