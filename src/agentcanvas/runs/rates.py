"""How often somebody may be spoken to: so many messages a minute along one edge (I5).

What is over the limit waits for its minute, or is refused, as the flow says. Moments are handed in
and out as values, so a replay that hands in the recorded ones finds the same room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

Lane = tuple[str, str]
"""Who speaks, and to whom; an empty name is the engine for whoever it may be."""

_MINUTE_MS = 60_000


class Rates:
    """The limits of one interaction, and what was sent within the last minute."""

    def __init__(
        self,
        per_minute: int | None = None,
        *,
        refuse: bool = False,
        edges: Mapping[Lane, int] | None = None,
    ) -> None:
        self._per_minute = per_minute
        self._edges = dict(edges or {})
        self._sent: dict[Lane, deque[int]] = {}
        self.refuse = refuse

    @property
    def limited(self) -> bool:
        """Whether there is any limit at all."""
        return self._per_minute is not None or bool(self._edges)

    def limit(self, lane: Lane) -> int | None:
        """How many messages a minute this edge takes."""
        return self._edges.get(lane, self._per_minute)

    def reserve(self, lane: Lane, now_ms: int) -> int:
        """The moment from which on the next message may go, which is taken for it.

        With ``refuse`` nothing is taken when that moment is not now.
        """
        limit = self.limit(lane)
        sent = self._sent.setdefault(lane, deque())
        at_ms = now_ms
        if limit is not None and len(sent) >= limit:
            at_ms = max(now_ms, sent[-limit] + _MINUTE_MS)
        if at_ms == now_ms or not self.refuse:
            self.note(lane, at_ms)
        return at_ms

    def note(self, lane: Lane, at_ms: int) -> None:
        """Count a message that went at this moment."""
        sent = self._sent.setdefault(lane, deque())
        sent.append(at_ms)
        while len(sent) > 1 and sent[0] < sent[-1] - _MINUTE_MS:
            sent.popleft()
