"""Taking back what a run has landed, the latest first (S7)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agentcanvas.errors import ApplyError
from agentcanvas.runs import events as e
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.office import UndoneTask

# What `ground` calls them, in a sentence; people name a run and its task.
_TRANSACTION: Final = re.compile(
    r"\b(run_\d{8}_\d{6}(?:_[0-9a-z]{1,8})?)\.([\w.-]+?)\.r\d+(?:-[\w-]+)?(?![\w-])"
)


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
            undone.append(UndoneTask(each.task_id, problem=_in_words(problem)))
            break  # what lies below it cannot be reached either
        files = tuple(file.path for file in receipt.changed_files)
        taken = e.Undone(each.task_id, files)
        await log.write(
            e.ProposalUndone(actor="person:you", provenance=e.Provenance.USER_INPUT, payload=taken)
        )
        undone.append(UndoneTask(each.task_id, files))
    return tuple(undone)


def _in_words(problem: ApplyError) -> str:
    """What stands in the way, so that it can be named to the next undo."""
    return _TRANSACTION.sub(r"\2 of \1", str(problem))
