"""The JSONL files of a run (V3), as projections of its events.

They are for people and other tools; the product reads the store.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from agentcanvas.proposals.model import Decision
from agentcanvas.runs import events as e
from agentcanvas.store import Event

_COLLABORATION = frozenset(str(kind.__struct_config__.tag) for kind in e.COLLABORATION)
_INTERACTION = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (
        e.InteractionStarted,
        e.InteractionEnded,
        e.TurnStarted,
        e.TurnEnded,
        e.TurnProgressed,
        e.MessagePassed,
        e.ProposalSubmitted,
        e.ProposalReviewed,
        e.ProposalLanded,
    )
)
_STEPS = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (e.TurnStarted, e.TurnEnded, e.MessagePassed, e.TurnProgressed)
)
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


class InteractionLog:
    """What happened between agents, by day: ``logs/<flow>/<date>.jsonl`` (V3)."""

    name = "interaction"

    def path(self, event: Event) -> str | None:
        """One file a flow and day, in UTC."""
        if event.kind not in _INTERACTION or (event.kind in _STEPS and not _step(event)):
            return None
        flow = event.stream.partition("/")[0]
        day = datetime.fromtimestamp(event.at_ms / 1000, UTC).strftime("%Y-%m-%d")
        return f"logs/{flow}/{day}.jsonl"

    def line(self, event: Event) -> bytes:
        """{ts, flow, interactionId, edgeId, event, …}."""
        said = e.from_row(event).event
        head = {
            "ts": event.at_ms,
            "flow": event.stream.partition("/")[0],
            "interactionId": said.interaction_id or "",
            "edgeId": said.edge_id or "",
        }
        return msgspec.json.encode(head | _interaction(said))


class _Numbered(msgspec.Struct, frozen=True):
    step: int | str = 0
    line: int = 0


class _Line(msgspec.Struct, frozen=True):
    payload: _Numbered


def _step(event: Event) -> int:
    """Which line of its interaction's log it is; 0 where the flow wants none."""
    payload = msgspec.json.decode(event.body, type=_Line).payload
    return payload.step if isinstance(payload.step, int) else payload.line


def _interaction(event: e.RunEvent) -> dict[str, object]:
    """What the log says of an event."""
    match event:
        case e.InteractionStarted(payload=configured):
            return {"event": "configured", "data": configured}
        case e.TurnStarted(payload=begun):
            what = {"step": begun.step, "from": event.actor, "to": begun.to}
            return {"event": "step", **what, "note": begun.text}
        case e.TurnEnded(payload=done):
            what = {"step": done.step, "from": event.actor, "to": done.to}
            return {"event": "step", **what, "note": done.text or done.reason}
        case e.TurnProgressed(payload=part):
            what = {"step": part.line, "from": event.actor, "to": "engine"}
            return {"event": "step", **what, "note": part.step}
        case e.MessagePassed(payload=said):
            what = {"step": said.step, "from": event.actor, "to": said.to}
            return {"event": "step", **what, "note": said.text}
        case e.InteractionEnded(payload=end):
            return {"event": "terminated", "reason": end.reason}
        case _:
            return _proposal(event)


def _proposal(event: e.RunEvent) -> dict[str, object]:
    match event:
        case e.ProposalSubmitted():
            return {"event": "proposal_created", "data": {"agentId": event.actor}}
        case e.ProposalReviewed(payload=review) if review.decision is Decision.REJECT:
            return {"event": "proposal_rejected", "reason": review.reason or ""}
        case e.ProposalReviewed(payload=review):
            return {"event": "proposal_reviewed", "data": {"decision": review.decision}}
        case e.ProposalLanded(payload=landed):
            return {"event": "proposal_applied", "data": {"files": landed.files}}
        case _:
            raise AssertionError(f"{e.kind_of(event)} is not in the interaction log")
