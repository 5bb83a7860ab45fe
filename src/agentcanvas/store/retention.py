"""Forgetting old events by rule, in small steps between other writes.

Never an event that a projection has not brought to its file yet. When to forget, and by which
rules, is left to those who own the streams.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from agentcanvas.store.transaction import Snapshot, Transaction

ROWS_A_STEP = 500
_PAGES_A_STEP = 256
_LAST_OF_ALL = 2**63 - 1


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for each stream whose name begins with ``streams``; what breaks either limit goes."""

    streams: str
    keep_ms: int | None = None
    keep_last: int | None = None


class Cut(NamedTuple):
    """Of ``stream``, what is neither later than ``seq`` nor from ``before_ms`` on."""

    stream: str
    seq: int
    before_ms: int


def cuts(look: Snapshot, rules: tuple[Retention, ...], now_ms: int) -> list[Cut]:
    """Tell what the rules say to forget now."""
    found: list[Cut] = []
    for rule in rules:
        streams = look.query(
            "SELECT DISTINCT stream FROM events WHERE stream >= ? AND stream < ?",
            (rule.streams, rule.streams + "\U0010ffff"),
        )
        for (stream,) in streams:
            if rule.keep_ms is not None:
                found.append(Cut(stream, _LAST_OF_ALL, now_ms - rule.keep_ms))
            if rule.keep_last is not None:
                newest_too_many = look.one(
                    "SELECT seq FROM events WHERE stream = ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
                    (stream, rule.keep_last),
                )
                if newest_too_many:
                    found.append(Cut(stream, newest_too_many[0], _LAST_OF_ALL))
    return found


def forget_some(transaction: Transaction, cut: Cut) -> int:
    """Delete up to ``ROWS_A_STEP`` rows; return how many."""
    (written,) = transaction.query(
        "SELECT coalesce(min(seq), ?) FROM projections", (_LAST_OF_ALL,)
    )[0]
    return transaction.execute(
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events "
        "WHERE stream = ? AND seq <= ? AND at_ms < ? ORDER BY seq LIMIT ?)",
        (cut.stream, min(cut.seq, written), cut.before_ms, ROWS_A_STEP),
    )


def give_back_some(transaction: Transaction) -> bool:
    """Return free pages to the file system; tell whether there are more."""
    (free,) = transaction.query("PRAGMA freelist_count")[0]
    # One at a time: the module sqlite3 takes a single step of a pragma that returns no columns.
    for _ in range(min(free, _PAGES_A_STEP)):
        transaction.query("PRAGMA incremental_vacuum(1)")
    return bool(free > _PAGES_A_STEP)
