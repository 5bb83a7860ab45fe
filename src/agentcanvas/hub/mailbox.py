"""The tables of mail, as functions on a transaction, so that mail can be part of any (D2).

A message's content is an event of its session; a row of ``hub_letters`` says for whom it is and
what became of it. How letters come in is told in ``intake``, what happens when they cannot be
delivered in ``deadletters``, which goes next in ``delivery``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import UnsetType

from agentcanvas.errors import StoreDamaged
from agentcanvas.hub.events import OnBehalfOf, read_posted
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.store import Snapshot, Transaction
from agentcanvas.store.rows import Rows

_FORGOTTEN_A_STEP = 500


class LetterState(IntEnum):
    """What became of a letter; the numbers are in the file."""

    WAITING = 0
    TAKEN = 1
    DEAD = 2


class Waiting(NamedTuple):
    """A letter as it waits."""

    number: int
    session: str
    sender: str
    band: int
    at_ms: int
    expires_ms: int | None
    tries: int
    seen: int
    returns: int = 0


class Kept(NamedTuple):
    """A letter that was just put, with its content still at hand."""

    recipient: str
    letter: Waiting
    envelope: Envelope
    on_behalf_of: OnBehalfOf | UnsetType
    size: int
    spelled: bytes = b""


class Origin(NamedTuple):
    """Where a message came from; ``number`` is its event's, where that is known."""

    session: str
    sender: str
    number: int | None = None


Row: TypeAlias = tuple[int | str | None, ...]
"""A letter as it is written: a value for each of ``COLUMNS``."""

COLUMNS = (
    *("seq", "key", "digest", "id", "session", "sender", "recipient"),
    *("band", "at_ms", "expires_ms", "state", "tries", "seen"),
)
_rows = Rows("hub_letters", *COLUMNS)


def as_json(values: object) -> str:
    """Write a list for ``json_each``: one statement then serves any number of values."""
    return msgspec.json.encode(values).decode()


def insert(transaction: Transaction, rows: Sequence[Row]) -> None:
    """Write letters, by as few statements as possible."""
    _rows.insert(transaction.execute, [value for row in rows for value in row])


def waiting(look: Snapshot, agents: Collection[str]) -> dict[str, int]:
    """Tell how many letters wait for each agent that ever had one."""
    rows = look.query(
        "SELECT i.agent, i.waiting FROM json_each(?) AS w "
        "CROSS JOIN hub_inboxes AS i ON i.agent = w.value",
        (as_json(list(agents)),),
    )
    return dict(rows)


def count(transaction: Transaction, more: Mapping[str, int]) -> None:
    """Note how many letters more, or fewer, wait for each agent."""
    if more:
        transaction.execute(
            "INSERT INTO hub_inboxes (agent, waiting) SELECT json_extract(value, '$[0]'), "
            "json_extract(value, '$[1]') FROM json_each(?) WHERE true "
            "ON CONFLICT (agent) DO UPDATE SET waiting = waiting + excluded.waiting",
            (as_json(list(more.items())),),
        )


def received(
    look: Snapshot,
    agent: str,
    *,
    after: int,
    later_than_ms: int,
    limit: int,
    only_waiting: bool = False,
) -> list[Waiting]:
    """Find what came for an agent after a number and a time, in order, whatever became of it."""
    index, state = "hub_letters_by_recipient", ""
    if only_waiting:
        index, state = "hub_letters_waiting", f"AND state = {LetterState.WAITING.value} "
    rows = look.query(
        "SELECT seq, session, sender, band, at_ms, expires_ms, tries, seen, returns "  # noqa: S608
        f"FROM hub_letters INDEXED BY {index} "
        f"WHERE recipient = ? {state}AND seq > ? AND at_ms > ? "
        "AND EXISTS (SELECT 1 FROM events WHERE events.seq = hub_letters.seq) "  # or forgotten
        "ORDER BY seq LIMIT ?",
        (agent, after, later_than_ms, limit),
    )
    return [Waiting(*row) for row in rows]


def numbers_of(look: Snapshot, agent: str, key: int, id_: str) -> list[int]:
    """Find the letters of an agent that wait and have this id, the oldest first."""
    rows = look.query(
        "SELECT seq FROM hub_letters WHERE key = ? AND id = ? AND recipient = ? AND state = 0 "
        "ORDER BY seq",
        (key, id_, agent),
    )
    return [number for (number,) in rows]


def of_agent(look: Snapshot, agent: str, numbers: Collection[int]) -> list[int]:
    """Return those of ``numbers`` that are letters to this agent."""
    rows = look.query(
        "SELECT seq FROM hub_letters WHERE recipient = ? "
        "AND seq IN (SELECT value FROM json_each(?))",
        (agent, as_json(list(numbers))),
    )
    return [number for (number,) in rows]


def take_over(transaction: Transaction, numbers: Collection[int]) -> list[tuple[int, str]]:
    """Acknowledge letters; return number and recipient of those for which it is the first time."""
    taken = transaction.query(
        "UPDATE hub_letters SET state = 1 WHERE state = 0 "
        "AND seq IN (SELECT value FROM json_each(?)) RETURNING seq, recipient",
        (as_json(list(numbers)),),
    )
    fewer = Counter(recipient for _, recipient in taken)
    count(transaction, {recipient: -number for recipient, number in fewer.items()})
    return taken


def withdraw(
    transaction: Transaction, session: str, sender: str, key: int, id_: str
) -> list[tuple[int, str]]:
    """Take back a message that nobody has taken over; return its letters, none if too late."""
    letters = transaction.query(
        "SELECT seq FROM hub_letters WHERE key = ? AND id = ? AND session = ? AND sender = ?",
        (key, id_, session, sender),
    )
    return take_over(transaction, [number for (number,) in letters])


def waiting_for(look: Snapshot, agent: str) -> list[tuple[int, Envelope]]:
    """Read the messages that wait for an agent, in order, without taking any of them."""
    rows = look.query(
        "SELECT seq FROM hub_letters INDEXED BY hub_letters_waiting "
        "WHERE recipient = ? AND state = 0 ORDER BY seq",
        (agent,),
    )
    return [(number, content(look, number)[0]) for (number,) in rows]


def open_inbox(transaction: Transaction, agent: str) -> list[Waiting]:
    """Note that somebody may see the mail from now on; return what waits, in order."""
    transaction.execute(
        "INSERT INTO hub_inboxes (agent, opened) VALUES (?, 1) "
        "ON CONFLICT (agent) DO UPDATE SET opened = 1",
        (agent,),
    )
    rows = transaction.query(
        "SELECT seq, session, sender, band, at_ms, expires_ms, tries, seen, returns "
        "FROM hub_letters "
        "INDEXED BY hub_letters_waiting WHERE recipient = ? AND state = 0 ORDER BY seq",
        (agent,),
    )
    return [Waiting(*row) for row in rows]


def close_inbox(
    transaction: Transaction, agent: str, in_hand: Collection[int], *, is_last: bool
) -> None:
    """Note what was seen, and that nobody sees the rest if this was the last connection."""
    mark_seen(transaction, in_hand)
    if is_last:
        transaction.execute("UPDATE hub_inboxes SET opened = 0 WHERE agent = ?", (agent,))


def mark_seen(transaction: Transaction, numbers: Collection[int]) -> None:
    """Flag letters that their recipient may have seen."""
    if numbers:
        transaction.execute(
            "UPDATE hub_letters SET seen = 1 WHERE seq IN (SELECT value FROM json_each(?))",
            (as_json(list(numbers)),),
        )


def note_tries(transaction: Transaction, tries: Mapping[int, int]) -> None:
    """Keep how often letters have failed."""
    transaction.execute_many(
        "UPDATE hub_letters SET tries = ?, seen = 1 WHERE seq = ? AND state = 0",
        [(times, number) for number, times in tries.items()],
    )


def note_returns(transaction: Transaction, numbers: Collection[int]) -> None:
    """Count, before it happens, that letters are handed out once more."""
    transaction.execute(
        "UPDATE hub_letters SET returns = returns + 1 "
        "WHERE state = 0 AND seq IN (SELECT value FROM json_each(?))",
        (as_json(list(numbers)),),
    )


def forgive_returns(transaction: Transaction, numbers: Collection[int]) -> None:
    """Begin to count anew, since their recipient lives and knows of them."""
    transaction.execute(
        "UPDATE hub_letters SET returns = 0 WHERE seq IN (SELECT value FROM json_each(?))",
        (as_json(list(numbers)),),
    )


def recover(transaction: Transaction) -> int | None:
    """Put right what a sudden end left; return when the next letter expires.

    Who was connected then may have seen anything that waits (D28).
    """
    transaction.execute(
        "UPDATE hub_letters SET seen = 1 WHERE state = 0 "
        "AND recipient IN (SELECT agent FROM hub_inboxes WHERE opened = 1)"
    )
    transaction.execute("UPDATE hub_inboxes SET opened = 0 WHERE opened = 1")
    return next_expiry(transaction)


def next_expiry(look: Snapshot) -> int | None:
    """Tell when the next letter expires."""
    row = look.one(
        "SELECT min(expires_ms) FROM hub_letters INDEXED BY hub_letters_expiring "
        "WHERE state = 0 AND expires_ms IS NOT NULL"
    )
    return row[0] if row else None


def forget(transaction: Transaction, *, before_ms: int, keep: int) -> int:
    """Forget ids that are older than ``before_ms`` or not among the last ``keep``, some at a time.

    What still waits, and what died, is not forgotten.
    """
    # Of the oldest only: a look at all of them would hold up the writer, most often for nothing.
    forgotten = transaction.execute(
        "DELETE FROM hub_letters WHERE at_ms < ? AND seq IN (SELECT seq FROM hub_letters "
        "WHERE state = 1 ORDER BY seq LIMIT ?)",
        (before_ms, _FORGOTTEN_A_STEP),
    )
    ((rows,),) = transaction.query("SELECT count(*) FROM hub_letters")
    return forgotten + transaction.execute(
        "DELETE FROM hub_letters WHERE seq IN (SELECT seq FROM hub_letters "
        "WHERE state = 1 ORDER BY seq LIMIT ?)",
        (min(max(0, rows - keep), _FORGOTTEN_A_STEP),),
    )


def content(look: Snapshot, number: int) -> tuple[Envelope, OnBehalfOf | UnsetType]:
    """Read a letter's message."""
    found = look.events(after=number - 1, limit=1)
    if not found or found[0].seq != number:
        raise StoreDamaged(f"The message of letter {number} is not in the store any more.")
    return read_posted(found[0].body)


def origin(look: Snapshot, key: int, id_: str) -> Origin | None:
    """Tell who sent a message, and in which session; the oldest if several share the id."""
    row = look.one(
        "SELECT session, sender, seq FROM hub_letters "
        "WHERE key = ? AND id = ? ORDER BY seq LIMIT 1",
        (key, id_),
    )
    return Origin(*row) if row else None


def session_of_thread(look: Snapshot, correlation: str) -> str | None:
    """Tell to which session a correlation id belongs."""
    row = look.one("SELECT session FROM hub_threads WHERE correlation = ?", (correlation,))
    return row[0] if row else None
