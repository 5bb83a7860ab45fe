"""How long messages take, gathered a batch at a time, so that it costs next to nothing."""

from __future__ import annotations

from bisect import bisect_left

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Latency:
    """How long messages took, in steps."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float, messages: int) -> None:
        """Note a batch that took so long."""
        self._counts[bisect_left(_BOUNDS, seconds)] += messages
        self.sum += seconds * messages

    def buckets(self) -> list[tuple[str, float]]:
        """Tell how many took no longer than each step, as Prometheus counts them."""
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets
