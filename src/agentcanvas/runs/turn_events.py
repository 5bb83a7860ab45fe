"""How a turn is put on record: its events, numbered as lines in the log of their interaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import UnsetType

from agentcanvas.protocol.kinds import TaskProgress
from agentcanvas.protocol.records import Usage
from agentcanvas.runs import events as e
from agentcanvas.runs.turn import Attempt, Place, TurnOutcome, TurnSpec

_LONGEST_SHOWN = 2_000


class TurnEvents:
    """Writes the events of one run's turns; ``before`` are those of its earlier lives."""

    def __init__(self, before: Iterable[e.Recorded]) -> None:
        self._lines: Counter[str] = Counter()
        """How many lines the log of each interaction has."""
        for entry in before:
            event = entry.event
            name = event.interaction_id or ""
            if isinstance(event, e.TurnProgressed):
                self._lines[name] = max(self._lines[name], event.payload.line)
            elif isinstance(event, e.TurnStarted | e.TurnEnded | e.MessagePassed):
                self._lines[name] = max(self._lines[name], event.payload.step)

    def started(self, spec: TurnSpec, attempt: Attempt) -> e.TurnStarted:
        """A turn was asked for."""
        place = spec.place
        return e.TurnStarted(
            actor=place.speaker or "engine",
            provenance=e.Provenance.ORCHESTRATOR_TO_WORKER,
            interaction_id=place.interaction_id or None,
            edge_id=place.edge_id or None,
            payload=e.TurnBegun(
                turn_id=spec.key,
                to=spec.to,
                message_id=attempt.message_id,
                text=_shortened(spec.message),
                role=spec.role,
                task_id=spec.task_id,
                attempt=attempt.number,
                revision=spec.revision,
                generation=attempt.generation,
                step=self._next_line(place),
            ),
        )

    def ended(self, spec: TurnSpec, outcome: TurnOutcome, charge: e.Charge | None) -> e.TurnEnded:
        """It is over."""
        return e.TurnEnded(
            actor=spec.to,
            provenance=e.Provenance.WORKER_PROPOSAL,
            usage=usage_told(outcome),
            interaction_id=spec.place.interaction_id or None,
            edge_id=spec.place.edge_id or None,
            payload=e.TurnDone(
                turn_id=spec.key,
                text=_shortened(outcome.report.text),
                ok=outcome.ok,
                reason=outcome.reason,
                task_id=spec.task_id,
                duration_ms=outcome.duration_ms,
                charge=charge,
                step=self._next_line(spec.place),
                to=spec.place.speaker or "engine",
            ),
        )

    def passed(self, spec: TurnSpec, by: str) -> e.MessagePassed:
        """An agent was told something; ``by`` is whose answer it is a part of."""
        place = spec.place
        return e.MessagePassed(
            actor=by or place.speaker or "engine",
            provenance=e.Provenance.ORCHESTRATOR_TO_WORKER,
            interaction_id=place.interaction_id or None,
            edge_id=place.edge_id or None,
            payload=e.Telling(spec.to, _shortened(spec.message), self._next_line(place)),
        )

    def progressed(self, spec: TurnSpec, body: TaskProgress) -> e.TurnProgressed:
        """An agent says what it is doing."""
        return _progressed(spec, body)

    def part(self, spec: TurnSpec, body: TaskProgress, number: int) -> e.TurnProgressed:
        """A part of an answer came; where others hear it, theirs are the lines."""
        line = 0 if spec.place.listeners else self._next_line(spec.place)
        return _progressed(spec, body, part=number, line=line)

    def _next_line(self, place: Place) -> int:
        """The number of the next line in the log of an interaction; 0 where it has none."""
        if not place.logged:
            return 0
        self._lines[place.interaction_id] += 1
        return self._lines[place.interaction_id]


def usage_told(outcome: TurnOutcome) -> Usage | None:
    """What a turn has used, where it said so."""
    usage = outcome.report.usage
    return None if isinstance(usage, UnsetType) or usage == Usage() else usage


def _progressed(
    spec: TurnSpec, body: TaskProgress, *, part: int = 0, line: int = 0
) -> e.TurnProgressed:
    return e.TurnProgressed(
        actor=spec.to,
        provenance=e.Provenance.WORKER_PROPOSAL,
        interaction_id=spec.place.interaction_id or None,
        edge_id=spec.place.edge_id or None,
        payload=e.Progress(
            turn_id=spec.key,
            step=_shortened(body.current_step or ""),
            files=body.files_modified_so_far or (),
            task_id=spec.task_id,
            part=part,
            line=line,
        ),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
