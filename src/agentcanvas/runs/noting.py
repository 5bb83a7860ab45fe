"""Putting something on record: an event, and an item of the day's file in the workspace (D46)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio.to_thread

from agentcanvas.clock import Clock
from agentcanvas.errors import ResourceError
from agentcanvas.memory.notebook import Notebook
from agentcanvas.proposals.secrets import without_secrets
from agentcanvas.runs import events as e


class Noting:
    """Notes of one run; a note that cannot be written to its file is an event all the same."""

    def __init__(self, notebook: Notebook, run_id: str, clock: Clock) -> None:
        self._notebook = notebook
        self._run_id = run_id
        self._clock = clock

    async def note(
        self, key: str, entry: str, sources: Sequence[str], *, by: str, interaction: str | None
    ) -> list[e.RunEvent]:
        """Write a note once for its key; returns what is to be recorded of it."""
        kept, told = without_secrets(entry), tuple(map(without_secrets, sources))
        is_engine = by == "engine"
        events: list[e.RunEvent] = [
            e.Noted(
                actor=by,
                provenance=e.Provenance.SYSTEM if is_engine else e.Provenance.WORKER_PROPOSAL,
                interaction_id=interaction,
                payload=e.Note(kept, told),
            )
        ]
        named, now_ms = f"{self._run_id}/{key}", self._clock.now_ms()
        try:
            await anyio.to_thread.run_sync(
                partial(self._notebook.note, kept, told, key=named, now_ms=now_ms)
            )
        except ResourceError as problem:
            warned = e.Warned(str(problem))
            events.append(
                e.WarningGiven(actor="engine", provenance=e.Provenance.SYSTEM, payload=warned)
            )
        return events

    async def recall(self, query: str) -> tuple[str, ...]:
        """What the workspace's memory knows."""
        return await anyio.to_thread.run_sync(self._notebook.recall, query)
