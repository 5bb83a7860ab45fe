"""The board of an interaction: what was posted under which topic, and what is still kept (I5).

Posts are steps of the run like any other, so a replay puts the same entries back. What is too old
goes when something new is posted under its topic; reading changes nothing and needs no record.
"""

from __future__ import annotations

from collections import deque

import msgspec

from agentcanvas.pattern import Entry

KEEP_LAST_N = 100
_DAY_MS = 24 * 3_600_000


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """What a topic keeps: its latest entries, those of the last days, or both limits at once."""

    last_n: int | None = KEEP_LAST_N
    last_days: float | None = None


class Posted(msgspec.Struct, frozen=True):
    """An entry and when it was posted, as the run's events keep it."""

    entry: Entry
    at_ms: int


class Board:
    """The entries that are still there, by topic."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._topics: dict[str, deque[Posted]] = {}
        self._posts = 0

    def next(self, topic: str, text: str, by: str, at_ms: int, replaces: int = 0) -> Posted:
        """The next post, not yet on the board; numbers go on whatever was forgotten.

        What it was made from may have been replaced, or forgotten, meanwhile: then both stay.
        """
        there = any(posted.entry.number == replaces for posted in self._topics.get(topic, ()))
        conflict = bool(replaces) and not there
        return Posted(Entry(self._posts + 1, topic, text, by, replaces, conflict), at_ms)

    def put(self, posted: Posted) -> None:
        """Put it on the board and let go of what is over the retention."""
        self._posts = posted.entry.number
        topic = self._topics.setdefault(posted.entry.topic, deque(maxlen=self._retention.last_n))
        if posted.entry.replaces and not posted.entry.conflict:
            replaced = [each for each in topic if each.entry.number == posted.entry.replaces]
            topic.remove(replaced[0])
        topic.append(posted)
        if self._retention.last_days is not None:
            oldest = posted.at_ms - self._retention.last_days * _DAY_MS
            while topic[0].at_ms < oldest:
                topic.popleft()

    def read(self, topic: str) -> tuple[Entry, ...]:
        """What is there, the oldest first."""
        return tuple(posted.entry for posted in self._topics.get(topic, ()))
