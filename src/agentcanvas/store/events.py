"""The append-only table of events: how a row is written, read and recognised as damaged.

What an event means is left to those who append it; here it is a stream, a kind and JSON bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, TypeAlias
from zlib import crc32

import msgspec

from agentcanvas.errors import ValidationError
from agentcanvas.store.database import damaged
from agentcanvas.store.rows import Rows

NewEvent: TypeAlias = tuple[str, str, bytes]
"""Stream, kind, body."""

# Text as bytes: SQLite's own decoding fails without saying which row it was.
_SELECT = (
    "SELECT seq, CAST(stream AS BLOB), CAST(kind AS BLOB), at_ms, body, checksum "
    "FROM events WHERE {} ORDER BY seq LIMIT ?"
)


class Event(msgspec.Struct, frozen=True):
    """A committed row. ``seq`` is its place in the one order of all streams and never reused."""

    seq: int
    stream: str
    kind: str
    at_ms: int
    body: bytes


def checked(stream: str, kind: str, body: bytes, *, max_body: int) -> NewEvent:
    """Refuse at the door what SQLite would refuse later, when others share the statement."""
    plainly_fit = (
        type(stream) is str
        and type(kind) is str
        and type(body) is bytes
        and len(stream) > 0
        and len(kind) > 0
        and stream.isascii()
        and kind.isascii()
        and len(body) <= max_body
    )
    if not plainly_fit:
        _refuse_unfit_text("stream", stream)
        _refuse_unfit_text("kind", kind)
        _refuse_unfit_body(body, max_body)
    return stream, kind, body


def _refuse_unfit_text(field: str, text: object) -> None:
    if not isinstance(text, str) or not text:
        raise ValidationError(f"An event's {field} must be a non-empty text, not {text!r}.")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValidationError(f"An event's {field} {text!r} is not valid Unicode.") from error


def _refuse_unfit_body(body: object, max_body: int) -> None:
    if not isinstance(body, bytes):
        raise ValidationError(f"An event's body must be bytes, not {type(body).__name__}.")
    if len(body) > max_body:
        raise ValidationError(
            f"An event's body has {len(body)} bytes, more than the {max_body} allowed; "
            "keep large content as a blob and refer to it."
        )


def checksum(seq: int, stream: str, kind: str, at_ms: int, body: bytes) -> int:
    """Cover the whole row, so that a bit that flips on disk is noticed when the row is read."""
    return crc32(body, crc32(f"{seq} {at_ms} {len(stream)} {len(kind)} {stream}{kind}".encode()))


_rows = Rows("events", "seq", "stream", "kind", "at_ms", "body", "checksum")


def insert(
    connection: sqlite3.Connection, first_seq: int, at_ms: int, events: Sequence[NewEvent]
) -> None:
    """Insert ``events`` with consecutive numbers from ``first_seq`` on."""
    values: list[str | int | bytes] = []
    for seq, (stream, kind, body) in enumerate(events, first_seq):
        values += (seq, stream, kind, at_ms, body, checksum(seq, stream, kind, at_ms, body))
    _rows.insert(connection.execute, values)


def head(connection: sqlite3.Connection) -> int:
    """Tell the highest number ever given, also when its row has been deleted since."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row else 0


def select(
    connection: sqlite3.Connection,
    *,
    where: str,
    after: int,
    stream: str | None,
    limit: int,
    most_bytes: int | None = None,
) -> list[Event]:
    """Read rows in order, and only whole ones."""
    if stream is None:
        cursor = connection.execute(_SELECT.format("seq > ?"), (after, limit))
    else:
        cursor = connection.execute(
            _SELECT.format("stream = ? AND seq > ?"), (stream, after, limit)
        )
    found: list[Event] = []
    size = 0
    with closing(cursor):  # or a statement left half-way would keep the log from being folded
        for row in cursor:
            event = _whole(row)
            if event is None:
                raise damaged(where, damaged_row(row[0]))
            found.append(event)
            size += len(event.body)
            if most_bytes is not None and size >= most_bytes:
                break
    return found


def _whole(row: tuple[Any, ...]) -> Event | None:
    seq, stream, kind, at_ms, body, stored = row
    try:
        event = Event(seq, stream.decode(), kind.decode(), at_ms, body)
        intact = stored == checksum(seq, event.stream, event.kind, at_ms, body)
    except (AttributeError, TypeError, UnicodeDecodeError):  # not even the type is what it was
        return None
    return event if intact else None


def damaged_row(seq: int) -> str:
    """Say which row is damaged."""
    return f"row {seq} of the table events does not read back as written"


def damaged_rows(connection: sqlite3.Connection) -> Iterator[int]:
    """Name every row that does not read back as written."""
    with closing(connection.execute(_SELECT.format("seq > ?"), (0, -1))) as rows:
        for row in rows:
            if _whole(row) is None:
                yield row[0]
