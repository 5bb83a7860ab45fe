"""Against replay: a signed message counts once, and only while it is fresh (C9).

A pure state machine over the time it is given. It remembers a sender's ids for as long as their
timestamps are fresh. When that is too much to remember, it does not just forget: it raises the
sender's *floor*, the time below which it no longer knows what it saw, and refuses what is older. So
memory is bounded, and while the given time does not go back no message is admitted twice.

Restarts and clocks that are set back are left to the hub's dedup table (D30).
"""

from __future__ import annotations

import hashlib
import hmac
from heapq import heappop, heappush

from agentcanvas.errors import Repeated, Replayed

WINDOW_MS = 300_000
CAPACITY = 100_000
_LONGEST_ID = 64


def skew_note(timestamp_ms: int, *, now_ms: int, window_ms: int = WINDOW_MS) -> str | None:
    """A remark on a timestamp far from our clock; unsigned messages get no more than that."""
    skew_ms = now_ms - timestamp_ms
    if abs(skew_ms) <= window_ms:
        return None
    side = "behind" if skew_ms > 0 else "ahead of"
    return f"timestamp is {abs(skew_ms) / 1000:.3f} s {side} the receiver's clock"


class ReplayGuard:
    """What signed messages were seen; ``capacity`` is the number of ids kept for each sender."""

    def __init__(self, window_ms: int = WINDOW_MS, capacity: int = CAPACITY) -> None:
        self.window_ms = window_ms
        self.capacity = capacity
        # In order of last use, so that a sender who fell silent is found at the front.
        self._senders: dict[str, _Memory] = {}

    def admit(
        self, sender: str, message_id: str, *, timestamp_ms: int, fingerprint: bytes, now_ms: int
    ) -> None:
        """Take note of a message whose signature holds, or refuse it.

        Ask only after the signature was verified, or a forger could use up a sender's ids.
        """
        note = skew_note(timestamp_ms, now_ms=now_ms, window_ms=self.window_ms)
        if note is not None:
            raise Replayed(
                f"The {note}; a signed message is accepted within {self.window_ms / 1000:g} s. "
                "Set the clock right, then sign the message again"
            )
        oldest_ms = now_ms - self.window_ms
        self._forget_a_silent_sender(oldest_ms)
        memory = self._senders.pop(sender, None)
        if memory is None:
            memory = _Memory()
        self._senders[sender] = memory
        memory.forget_before(oldest_ms)
        memory.take(_bounded(message_id), timestamp_ms, fingerprint)
        memory.shrink_to(self.capacity)

    @property
    def remembered(self) -> int:
        """How many ids are held, of all senders."""
        return sum(memory.remembered for memory in self._senders.values())

    def _forget_a_silent_sender(self, oldest_ms: int) -> None:
        """One a message is enough: senders go faster than they come."""
        silent = next(iter(self._senders), None)
        if silent is not None and self._senders[silent].newest_ms < oldest_ms:
            del self._senders[silent]


def _bounded(message_id: str) -> str:
    """An id as it is remembered; a very long one must not use more room than others."""
    if len(message_id) <= _LONGEST_ID:
        return message_id
    return hashlib.sha256(message_id.encode()).hexdigest()


class _Memory:
    """What one sender has signed, lately."""

    __slots__ = ("_by_age", "_fingerprints", "floor_ms", "newest_ms")

    def __init__(self) -> None:
        self._by_age: list[tuple[int, str]] = []
        self._fingerprints: dict[str, bytes] = {}
        self.floor_ms: float = float("-inf")
        self.newest_ms: float = float("-inf")

    @property
    def remembered(self) -> int:
        return len(self._by_age)

    def take(self, message_id: str, timestamp_ms: int, fingerprint: bytes) -> None:
        known = self._fingerprints.get(message_id)
        if known is not None:
            if hmac.compare_digest(known, fingerprint):
                raise Repeated(f"Message {message_id!r} was received before; it counts once")
            raise Replayed(
                f"Message id {message_id!r} was used before for another message; "
                "give each message an id of its own"
            )
        if timestamp_ms <= self.floor_ms:
            raise Replayed(
                "The timestamp is older than what can still be told from a replay, because the "
                "sender signs very many messages; sign the message again"
            )
        self._fingerprints[message_id] = fingerprint
        heappush(self._by_age, (timestamp_ms, message_id))
        self.newest_ms = max(self.newest_ms, timestamp_ms)

    def forget_before(self, oldest_ms: int) -> None:
        while self._by_age and self._by_age[0][0] < oldest_ms:
            self._forget_oldest()  # the window refuses it from now on

    def shrink_to(self, capacity: int) -> None:
        while len(self._by_age) > capacity:
            self.floor_ms = max(self.floor_ms, self._forget_oldest())

    def _forget_oldest(self) -> int:
        timestamp_ms, message_id = heappop(self._by_age)
        del self._fingerprints[message_id]
        return timestamp_ms
