"""How many messages an edge carries in a minute: token buckets; times are arguments (I5, L1).

An edge may send its minute's worth at once, and gets room again evenly. Which edges are limited,
and by how much, is said by whoever opens the session; broker and router edges have 10 a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentcanvas.errors import RateLimited
from agentcanvas.hub.session import Edge

_MINUTE_S = 60.0


@dataclass(slots=True)
class TokenBucket:
    """Room for ``per_min`` messages, refilled evenly."""

    per_min: int
    room: float
    at: float

    @classmethod
    def full(cls, per_min: int, now: float) -> TokenBucket:
        """Begin with a whole minute's worth."""
        return cls(per_min, float(per_min), now)

    def wait_s(self, now: float) -> float:
        """Tell how long it is until the next message may go; 0 for at once."""
        self._refill(now)
        return max(0.0, (1.0 - self.room) * _MINUTE_S / self.per_min)

    def take(self, now: float) -> None:
        """Use the room of one message."""
        self._refill(now)
        self.room -= 1.0

    def _refill(self, now: float) -> None:
        passed = max(0.0, now - self.at)
        self.room = min(float(self.per_min), self.room + passed * self.per_min / _MINUTE_S)
        # Adding up many small steps must not leave a message waiting for a rounding error.
        if 1.0 - 1e-9 < self.room < 1.0:
            self.room = 1.0
        self.at = max(self.at, now)


class Rates:
    """The limits of all sessions."""

    def __init__(self) -> None:
        self._limits: dict[str, dict[Edge, int]] = {}
        self._buckets: dict[tuple[str, Edge], TokenBucket] = {}

    def install(self, session: str, limits: Mapping[Edge, int]) -> None:
        """Limit edges of a session, in messages a minute; what is not named is not limited."""
        self._limits[session] = dict(limits)
        for key in [key for key in self._buckets if key[0] == session]:
            if self._buckets[key].per_min != limits.get(key[1]):
                del self._buckets[key]

    def forget(self, session: str) -> None:
        """Limit a session no longer."""
        self._limits.pop(session, None)
        for key in [key for key in self._buckets if key[0] == session]:
            del self._buckets[key]

    def admit(self, session: str, speaker: str, recipients: Iterable[str], now: float) -> None:
        """Use the room of a message to each recipient, or refuse it to all."""
        limits = self._limits.get(session)
        if not limits:
            return
        buckets = []
        for recipient in recipients:
            edge = (speaker, recipient)
            per_min = limits.get(edge)
            if per_min is None:
                continue
            bucket = self._buckets.get((session, edge))
            if bucket is None:
                bucket = self._buckets[session, edge] = TokenBucket.full(per_min, now)
            wait_s = bucket.wait_s(now)
            if wait_s > 0:
                raise RateLimited(
                    f"{speaker} may send {recipient} {per_min} messages a minute in the session "
                    f"{session}; send this one again in {wait_s:.1f} s."
                )
            buckets.append(bucket)
        for bucket in buckets:
            bucket.take(now)
