"""The statistics and verdicts of the benchmarks, on samples whose answers are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import (
    Bar,
    Figure,
    Summary,
    at_least,
    at_most,
    judge,
    times_better,
    times_better_than,
    times_worse,
)

LOWER = Figure("s", better="lower")
HIGHER = Figure("messages/s", better="higher")

SAMPLES = st.lists(st.floats(min_value=1e-9, max_value=1e9), min_size=1, max_size=30)


def test_a_summary_is_the_median_and_the_quartiles() -> None:
    assert Summary.of([5, 1, 4, 2, 3]) == Summary(median=3, low=2, high=4)


def test_one_sample_is_its_own_summary() -> None:
    assert Summary.of([7.0]) == Summary(7.0, 7.0, 7.0)


def test_one_wild_sample_moves_neither_median_nor_quartiles() -> None:
    calm = Summary.of([1.0, 1.1, 1.2, 1.3, 1.4])
    assert Summary.of([1.0, 1.1, 1.2, 1.3, 900.0]) == calm


@given(SAMPLES)
def test_the_median_lies_between_the_quartiles_and_they_among_the_samples(
    samples: list[float],
) -> None:
    summary = Summary.of(samples)
    assert min(samples) <= summary.low <= summary.median <= summary.high <= max(samples)


def test_the_spread_is_half_the_middle_half_as_a_share_of_the_median() -> None:
    assert Summary(median=10, low=9, high=11).spread == pytest.approx(0.1)
    assert Summary(median=0, low=0, high=0).spread == 0
    assert Summary(median=0, low=0, high=1).spread == math.inf


def test_samples_far_apart_are_called_noisy() -> None:
    assert not Summary(median=10, low=9, high=11).noisy
    assert Summary(median=10, low=8, high=12).noisy


def test_less_time_is_better_and_more_throughput_is_better() -> None:
    assert times_better_than([1.0], [4.0], LOWER) == [4.0]
    assert times_better_than([1.0], [4.0], HIGHER) == [0.25]


def test_ratios_are_taken_within_each_round() -> None:
    """A machine that slows down half-way changes the times, not the ratios."""
    own, other = [1.0, 1.0, 10.0, 10.0], [2.0, 2.0, 20.0, 20.0]
    assert times_better_than(own, other, LOWER) == [2.0] * 4


def test_nothing_at_all_is_infinitely_better_than_something_and_equal_to_nothing() -> None:
    assert times_better_than([0.0, 0.0], [2.0, 0.0], LOWER) == [math.inf, 1.0]


@pytest.mark.parametrize(
    ("bar", "reached", "met"),
    [
        (times_better(3.5, than="peer"), 4.0, True),
        (times_better(5, than="peer"), 4.0, False),
        (times_better(4, than="peer"), 4.0, True),
        (times_worse(1.5, than="slower peer"), 0.5, True),
        (times_worse(1.5, than="faster peer"), 2.0, False),
        (at_most(2), 1.0, True),
        (at_most(0.5), 1.0, False),
        (at_least(1), 1.0, True),
        (at_least(1.5), 1.0, False),
    ],
    ids=lambda value: value.text if isinstance(value, Bar) else "",
)
def test_a_bar_is_judged_by_the_median(bar: Bar, reached: float, met: bool) -> None:
    samples = {
        "ours": [1.0, 1.0, 9.0],
        "peer": [4.0, 4.0, 9.0],
        "slower peer": [2.0, 2.0, 9.0],
        "faster peer": [0.5, 0.5, 9.0],
    }
    verdict = judge("ours", bar, samples, LOWER)
    assert (verdict.bar, verdict.reached, verdict.met) == (bar.text, reached, met)


def test_a_bar_says_itself_in_words() -> None:
    assert times_better(3.5, than="pydantic").text == "≥ 3.5x better than pydantic"
    assert times_worse(2, than="plain SQLite").text == "≤ 2x worse than plain SQLite"
    assert at_most(0.2).text == "≤ 0.2"
