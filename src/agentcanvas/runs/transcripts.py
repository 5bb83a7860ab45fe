"""What agents said and did, kept as it comes: layer C of what a person can see (V1).

Events are gathered for a moment and written together: an agent that says much must not cost a
transaction a line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from agentcanvas.hub.broker import Record, Transacting
from agentcanvas.protocol.records import RawEvent, TextEvent, TranscriptEvent
from agentcanvas.sandbox.paths import sanitised
from agentcanvas.store import Event

KIND = "transcript"
_PREFIX = "transcripts/"
_LARGEST = 200_000
_MOMENT_S = 0.1
_MOST_WAITING = 200

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[TranscriptEvent] = msgspec.json.Decoder(TranscriptEvent)


def stream_of(run_stream: str, agent: str) -> str:
    """Where an agent's transcript in a run is kept."""
    return f"{_PREFIX}{run_stream}/{agent}"


def read(row: Event) -> TranscriptEvent:
    """One event of a transcript."""
    return _decoder.decode(row.body)


class Scribe:
    """Writes the transcript of one agent; called on the event loop only."""

    def __init__(self, broker: Transacting, stream: str) -> None:
        self._broker = broker
        self._stream = stream
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, event: TranscriptEvent) -> None:
        """Take one event; it is written within a moment."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_MOMENT_S, self.flush)
        self._waiting.append(_within_reason(event))
        if len(self._waiting) >= _MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits; called once more when the run is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        bodies, self._waiting = self._waiting, []
        if bodies:
            rows = tuple((self._stream, KIND, body) for body in bodies)
            done = self._broker.record(Record(events=rows), patient=True)
            done.add_done_callback(_retrieve)


def _retrieve(done: asyncio.Future[None]) -> None:
    """A transcript that could not be written is no reason to stop; the run's own records are."""
    if not done.cancelled():
        done.exception()


def _within_reason(event: TranscriptEvent) -> bytes:
    try:
        body = _encode(event)
    except UnicodeEncodeError:  # text that is none; whatever it was, it is told
        line = repr(event).encode("utf-8", "replace").decode()[:_LARGEST]
        return _encode(RawEvent(ts=event.ts, seq=event.seq, line=line))
    if len(body) <= _LARGEST:
        return body
    cut = f"{body[:_LARGEST].decode('utf-8', 'ignore')} [{len(body) - _LARGEST:,} bytes more]"
    if isinstance(event, TextEvent):
        return _encode(TextEvent(ts=event.ts, seq=event.seq, text=event.text[: _LARGEST // 4]))
    return _encode(RawEvent(ts=event.ts, seq=event.seq, line=cut))


class TranscriptLog:
    """``runs/<flow>/<runId>-<agentIdSanitized>.jsonl`` (V3)."""

    name = "transcript"

    def path(self, event: Event) -> str | None:
        """One file an agent and run."""
        if event.kind != KIND or not event.stream.startswith(_PREFIX):
            return None
        flow, run_id, agent = event.stream.removeprefix(_PREFIX).split("/", 2)
        return f"runs/{flow}/{run_id}-{sanitised(agent)}.jsonl"

    def line(self, event: Event) -> bytes:
        """The event as it is."""
        body = event.body
        return msgspec.json.format(body, indent=-1) if b"\n" in body else body


Keep = Callable[[TranscriptEvent], None]
