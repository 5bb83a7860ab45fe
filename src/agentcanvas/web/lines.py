"""An event of a run as one line of JSON, the same as in its log, and back."""

from __future__ import annotations

import msgspec

from agentcanvas.runs import events as e
from agentcanvas.runs.logs import RunLog
from agentcanvas.store import Event

_log = RunLog()


class _Place(msgspec.Struct, frozen=True, rename="camel"):
    seq: int
    ts: int
    run_id: str


_places = msgspec.json.Decoder(_Place)
_events: msgspec.json.Decoder[e.RunEvent] = msgspec.json.Decoder(e.RunEvent)


def line_of_row(row: Event) -> bytes:
    """{seq, ts, runId, event, actor, provenance, payload, …} of a row of the store."""
    return one_line(_log.line(row))


def line_of(entry: e.Recorded) -> bytes:
    """The same of an event that was read already."""
    kind, body = e.kind_of(entry.event), e.to_json(entry.event)
    return line_of_row(Event(entry.seq, f"/{entry.run_id}", kind, entry.ts, body))


def is_about(entry: e.Recorded, task_id: str) -> bool:
    """Whether an event is part of what became of a task; how far a turn had got is not."""
    payload = getattr(entry.event, "payload", None)
    return getattr(payload, "task_id", None) == task_id and not isinstance(
        entry.event, e.TurnProgressed
    )


def read_line(line: bytes) -> e.Recorded:
    """The event that a line tells of."""
    place = _places.decode(line)
    return e.Recorded(place.seq, place.ts, place.run_id, _events.decode(line))


def one_line(encoded: bytes) -> bytes:
    """JSON without line breaks; only raw parts can bring some of their own."""
    broken = b"\n" in encoded or b"\r" in encoded
    return msgspec.json.format(encoded, indent=-1) if broken else encoded
