"""Taking back what a run has landed, the latest first (S7)."""

from __future__ import annotations

from collections.abc import Iterable

from agentcanvas.errors import ApplyError
from agentcanvas.runs import events as e
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.naming import in_words
from agentcanvas.runs.office import UndoneTask


def landed_by(entries: Iterable[e.Recorded], task_id: str | None = None) -> list[e.Landed]:
    """What a run, or one task of it, has in the workspace still, in the order it came."""
    found: list[e.Landed] = []
    for entry in entries:
        match entry.event:
            case e.ProposalLanded(payload=landed):
                found.append(landed)
            case e.ProposalUndone(payload=undone):
                found = [each for each in found if each.task_id != undone.task_id]
            case _:
                pass
    return [each for each in found if task_id in (None, each.task_id)]


async def take_back(
    landed: Iterable[e.Landed], ground: Ground, log: Logbook
) -> tuple[UndoneTask, ...]:
    """Undo what was landed, and put it on record; one that cannot be undone ends it."""
    undone = []
    for each in reversed(list(landed)):
        try:
            receipt = await ground.undo(each.transaction)
        except ApplyError as problem:
            undone.append(UndoneTask(each.task_id, problem=in_words(str(problem))))
            break  # what lies below it cannot be reached either
        files = tuple(file.path for file in receipt.changed_files)
        taken = e.Undone(each.task_id, files)
        await log.write(
            e.ProposalUndone(actor="person:you", provenance=e.Provenance.USER_INPUT, payload=taken)
        )
        undone.append(UndoneTask(each.task_id, files))
    return tuple(undone)
