"""What could not be delivered: kept, listed, told to its sender, resent or deleted on demand.

The hub reports and does nothing else about it (D31).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from enum import Enum

from msgspec import UNSET

from agentcanvas.errors import Overloaded, StoreDamaged, Undeliverable, ValidationError
from agentcanvas.hub import duties, intake, mailbox
from agentcanvas.hub.broker import DeadLetter
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.events import (
    Deleted,
    DeliveryFailure,
    EventKind,
    Resent,
    Undelivered,
    encode,
    stream_of,
)
from agentcanvas.hub.mailbox import Kept, Waiting
from agentcanvas.hub.notices import HUB, notice
from agentcanvas.protocol.envelope import Envelope, to_json
from agentcanvas.protocol.kinds import Kind
from agentcanvas.store import Snapshot, Transaction

_EXPIRED_A_STEP = 500


class Cause(Enum):
    """Why a letter is given up, in SPEC-022's word and in a sentence."""

    UNSETTLED = (DeliveryFailure.TIMEOUT, "its recipient never said that it took it over")
    FAILED = (DeliveryFailure.REJECTED, "its recipient could not take it over")
    ABANDONED = (DeliveryFailure.TIMEOUT, "its recipient went away each time it had it in hand")
    UNREADABLE = (DeliveryFailure.MALFORMED, "it is damaged in the store and cannot be read")
    EXPIRED = (DeliveryFailure.TIMEOUT, "nobody took it over before it expired")

    @property
    def failure(self) -> DeliveryFailure:
        """The word for the record."""
        return self.value[0]

    @property
    def sentence(self) -> str:
        """The sentence for people."""
        return self.value[1]


def _content(look: Snapshot, number: int) -> Envelope | None:
    """Read the message of a letter; None where it is damaged and can only be given up."""
    try:
        return mailbox.content(look, number)[0]
    except StoreDamaged:
        return None


def bury(
    transaction: Transaction,
    numbers: Collection[int],
    cause: Cause,
    rules: DeliveryRules,
    now_ms: int,
) -> tuple[list[tuple[int, str]], list[Kept]]:
    """Give letters up; return number and recipient of each, and what their senders are told."""
    rows = transaction.query(
        "UPDATE hub_letters SET state = 2, reason = ? WHERE state = 0 "
        "AND seq IN (SELECT value FROM json_each(?)) "
        "RETURNING seq, id, session, sender, recipient, tries",
        (cause.sentence, mailbox.as_json(list(numbers))),
    )
    told: list[Kept] = []
    for number, id_, session, sender, recipient, tries in sorted(rows):
        duties.set_open(transaction, session, id_, is_open=False)
        retries = max(0, tries - 1)
        failure = Undelivered(
            id_, cause.failure, retries, rules.retries, sender, recipient, cause.sentence
        )
        transaction.append(stream_of(session), EventKind.UNDELIVERABLE, encode(failure))
        envelope = _content(transaction, number)
        is_error = envelope is not None and envelope.kind is Kind.ERROR
        if sender != HUB and not is_error:  # no errors about errors
            error = Undeliverable(
                f"The message {id_} to {recipient} was not delivered: {cause.sentence}. It is kept "
                f"as dead letter {number}; resend it, or give the work to somebody else."
            )
            post = notice(
                error,
                to=sender,
                session=session,
                about=id_,
                at_ms=transaction.at_ms,
                correlation=UNSET if envelope is None else envelope.correlation_id,
            )
            # A sender whose own inbox is full is not told; the event above says it to everybody.
            told += intake.put(transaction, [post], rules, now_ms)[1]
    gone = [(row[0], row[4]) for row in rows]
    fewer = Counter(recipient for _, recipient in gone)
    mailbox.count(transaction, {recipient: -times for recipient, times in fewer.items()})
    return gone, told


def expire(
    transaction: Transaction, rules: DeliveryRules, now_ms: int
) -> tuple[list[tuple[int, str]], list[Kept]]:
    """Give up what has waited too long, some at a time."""
    rows = transaction.query(
        "SELECT seq FROM hub_letters INDEXED BY hub_letters_expiring "
        "WHERE state = 0 AND expires_ms <= ? LIMIT ?",
        (now_ms, _EXPIRED_A_STEP),
    )
    if not rows:
        return [], []
    return bury(transaction, [number for (number,) in rows], Cause.EXPIRED, rules, now_ms)


def resend(transaction: Transaction, number: int, rules: DeliveryRules, now_ms: int) -> Kept:
    """Put a dead letter back, with all its tries and without an end to its waiting."""
    row = transaction.one(
        "SELECT id, session, sender, recipient, band FROM hub_letters WHERE seq = ? AND state = 2",
        (number,),
    )
    if row is None:
        raise _no_dead_letter(number)
    id_, session, sender, recipient, band = row
    if mailbox.waiting(transaction, [recipient]).get(recipient, 0) >= rules.inbox:
        raise Overloaded(f"The inbox of {recipient} is full; resend the letter later.")
    transaction.execute(
        "UPDATE hub_letters SET state = 0, tries = 0, seen = 1, returns = -1, at_ms = ?, "
        "expires_ms = NULL, reason = NULL WHERE seq = ?",
        (now_ms, number),
    )
    mailbox.count(transaction, {recipient: 1})
    duties.set_open(transaction, session, id_, is_open=True)
    transaction.append(stream_of(session), EventKind.RESENT, encode(Resent(number, recipient)))
    envelope, on_behalf_of = mailbox.content(transaction, number)
    letter = Waiting(number, session, sender, band, now_ms, None, 0, 1, -1)
    return Kept(recipient, letter, envelope, on_behalf_of, len(to_json(envelope)))


def delete(transaction: Transaction, number: int) -> None:
    """Give a dead letter up; its row stays a while, to recognise a repeat."""
    row = transaction.one(
        "UPDATE hub_letters SET state = 1, reason = 'deleted' WHERE seq = ? AND state = 2 "
        "RETURNING session, recipient",
        (number,),
    )
    if row is None:
        raise _no_dead_letter(number)
    session, recipient = row
    transaction.append(stream_of(session), EventKind.DELETED, encode(Deleted(number, recipient)))


def _no_dead_letter(number: int) -> ValidationError:
    return ValidationError(f"There is no dead letter {number}; list them to see which there are.")


def listed(look: Snapshot, *, after: int, limit: int) -> list[DeadLetter]:
    """List dead letters, oldest first."""
    rows = look.query(
        "SELECT seq, id, session, recipient, reason, tries, at_ms FROM hub_letters "
        "INDEXED BY hub_letters_dead WHERE state = 2 AND seq > ? ORDER BY seq LIMIT ?",
        (after, limit),
    )
    return [
        DeadLetter(
            number,
            session,
            recipient,
            _content(look, number) or _stand_in(id_, session, recipient, at_ms),
            reason,
            tries,
            at_ms,
        )
        for number, id_, session, recipient, reason, tries, at_ms in rows
    ]


def _stand_in(id_: str, session: str, recipient: str, at_ms: int) -> Envelope:
    """Say, in the place of a damaged message, that it is one."""
    damaged = Undeliverable(f"The message {id_} is damaged in the store and cannot be read.")
    return notice(
        damaged, to=recipient, session=session, about=id_, at_ms=at_ms, correlation=UNSET
    ).envelope
