"""The way into the mailboxes: recognise repeats, judge, find room, write; many messages at once.

A refusal of one message is not a refusal of its neighbours, so refusals are values here. All
messages of a batch share a handful of statements, because each gives the interpreter lock away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import UNSET

from agentcanvas.clock import rfc3339
from agentcanvas.errors import AgentCanvasError, IdReused, Overloaded
from agentcanvas.hub import audit, mailbox
from agentcanvas.hub.broker import Copy, Outcome, Post, Receipt
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.duties import Book
from agentcanvas.hub.events import EventKind, posted, stream_of, timed
from agentcanvas.hub.mailbox import Kept, LetterState, Row, Waiting
from agentcanvas.hub.router import key_of
from agentcanvas.protocol.envelope import BROADCAST, Envelope
from agentcanvas.store import Transaction

DEFAULT_SESSION = "default"

# Plain values: sqlite3 takes a detour for subclasses of str and int.
_MESSAGE = EventKind.MESSAGE.value
_WAITING, _TAKEN = LetterState.WAITING.value, LetterState.TAKEN.value

_Name = tuple[str, str, str]
"""Session, sender, id: what must not be used twice (C11)."""


class _Before(NamedTuple):
    digest: int
    number: int | None
    """Not known yet when it is in the same batch."""


class _Planned(NamedTuple):
    """An event to write; without a copy it is a broadcast as it was sent."""

    post: Post
    copy: Copy | None
    envelope: Envelope
    content: bytes


@dataclass(slots=True)
class _Plan:
    """What a batch comes to, before anything is written."""

    outcomes: list[Outcome | range] = field(default_factory=list)
    """A range says which of ``events`` the receipt will name."""

    events: list[_Planned] = field(default_factory=list)


def put(
    transaction: Transaction, posts: Sequence[Post], rules: DeliveryRules, now_ms: int
) -> tuple[list[Outcome], list[Kept]]:
    """Keep messages; return a receipt or a refusal for each, and the new letters.

    A refusal has written nothing. A broadcast goes to all of its recipients or to none.
    """
    known = _known(transaction, posts)
    room = _room(transaction, posts, rules)
    book = Book(transaction, posts)
    plan = _Plan()
    for post in posts:
        try:
            plan.outcomes.append(_admit(post, known, room, book, plan))
        except AgentCanvasError as refusal:
            plan.outcomes.append(refusal)
    kept = _write(transaction, plan.events, now_ms) if plan.events else []
    book.write(transaction)
    _remember_threads(transaction, plan.events)
    first = transaction.last_seq + 1 - len(plan.events)
    found = zip(posts, plan.outcomes, strict=True)
    return [_outcome(post, outcome, first) for post, outcome in found], kept


def _admit(
    post: Post, known: dict[_Name, _Before], room: dict[str, int], book: Book, plan: _Plan
) -> Outcome | range:
    name = (post.session, post.sender, post.envelope.id)
    before = known.get(name)
    if before is not None:
        return _repeat(post, before)
    envelope = book.judge(post)
    _reserve(post, room)
    book.admit(post, envelope)
    known[name] = _Before(post.digest, None)
    start = len(plan.events)
    if post.broadcast is not None:
        plan.events.append(_Planned(post, None, post.envelope, post.broadcast))
    for copy in post.copies:
        if copy.envelope is post.envelope and envelope is not post.envelope:  # C6: it accepts
            content = posted(envelope, post.on_behalf_of, post.breaches)
            plan.events.append(_Planned(post, copy, envelope, content))
        else:
            plan.events.append(_Planned(post, copy, copy.envelope, copy.content))
    return range(start, len(plan.events))


def _known(transaction: Transaction, posts: Sequence[Post]) -> dict[_Name, _Before]:
    rows = transaction.query(
        "SELECT l.session, l.sender, l.id, l.digest, l.seq FROM json_each(?) AS w "
        "CROSS JOIN hub_letters AS l INDEXED BY hub_letters_by_key ON l.key = w.value",
        (mailbox.as_json([post.key for post in posts]),),
    )
    return {
        (session, sender, id_): _Before(digest, number)
        for session, sender, id_, digest, number in rows
    }


def _repeat(post: Post, before: _Before) -> Receipt:
    if before.digest != post.digest:
        raise IdReused(
            f"{post.sender} used the id {post.envelope.id} before for another message; "
            "give each message its own id."
        )
    numbers = () if before.number is None else (before.number,)
    return Receipt(post.envelope.id, post.session, numbers, repeated=True)


def _room(transaction: Transaction, posts: Sequence[Post], rules: DeliveryRules) -> dict[str, int]:
    recipients = {copy.recipient for post in posts for copy in post.copies}
    waiting = mailbox.waiting(transaction, recipients)
    return {recipient: rules.inbox - waiting.get(recipient, 0) for recipient in recipients}


def _reserve(post: Post, room: dict[str, int]) -> None:
    for copy in post.copies:
        if room[copy.recipient] <= 0:
            full = [each.recipient for each in post.copies if room[each.recipient] <= 0]
            raise Overloaded(
                f"The inbox of {', '.join(full)} is full; nothing was delivered. "
                "Send the message again, with the same id, when it has taken some of its mail."
            )
    for copy in post.copies:
        room[copy.recipient] -= 1


def _write(transaction: Transaction, planned: Sequence[_Planned], now_ms: int) -> list[Kept]:
    at_ms = transaction.at_ms
    # Checked already: the session's name when it was opened, the content's size by the hub.
    numbers = transaction.append_checked(
        [(stream_of(each.post.session), _MESSAGE, _timed(each, at_ms)) for each in planned]
    )
    rows: list[Row] = []
    kept: list[Kept] = []
    for number, (post, copy, envelope, content) in zip(numbers, planned, strict=True):
        id_, session, sender, band = envelope.id, post.session, post.sender, post.band
        expires_ms = now_ms + int(envelope.timeout_ms) if envelope.timeout_ms else None
        if copy is None:
            recipient, state = BROADCAST, _TAKEN
        else:
            recipient, state = copy.recipient, _WAITING
            letter = Waiting(number, session, sender, band, now_ms, expires_ms, 0, 0)
            spelled = post.spelled if envelope is post.envelope else b""
            size = len(content) + len(spelled)
            kept.append(Kept(recipient, letter, envelope, post.on_behalf_of, size, spelled))
        key = post.key if envelope.id == post.envelope.id else key_of(id_)
        times = (now_ms, expires_ms)
        rows.append(
            (number, key, post.digest, id_, session, sender, recipient, band, *times, state, 0, 0)
        )
    mailbox.insert(transaction, rows)
    at = rfc3339(at_ms)
    audit.append(
        transaction,
        [
            audit.entry_of(envelope, copy.recipient if copy else BROADCAST, post.session, at)
            for post, copy, envelope, _ in planned
        ],
    )
    mailbox.count(transaction, Counter([letter.recipient for letter in kept]))
    return kept


def _timed(planned: _Planned, at_ms: int) -> bytes:
    came_ms = planned.post.came_ms
    return planned.content if came_ms is None else timed(planned.content, max(0, at_ms - came_ms))


def _remember_threads(transaction: Transaction, planned: Sequence[_Planned]) -> None:
    """Note which session a correlation id belongs to, for answers that do not say (D27)."""
    threads = {
        each.envelope.correlation_id: each.post.session
        for each in planned
        if each.post.session != DEFAULT_SESSION and each.envelope.correlation_id is not UNSET
    }
    if threads:
        transaction.execute(
            "INSERT OR IGNORE INTO hub_threads SELECT json_extract(value, '$[0]'), "
            "json_extract(value, '$[1]') FROM json_each(?)",
            (mailbox.as_json(list(threads.items())),),
        )


def _outcome(post: Post, found: Outcome | range, first: int) -> Outcome:
    if not isinstance(found, range):
        return found
    numbers = tuple(range(first + found.start, first + found.stop))
    return Receipt(post.envelope.id, post.session, numbers)
