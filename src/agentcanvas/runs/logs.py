"""The JSONL files of a run (V3), as projections of its events.

They are for people and other tools; the product reads the store.
"""

from __future__ import annotations

import msgspec

from agentcanvas.runs import events as e
from agentcanvas.store import Event

_COLLABORATION = frozenset(str(kind.__struct_config__.tag) for kind in e.COLLABORATION)
_NOT_IN_CARDS = frozenset({"interactionId", "edgeId"})
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class RunLog:
    """Every event of a run: ``runs/<flow>/<runId>.jsonl``."""

    name = "run"

    def path(self, event: Event) -> str | None:
        """One file a run."""
        return f"runs/{event.stream}.jsonl" if event.kind in e.KINDS else None

    def line(self, event: Event) -> bytes:
        """The event with its number, time and run."""
        return _line(event, seq=event.seq)


class CollaborationLog:
    """What the cards show: ``runs/<flow>/<runId>-collab.jsonl``."""

    name = "collab"

    def path(self, event: Event) -> str | None:
        """One file a run, for the collaboration events only."""
        return f"runs/{event.stream}-collab.jsonl" if event.kind in _COLLABORATION else None

    def line(self, event: Event) -> bytes:
        """{ts, runId, event, actor, provenance, payload}."""
        return _line(event, without=_NOT_IN_CARDS)


def _line(event: Event, *, without: frozenset[str] = frozenset(), **more: int) -> bytes:
    members = {
        name: value for name, value in _members.decode(event.body).items() if name not in without
    }
    _, _, run_id = event.stream.rpartition("/")
    return msgspec.json.encode({"ts": event.at_ms, "runId": run_id, **more, **members})
