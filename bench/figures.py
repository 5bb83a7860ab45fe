"""What is made of raw samples: medians with their spread, ratios, and verdicts on bars.

Pure functions and values; taking the samples is left to ``bench.harness``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

NOISY = 0.25
"""A middle half wider than this share of its median says that the machine was not quiet."""


class Figure(msgspec.Struct, frozen=True):
    """What a contest's numbers count, and which way is better."""

    unit: str
    better: Literal["lower", "higher"] = "lower"


class Summary(msgspec.Struct, frozen=True):
    """The median and the middle half of some samples."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        """Summarise at least one sample; ``low`` and ``high`` are the quartiles."""
        if len(samples) == 1:
            return cls(samples[0], samples[0], samples[0])
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(median, low, high)

    @property
    def spread(self) -> float:
        """Half the width of the middle half, as a share of the median: the ± of the tables."""
        if self.high == self.low:
            return 0.0
        return (self.high - self.low) / 2 / abs(self.median) if self.median else math.inf

    @property
    def noisy(self) -> bool:
        """Whether the samples lie so far apart that a ratio made of them needs a second look."""
        return self.spread > NOISY / 2


def times_better_than(
    own: Sequence[float], other: Sequence[float], figure: Figure
) -> Sequence[float]:
    """How many times better ``own`` was in each round; 2.0 is twice as good, 0.5 half as good."""
    pairs = zip(own, other, strict=True)
    if figure.better == "lower":
        return [_ratio(theirs, mine) for mine, theirs in pairs]
    return [_ratio(mine, theirs) for mine, theirs in pairs]


def _ratio(dividend: float, divisor: float) -> float:
    if dividend == divisor:
        return 1.0
    return dividend / divisor if divisor else math.inf


class Bar(msgspec.Struct, frozen=True):
    """What a contender has to reach. Made by the functions below, which say it in words."""

    text: str
    judges: Literal["times better", "times worse", "figure"]
    sign: Literal["≥", "≤"]
    value: float
    rival: str | None = None

    def is_met_by(self, reached: float) -> bool:
        """Hold a median against the bar; reaching it exactly is enough."""
        return reached >= self.value if self.sign == "≥" else reached <= self.value


def times_better(factor: float, *, than: str) -> Bar:
    """Set a bar at so many times better than a rival: faster, fewer or more, as the figure goes."""
    return Bar(f"≥ {factor:g}x better than {than}", "times better", "≥", factor, than)


def times_worse(factor: float, *, than: str) -> Bar:
    """Allow to be at most so many times worse than a rival, for what has a price by design."""
    return Bar(f"≤ {factor:g}x worse than {than}", "times worse", "≤", factor, than)


def at_most(value: float) -> Bar:
    """Set a bar on a counted figure itself (not on a time: that would judge the machine)."""
    return Bar(f"≤ {value:g}", "figure", "≤", value)


def at_least(value: float) -> Bar:
    """Set a bar on a counted figure itself (not on a time: that would judge the machine)."""
    return Bar(f"≥ {value:g}", "figure", "≥", value)


class Verdict(msgspec.Struct, frozen=True):
    """A bar, what was reached, and whether that is enough."""

    bar: str
    reached: float
    met: bool


def judge(
    contender: str, bar: Bar, samples: Mapping[str, Sequence[float]], figure: Figure
) -> Verdict:
    """Hold a contender's samples against its bar, by the median."""
    own = samples[contender]
    judged: Sequence[float] = own
    if bar.rival is not None:
        rival = samples[bar.rival]
        pair = (own, rival) if bar.judges == "times better" else (rival, own)
        judged = times_better_than(*pair, figure)
    reached = Summary.of(judged).median
    return Verdict(bar.text, reached, bar.is_met_by(reached))
