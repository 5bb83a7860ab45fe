"""The audit trail: who sent what to whom, chained, so that a change shows (D37, H6).

Entries are written in the transaction of what they are about, in commit order. They hold names and
words of the protocol, never the text of a payload. A person reads them by ``export``; ``verify``
finds the first entry that was changed, dropped, moved or cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from agentcanvas.clock import rfc3339
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import ANSWERS, TaskAssign, TaskReject, TaskResult
from agentcanvas.protocol.reviews import ReviewResult
from agentcanvas.protocol.values import Word
from agentcanvas.store import Snapshot, Store, Transaction
from agentcanvas.store.chain import GENESIS, first_break, link
from agentcanvas.store.rows import Rows

_LONGEST_WORD = 100
_A_PAGE = 1_000
_rows = Rows("hub_audit", "prev", "entry", "hash")


class EntryType(Word):
    """What an entry is about; the first two are messages (H6)."""

    COMMAND = "command"
    RESPONSE = "response"
    TOKEN = "token"  # noqa: S105 - the making or revoking of one
    APPROVAL = "approval"
    CALLBACK = "callback"


class AuditEntry(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"message_id": "messageId", "sender": "from", "recipient": "to"},
):
    """One entry; the field names are those of the document (H6)."""

    timestamp: str
    message_id: str
    type: EntryType
    sender: str
    recipient: str
    session: str = ""
    action: str | UnsetType = UNSET
    status: str | UnsetType = UNSET


class Break(Struct, frozen=True):
    """Where the trail cannot be trusted any more, and why."""

    number: int
    reason: str


class ExportedEntry(Struct, frozen=True):
    """A line of an export: enough to verify it without the store."""

    number: int
    prev: str
    hash: str
    entry: Raw


class Head(Struct, frozen=True):
    """The last entry; number 0 when there is none."""

    number: int = 0
    hash: bytes = GENESIS


_encode = msgspec.json.Encoder().encode
_exported = msgspec.json.Decoder(ExportedEntry)


def entry_of(envelope: Envelope, recipient: str, session: str, timestamp: str) -> AuditEntry:
    """Say of a message what the trail keeps of it."""
    body, kind = envelope.body, envelope.kind
    is_response = kind in ANSWERS
    action: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    if is_response:
        status = kind.partition(".")[2] or kind
        if isinstance(body, TaskResult) and body.status is not UNSET:
            status = body.status
        elif isinstance(body, TaskReject):
            status = body.reason
        elif isinstance(body, ReviewResult):
            status = body.verdict
    else:
        action = str(kind)
        if isinstance(body, TaskAssign):
            action = body.action or body.task_type or action
    return AuditEntry(
        timestamp,
        envelope.id,
        EntryType.RESPONSE if is_response else EntryType.COMMAND,
        envelope.sender.id,
        recipient,
        session,
        action[:_LONGEST_WORD] if action is not UNSET else UNSET,
        status,
    )


def append(transaction: Transaction, entries: Iterable[AuditEntry]) -> None:
    """Add entries to the trail, by as few statements as possible."""
    last = transaction.one("SELECT hash FROM hub_audit ORDER BY number DESC LIMIT 1")
    previous: bytes = last[0] if last else GENESIS
    values: list[bytes] = []
    for entry in entries:
        text = _encode(entry)
        sealed = link(previous, text)
        values += (previous, text, sealed)
        previous = sealed
    _rows.insert(transaction.execute, values)


def note(
    transaction: Transaction,
    type_: EntryType,
    *,
    subject: str,
    sender: str,
    recipient: str,
    status: str,
    session: str = "",
) -> None:
    """Add an entry about something that is no message."""
    entry = AuditEntry(
        rfc3339(transaction.at_ms), subject, type_, sender, recipient, session, status=status
    )
    append(transaction, [entry])


class Trail:
    """The trail of a store, for those who look at it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def verify(self) -> Break | None:
        """Find the first entry that does not follow from those before it."""
        return await self._store.read(verify)

    async def export(self) -> Sequence[bytes]:
        """Return all entries as lines of JSON, each with its hashes."""
        return await self._store.read(lambda look: list(export(look)))

    async def entries(self, *, after: int = 0, limit: int = 100) -> list[tuple[int, AuditEntry]]:
        """Read some entries, in order."""
        rows = await self._store.read(lambda look: _page(look, after, limit))
        return [
            (number, msgspec.json.decode(entry, type=AuditEntry)) for number, _, entry, _ in rows
        ]


def verify(look: Snapshot) -> Break | None:
    """Find the first entry that does not follow from those before it."""
    previous, expected = GENESIS, 1
    while rows := _page(look, expected - 1, _A_PAGE):
        numbers = [row[0] for row in rows]
        gap = next((i for i, number in enumerate(numbers) if number != expected + i), None)
        broken = first_break([row[1:] for row in rows[:gap]], after=previous)
        if broken is not None:
            return Break(expected + broken, "its text or its hashes were changed")
        if gap is not None:
            return Break(expected + gap, "it is missing")
        previous, expected = rows[-1][3], expected + len(rows)
    row = look.one("SELECT seq FROM sqlite_sequence WHERE name = 'hub_audit'")
    if row is not None and row[0] >= expected:
        return Break(expected, "it is missing, with all that followed")
    return None


def head(look: Snapshot) -> Head:
    """Tell which entry is the last."""
    row = look.one("SELECT number, hash FROM hub_audit ORDER BY number DESC LIMIT 1")
    return Head(row[0], _blob(row[1])) if row else Head()


def hash_at(look: Snapshot, number: int) -> bytes:
    """Tell the hash of an entry; 0 is before the first, and one that is not there has none."""
    if number == 0:
        return GENESIS
    rows = _page(look, number - 1, 1)
    return rows[0][3] if rows and rows[0][0] == number else b""


def head_of(line: bytes) -> Head:
    """Tell which entry a line of an export is; none for no line."""
    if not line:
        return Head()
    read = _exported.decode(line)
    return Head(read.number, bytes.fromhex(read.hash))


def export(look: Snapshot) -> Iterator[bytes]:
    """Write all entries as lines of JSON."""
    after = 0
    while rows := _page(look, after, _A_PAGE):
        for number, previous, entry, sealed in rows:
            yield _encode(ExportedEntry(number, previous.hex(), sealed.hex(), Raw(entry)))
        after = rows[-1][0]


def verify_lines(lines: Iterable[bytes]) -> Break | None:
    """Find the first line of an export that does not follow from those before it."""
    previous = GENESIS
    for expected, line in enumerate(lines, 1):
        try:
            read = _exported.decode(line)
            triple = (bytes.fromhex(read.prev), bytes(read.entry), bytes.fromhex(read.hash))
        except (msgspec.MsgspecError, ValueError, UnicodeDecodeError):
            return Break(expected, "it cannot be read")
        if read.number != expected:
            return Break(expected, "it is missing")
        if len(triple[0]) != len(GENESIS) or first_break([triple], after=previous) is not None:
            return Break(expected, "its text or its hashes were changed")
        previous = triple[2]
    return None


def _page(look: Snapshot, after: int, limit: int) -> list[tuple[int, bytes, bytes, bytes]]:
    rows = look.query(
        "SELECT number, prev, entry, hash FROM hub_audit WHERE number > ? ORDER BY number LIMIT ?",
        (after, limit),
    )
    return [
        (number, _blob(previous), _blob(entry), _blob(sealed))
        for number, previous, entry, sealed in rows
    ]


def _blob(value: object) -> bytes:
    """Return a cell as bytes, whatever somebody has put there."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")
