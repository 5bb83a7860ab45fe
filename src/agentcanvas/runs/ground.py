"""The ground a run stands on: its chain of frozen bases, and the one way into the workspace (D7).

A new generation follows whatever changed the workspace, an apply of ours or an edit of the user.
Landing is one at a time, under a name that a repeat recognises (D3).
"""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread

from agentcanvas.proposals.apply import Forecast, Landing, Receipt
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.ways import Way
from agentcanvas.runs import events as e
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.sandbox.generation import (
    Generation,
    edits_since,
    generation_numbers,
    load_generation,
    take_generation,
)
from agentcanvas.sandbox.paths import generations_folder, run_folder, shown
from agentcanvas.sandbox.trees import remove_path

_FILES_TOLD = 20
_HALF_MADE = (".evidence-*", ".claim-*", "*/diff-*")
"""What is only there while somebody works on it, below the folder of a run."""


class Ground:
    """The workspace, as one run sees it."""

    def __init__(
        self,
        workspace: Path,
        logbook: Logbook,
        lookout: Lookout,
        *,
        bring: tuple[str, ...] = (),
    ) -> None:
        """Stand on a workspace; ``bring`` are globs of ignored files that belong to each base."""
        self.workspace = workspace
        self._lookout = lookout
        self._bring = bring
        self._logbook = logbook
        self._landing = Landing(workspace)
        self._lock = anyio.Lock()
        self._known: dict[int, Generation] = {}
        self._latest: int | None = None
        self._asked = 0
        self._answered = 0
        """How many had asked for the current generation when it was looked for last."""

    async def current(self) -> Generation:
        """The workspace as it is now; a new generation if it has changed since the last one.

        Whoever had to wait is content with a look that began after they had come: agents that
        begin their tasks together cost one, not one each.
        """
        self._asked += 1
        mine = self._asked
        async with self._lock:
            latest = await self._load_latest()
            if latest is not None and self._answered >= mine:
                return latest
            asked = self._asked
            taken = await self._look(latest)
            self._answered = asked
        if latest is not None and taken is not latest:
            await self._lookout.look_again()
        return taken

    async def _look(self, latest: Generation | None) -> Generation:
        if latest is None:
            return await self._take(None, "the start of the run", ())
        edits = await edits_since(latest)
        if not edits:
            return latest
        files = tuple(shown(edit.path) for edit in edits)
        return await self._take(latest, "the workspace has changed", files)

    async def generation(self, number: int) -> Generation:
        """One that was taken before."""
        if number not in self._known:
            run_id = self._logbook.run_id
            self._known[number] = await load_generation(self.workspace, run_id, number)
        return self._known[number]

    def adopt(self, base: Generation) -> None:
        """Take note that a generation has got what the setup of the run made."""
        self._known[base.number] = base

    async def foresee(self, patch: bytes, base: Generation, policy: Policy) -> Forecast:
        """What landing a patch would do or say."""
        return await self._landing.check(patch, base.tree, policy=policy)

    async def land(
        self, transaction: str, patch: bytes, base: Generation, policy: Policy, way: Way
    ) -> Receipt:
        """Land a patch, or raise and leave all as it is; a repeat gives the first receipt."""
        async with self._lock:
            receipt = await self._landing.apply(
                transaction, patch, base.tree, policy=policy, way=way
            )
        await self._lookout.look_again()
        return receipt

    async def undo(self, transaction: str) -> Receipt:
        """Take back what a transaction landed."""
        async with self._lock:
            receipt = await self._landing.undo(transaction)
        await self._lookout.look_again()
        return receipt

    async def recover(self) -> None:
        """Settle what a crash left half done in the workspace, and half made beside it."""
        await self._landing.recover()
        await anyio.to_thread.run_sync(_sweep, self.workspace, self._logbook.run_id)

    async def _load_latest(self) -> Generation | None:
        if self._latest is None:
            numbers = generation_numbers(self.workspace, self._logbook.run_id)
            self._latest = numbers[-1] if numbers else None
        return None if self._latest is None else await self.generation(self._latest)

    async def _take(
        self, previous: Generation | None, reason: str, files: tuple[str, ...]
    ) -> Generation:
        taken = await take_generation(
            self.workspace, self._logbook.run_id, previous=previous, bring=self._bring
        )
        self._known[taken.number] = taken
        self._latest = taken.number
        base = e.Base(taken.number, reason, files[:_FILES_TOLD], taken.notes)
        await self._logbook.write(
            e.GenerationTaken(actor="engine", provenance=e.Provenance.SYSTEM, payload=base)
        )
        return taken


def _sweep(workspace: Path, run_id: str) -> None:
    """Take away what nobody works on any more: a run is recovered before it goes on."""
    left = [path for each in _HALF_MADE for path in run_folder(workspace, run_id).glob(each)]
    left += generations_folder(workspace, run_id).glob("*.growing")
    for path in left:
        remove_path(path)
