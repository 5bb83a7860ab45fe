"""Whether anybody has a use for a server: requests under way, and when the last one ended (D1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agentcanvas.clock import Clock


class Use:
    """Counts requests; an open stream is one that is under way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open = 0
        self._last = clock.monotonic()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Somebody asks for something."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self.note()

    def note(self) -> None:
        """Something of use happens, also without a request."""
        self._last = self._clock.monotonic()

    @property
    def idle_s(self) -> float:
        """For how long nobody has asked for anything."""
        return 0.0 if self._open else self._clock.monotonic() - self._last
