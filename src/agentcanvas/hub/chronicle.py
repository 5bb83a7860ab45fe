"""The record of a hub, read for people: the newest lines, those to come, a conversation (M4).

What the lines hold is told in ``events``; how they look is left to whoever shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub import mailbox
from agentcanvas.hub.events import PRESENCE, STREAMS, EventKind, Posted, stream_of
from agentcanvas.hub.mailbox import LetterState
from agentcanvas.hub.office import Choice, Entry, Fate, Standing
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import encode
from agentcanvas.protocol.envelope import from_json
from agentcanvas.protocol.rules import examine
from agentcanvas.store import Event, Snapshot

_A_PAGE = 1_000
_PAGE_BYTES = 4 * 1024 * 1024
_KINDS = frozenset(EventKind)
_STREAMS_END = STREAMS[:-1] + chr(ord(STREAMS[-1]) + 1)
"""The first text after all that begin with ``STREAMS``."""

_FATES = {
    LetterState.WAITING: Fate.WAITING,
    LetterState.TAKEN: Fate.TAKEN,
    LetterState.DEAD: Fate.DEAD,
}


class _Party(Struct):
    id: str = ""


class _Head(Struct):
    """Of a message only what it is chosen by."""

    id: str
    kind: str
    sender: _Party
    recipient: _Party | UnsetType = UNSET
    correlation_id: str | UnsetType = UNSET
    reply_to: str | UnsetType = UNSET

    def is_of(self, thread: str, ids: set[str]) -> bool:
        """Tell whether it belongs to a conversation, or answers a message that does."""
        return thread in (self.correlation_id, self.id) or (
            self.reply_to is not UNSET and (self.reply_to == thread or self.reply_to in ids)
        )


class _Speaker(Struct):
    speaker: str = ""


class _Line(Struct):
    """Of any line only what it is chosen by; each kind of event has some of these."""

    envelope: _Head | UnsetType = UNSET
    on_behalf_of: _Speaker | UnsetType = UNSET
    agent: str = ""
    sender: str = ""
    recipient: str = ""
    message_id: str = ""
    original_message_id: str = ""

    @property
    def agents(self) -> set[str]:
        """Whom it concerns."""
        found = {self.agent, self.sender, self.recipient}
        if self.envelope is not UNSET:
            found.add(self.envelope.sender.id)
            if self.envelope.recipient is not UNSET:
                found.add(self.envelope.recipient.id)
        if self.on_behalf_of is not UNSET:
            found.add(self.on_behalf_of.speaker)
        return found


_line = msgspec.json.Decoder(_Line)
_posted = msgspec.json.Decoder(Posted)


def read(entry: Entry) -> Posted:
    """Read the line of a message."""
    return _posted.decode(bytes(entry.body))


def breaches(posted: Posted) -> list[str]:
    """Return every breach that a message was not refused for (M3).

    Noted at the door is what can be seen only there. What its letters show, such as an id that is
    no UUID, is looked for when somebody reads, so that nobody who sends waits for it.
    """
    found = list(posted.validation_errors)
    with suppress(ValueError, AgentCanvasError):  # of no dialect, or there is no form for it
        envelope = from_json(bytes(posted.envelope))
        report = examine(encode(envelope, DialectName(envelope.origin)))
        found += [each for each in map(str, report.breaches) if each not in found]
    return found


def read_id(entry: Entry) -> str:
    """Tell which message a line is, or is about; empty if about none."""
    line = _line.decode(bytes(entry.body))
    if line.envelope is not UNSET:
        return line.envelope.id
    return line.message_id or line.original_message_id


def is_wanted(event: Event, choice: Choice) -> bool:
    """Tell whether a line is among those that were chosen."""
    if event.kind not in _KINDS or not _is_of(event, choice.session):
        return False
    if choice.agent is None and choice.kind is None and choice.correlation is None:
        return True
    line = _line.decode(event.body)
    head = line.envelope
    kind = head.kind if head is not UNSET else event.kind
    if choice.kind is not None and choice.kind not in (kind, kind.partition(".")[0], event.kind):
        return False
    if choice.agent is not None and choice.agent not in line.agents:
        return False
    if choice.correlation is None:
        return True
    if head is not UNSET:
        return head.is_of(choice.correlation, set())
    return choice.correlation in (line.message_id, line.original_message_id)


def _is_of(event: Event, session: str | None) -> bool:
    """Tell whether a line is of a session; without one, whether it is of any and said only once."""
    if session is not None:
        return event.stream == stream_of(session)
    if event.kind == EventKind.AGENT_LOST:  # said to each session as well that it owes something
        return event.stream == PRESENCE
    return event.stream.startswith((STREAMS, PRESENCE))


def entry_of(event: Event, standing: Standing | None = None) -> Entry:
    """Make a line of a row."""
    return Entry(
        seq=event.seq,
        at_ms=event.at_ms,
        session=event.stream[len(STREAMS) :] if event.stream.startswith(STREAMS) else "",
        event=EventKind(event.kind),
        body=Raw(event.body),
        standing=standing,
    )


def page(look: Snapshot, choice: Choice, after: int) -> tuple[list[Entry], int]:
    """Return the wanted lines among the next rows, and up to where these go."""
    rows = look.events(after=after, limit=_A_PAGE, most_bytes=_PAGE_BYTES)
    wanted = [entry_of(row) for row in rows if is_wanted(row, choice)]
    return wanted, rows[-1].seq if rows else after


def latest(look: Snapshot, choice: Choice, most: int) -> list[Entry]:
    """Return the newest lines that are wanted, in order."""
    found: list[Entry] = []
    before = look.head() + 1
    while len(found) < most:
        numbers = _numbers_before(look, before)
        if not numbers:
            break
        for row in reversed(look.events(after=numbers[-1] - 1, limit=len(numbers))):
            if len(found) < most and is_wanted(row, choice):
                found.append(entry_of(row))
        before = numbers[-1]
    return found[::-1]


def _numbers_before(look: Snapshot, before: int) -> list[int]:
    rows = look.query(
        "SELECT seq FROM events WHERE seq < ? ORDER BY seq DESC LIMIT ?", (before, _A_PAGE)
    )
    return [number for (number,) in rows]


# -- conversations ---------------------------------------------------------------------------------


def thread(look: Snapshot, name: str) -> list[Entry]:
    """Return all messages of a conversation, by its correlation id or the id of one of them."""
    first, correlation, sessions = _beginning(look, name)
    if not sessions:
        return []
    ids: set[str] = set()
    rows: list[Event] = []
    for row in _messages(look, sessions, first):
        head = _line.decode(row.body).envelope
        if head is not UNSET and head.is_of(correlation, ids):
            ids.add(head.id)
            rows.append(row)
    standings = _standings(look, [row.seq for row in rows])
    return [entry_of(row, standings.get(row.seq)) for row in rows]


def _beginning(look: Snapshot, name: str) -> tuple[int, str, list[str]]:
    """Find where a conversation begins, what it is called, and the streams it is in."""
    mentions = list(_mentions(look, name))
    correlation = name
    for _, _, head in mentions:
        if head.id == name and head.correlation_id is not UNSET and head.correlation_id != name:
            correlation = head.correlation_id
            mentions = list(_mentions(look, correlation))
            break
    related = [
        (seq, stream)
        for seq, stream, head in mentions
        if correlation in (head.id, head.correlation_id, head.reply_to)
    ]
    first = min((seq for seq, _ in related), default=0)
    return first, correlation, sorted({stream for _, stream in related})


def _mentions(look: Snapshot, name: str) -> Iterator[tuple[int, str, _Head]]:
    """Look for a name anywhere in the messages: there is no index on what is in them."""
    spelled = msgspec.json.encode(name)[1:-1]
    for seq, stream, body in look.query(
        "SELECT seq, stream, body FROM events WHERE kind = ? AND stream >= ? AND stream < ? "
        "AND instr(body, ?) > 0 ORDER BY seq",
        (EventKind.MESSAGE.value, STREAMS, _STREAMS_END, spelled),
    ):
        head = _line.decode(body).envelope
        if head is not UNSET:
            yield seq, stream, head


def _messages(look: Snapshot, streams: Iterable[str], first: int) -> list[Event]:
    found: list[Event] = []
    for stream in streams:
        after = first - 1
        while rows := look.events(after=after, stream=stream, limit=_A_PAGE):
            found += [row for row in rows if row.kind == EventKind.MESSAGE]
            after = rows[-1].seq
    return sorted(found, key=lambda row: row.seq)


def _standings(look: Snapshot, numbers: Sequence[int]) -> dict[int, Standing]:
    rows = look.query(
        "SELECT seq, state, tries, reason FROM hub_letters "
        "WHERE seq IN (SELECT value FROM json_each(?))",
        (mailbox.as_json(list(numbers)),),
    )
    return {
        seq: Standing(_FATES[LetterState(state)], tries, reason or "")
        for seq, state, tries, reason in rows
    }
