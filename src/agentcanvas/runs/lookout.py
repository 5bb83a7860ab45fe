"""Looking out for what waits: how each waiting proposal stands, told when that changes (D7).

Looked at again after every landing, undo and edit of the user, and whenever somebody wants to
know. What is told is a forecast; landing finds out for itself. Proposals of all runs of a workspace
are watched together, because they land in the same files.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from agentcanvas.errors import AgentCanvasError, StoreError
from agentcanvas.proposals.collisions import Collision
from agentcanvas.proposals.radar import Fitness, Outlook, Radar, Waiting
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs import events as e
from agentcanvas.runs import shelf
from agentcanvas.runs.naming import in_words
from agentcanvas.sandbox.generation import Generation, edits_since, load_generation
from agentcanvas.sandbox.paths import shown

Tell = Callable[[str, e.RunEvent], Awaitable[None]]
"""Puts an event into a run's log, by the run's id."""

_FILES_NAMED = 5
_ATTEMPT = re.compile(r"\.r(\d{1,9})(?:-[\w-]+)?\Z")
_NOTHING_TO_TELL: tuple[object, ...] = (Fitness.CLEAN.value, (), ())


@dataclass
class _Watched:
    run_id: str
    task_id: str
    ref: ProposalRef
    base: Generation
    is_checked: bool
    outlook: Outlook | None = None


class Lookout:
    """The waiting proposals of one workspace."""

    def __init__(self, workspace: Path, tell: Tell) -> None:
        self.workspace = workspace
        self._tell = tell
        self._radar = Radar(workspace)
        self._watched: dict[str, _Watched] = {}
        self._told: dict[str, e.Standing] = {}
        self._gone: set[str] = set()
        """Waits no longer, but the radar, which works in a thread, does not know yet."""
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def waiting(self, task_id: str, ref: ProposalRef) -> AsyncIterator[None]:
        """Watch a proposal while the block lasts: while somebody is asked about it."""
        await self.watch(task_id, ref)
        await self.look_again()
        try:
            yield
        finally:
            self._watched.pop(_name(ref), None)
            self._gone.add(_name(ref))

    async def watch(
        self, task_id: str, ref: ProposalRef, *, told: e.Standing | None = None
    ) -> None:
        """Watch a proposal of the shelf from the next look on; ``told`` is what was told last.

        One that cannot be watched is left to its review and its landing, which say why.
        """
        name = _name(ref)
        try:
            kept = await shelf.take(self.workspace, ref.run_id, ref.proposal_id)
            base = await load_generation(self.workspace, ref.run_id, ref.generation)
            checked_on = kept.checked_on
            seen = Waiting(
                name,
                kept.folder.patch,
                base.tree,
                ref.generation,
                task=f"{ref.run_id}/{task_id}",
                attempt=_attempt(ref),
            )
            if checked_on is not None and checked_on != ref.generation:
                under = await load_generation(self.workspace, ref.run_id, checked_on)
            else:
                under = base
            async with self._radar_at_rest() as radar:
                await anyio.to_thread.run_sync(radar.watch, seen)
        except AgentCanvasError:
            return
        if told is not None:
            self._told[name] = told
        self._watched[name] = _Watched(ref.run_id, task_id, ref, under, checked_on is not None)

    async def look_again(self) -> None:
        """Look at all of them, and tell the runs of those that stand otherwise than before.

        What cannot be read or told now is looked at again the next time.
        """
        if not self._watched:
            return
        async with self._radar_at_rest() as radar:
            try:
                outlooks = await radar.recheck()
                edited = await self._edited()
            except (AgentCanvasError, OSError):
                return
            meetings = radar.collisions()
            news = [self._news(outlook, edited, meetings) for outlook in outlooks]
            for run_id, standing in filter(None, news):
                event = e.ProposalRechecked(
                    actor="engine", provenance=e.Provenance.SYSTEM, payload=standing
                )
                try:
                    await self._tell(run_id, event)
                except StoreError:
                    continue
                self._told[f"{run_id}/{standing.proposal_id}"] = standing

    async def standing(self, ref: ProposalRef) -> tuple[Outlook | None, tuple[Collision, ...]]:
        """How one stood when it was looked at last, and whom it meets."""
        name = _name(ref)
        watched = self._watched.get(name)
        if watched is None:
            return None, ()
        async with self._radar_at_rest() as radar:
            met = [one for one in radar.collisions() if name in one.proposals]
        return watched.outlook, tuple(met)

    @asynccontextmanager
    async def _radar_at_rest(self) -> AsyncIterator[Radar]:
        """The radar for this caller alone, without those that wait no longer."""
        async with self._lock:
            while self._gone:
                self._radar.forget(self._gone.pop())
            yield self._radar

    async def _edited(self) -> dict[Path, tuple[str, ...]]:
        """What differs now from each ground that checks ran on, by the folder of that ground."""
        grounds = {each.base.folder: each.base for each in self._watched.values()}
        return {
            folder: tuple(shown(edit.path) for edit in await edits_since(ground))
            for folder, ground in grounds.items()
        }

    def _news(
        self,
        outlook: Outlook,
        edited: dict[Path, tuple[str, ...]],
        meetings: Sequence[Collision],
    ) -> tuple[str, e.Standing] | None:
        watched = self._watched.get(outlook.proposal_id)
        if watched is None:
            return None
        moved = edited.get(watched.base.folder, ())
        outlook = msgspec.structs.replace(outlook, reason=in_words(outlook.reason))
        watched.outlook = outlook = _aged(outlook, moved) if watched.is_checked else outlook
        met = tuple(
            one.told_to(outlook.proposal_id)
            for one in meetings
            if outlook.proposal_id in one.proposals
        )
        now = e.Standing(
            watched.task_id,
            watched.ref.proposal_id,
            outlook.fitness.value,
            outlook.reason,
            tuple(conflict.path for conflict in outlook.conflicts),
            met,
        )
        before = self._told.get(outlook.proposal_id)
        if _gist(now) == (_gist(before) if before else _NOTHING_TO_TELL):
            return None
        return watched.run_id, now


def _name(ref: ProposalRef) -> str:
    return f"{ref.run_id}/{ref.proposal_id}"


def _attempt(ref: ProposalRef) -> int:
    """Which attempt at its task a proposal, or a part of one, is."""
    found = _ATTEMPT.search(ref.proposal_id)
    return int(found[1]) if found else 0


def _gist(standing: e.Standing) -> tuple[object, ...]:
    """What is worth telling; the exact words are not."""
    return standing.fitness, standing.conflicts, standing.meets


def _aged(outlook: Outlook, edited: Sequence[str]) -> Outlook:
    """What would land, but was checked on other files than there are now, is stale."""
    if outlook.fitness is Fitness.CONFLICTS or not edited:
        return outlook
    more = len(edited) - _FILES_NAMED
    named = ", ".join(edited[:_FILES_NAMED]) + (f" and {more} more" if more > 0 else "")
    reason = f"{named} changed since it was checked"
    return msgspec.structs.replace(outlook, fitness=Fitness.STALE, reason=reason)
