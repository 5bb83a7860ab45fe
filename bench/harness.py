"""How a benchmark is stated and run.

A benchmark file holds one function. Whatever the contests need is opened around the ``yield``::

    # bench/protocol.py
    from collections.abc import Iterator

    from bench.harness import Contender, Contest, Figure, at_most, times_better


    def contests(*, quick: bool) -> Iterator[Contest]:
        wire = sample_message()
        yield Contest(
            name="decode a task request",
            baseline="pydantic",
            contenders=[
                Contender("pydantic", lambda: Model.model_validate_json(wire)),
                Contender("ours", lambda: decode(wire), bar=times_better(3.5, than="pydantic")),
            ],
        )
        with TemporaryDirectory() as folder:
            yield Contest(
                name="fsyncs a write, 32 senders at once",
                figure=Figure("fsyncs/write", better="lower"),
                contenders=[
                    Contender("ours", lambda: count_fsyncs(folder), bar=at_most(0.2)),
                ],
            )

- ``work`` takes nothing. If it returns an awaitable, that is awaited, on one event loop a contest.
- Without a ``figure`` the harness takes the time of a call, in an inner loop long enough for the
  clock; ``operations`` says how many operations one call makes.
- With a ``figure`` each call returns the figure itself; the harness only repeats and compares.
- ``Contender.opened(name, opener)`` is for work that needs something open on the event loop: the
  opener returns a context manager, sync or async, that yields the work; it is closed after the
  contest.
- ``quick`` is for trying a benchmark out: fewer and shorter samples, smaller set-ups.

Fairness: contenders take turns and the order rotates, so that noise of the machine hits all alike;
a ratio is the median of the ratios within each round, never of figures taken minutes apart. The
garbage collector stays on, as in real use, and is emptied before every sample, so that each pays
for its own garbage and nobody for a neighbour's. Times are information about one machine: bars on
timed contests are therefore ratios.

The verdicts are made in ``bench.figures``, tables and files in ``bench.report``.
"""

from __future__ import annotations

import gc
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import TypeAlias, cast

import anyio
import msgspec

from bench.figures import (
    Bar,
    Figure,
    Summary,
    Verdict,
    at_least,
    at_most,
    judge,
    times_better,
    times_better_than,
    times_worse,
)

__all__ = [
    "Bar",
    "Contender",
    "Contest",
    "Effort",
    "Figure",
    "Result",
    "Standing",
    "at_least",
    "at_most",
    "run",
    "times_better",
    "times_worse",
]

Work: TypeAlias = Callable[[], object]
Opened: TypeAlias = AbstractContextManager[Work] | AbstractAsyncContextManager[Work]
Clock: TypeAlias = Callable[[], int]

SECONDS = Figure("s", better="lower")


@dataclass(frozen=True)
class Contender:
    """One way of doing what the contest is about."""

    name: str
    work: Work | None
    bar: Bar | None = None
    operations: int = 1
    opener: Callable[[], Opened] | None = None

    @classmethod
    def opened(
        cls,
        name: str,
        opener: Callable[[], Opened],
        *,
        bar: Bar | None = None,
        operations: int = 1,
    ) -> Contender:
        """Make a contender whose work exists only inside a context."""
        return cls(name, None, bar, operations, opener)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Contenders that do the same, and what is taken of them; misstatements are refused at once."""

    name: str
    contenders: Sequence[Contender]
    baseline: str | None = None
    figure: Figure | None = None
    note: str = ""

    def __post_init__(self) -> None:
        names = [contender.name for contender in self.contenders]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"{self.name}: name at least one contender, and each one once")
        rivals = [self.baseline, *(c.bar.rival for c in self.contenders if c.bar)]
        for rival in rivals:
            if rival is not None and rival not in names:
                raise ValueError(f"{self.name}: there is no contender {rival!r} to compare with")
        for contender in self.contenders:
            if self.figure is None and contender.bar and contender.bar.rival is None:
                raise ValueError(
                    f"{self.name}: {contender.name} has a bar on a time; compare it with a rival"
                )


@dataclass(frozen=True)
class Effort:
    """How long to look."""

    rounds: int
    sample_ns: int
    warm_up_ns: int

    @classmethod
    def full(cls) -> Effort:
        """For figures that are quoted."""
        return cls(rounds=15, sample_ns=50_000_000, warm_up_ns=100_000_000)

    @classmethod
    def quick(cls) -> Effort:
        """For seeing whether a benchmark runs at all."""
        return cls(rounds=3, sample_ns=2_000_000, warm_up_ns=2_000_000)


class Standing(msgspec.Struct, frozen=True):
    """How one contender did."""

    name: str
    figure: Summary
    samples: tuple[float, ...]
    times_better: Summary | None = None
    verdict: Verdict | None = None


class Result(msgspec.Struct, frozen=True):
    """How a contest ended; times are in seconds an operation."""

    name: str
    unit: str
    better: str
    timed: bool
    standings: tuple[Standing, ...]
    baseline: str | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether every bar was reached."""
        return all(s.verdict.met for s in self.standings if s.verdict)


def run(contest: Contest, effort: Effort, *, clock: Clock = time.perf_counter_ns) -> Result:
    """Run a contest on an event loop of its own and judge it."""
    return anyio.run(_run, contest, effort, clock)


async def _run(contest: Contest, effort: Effort, clock: Clock) -> Result:
    async with AsyncExitStack() as stack:
        runners = [await _ready(contest, c, effort, clock, stack) for c in contest.contenders]
        samples: dict[str, list[float]] = {runner.name: [] for runner in runners}
        for round_number in range(effort.rounds):
            for runner in _rotated(runners, round_number):
                samples[runner.name].append(await runner.sample())
    return _judged(contest, samples)


def _rotated(runners: Sequence[_Runner], by: int) -> Iterable[_Runner]:
    start = by % len(runners)
    return itertools.chain(runners[start:], runners[:start])


def _judged(contest: Contest, samples: dict[str, list[float]]) -> Result:
    figure = contest.figure or SECONDS
    standings = []
    for contender in contest.contenders:
        own = samples[contender.name]
        ratios = None
        if contest.baseline is not None:
            ratios = Summary.of(times_better_than(own, samples[contest.baseline], figure))
        standings.append(
            Standing(
                name=contender.name,
                figure=Summary.of(own),
                samples=tuple(own),
                times_better=ratios,
                verdict=judge(contender.name, contender.bar, samples, figure)
                if contender.bar
                else None,
            )
        )
    return Result(
        name=contest.name,
        unit=figure.unit,
        better=figure.better,
        timed=contest.figure is None,
        standings=tuple(standings),
        baseline=contest.baseline,
        note=contest.note,
    )


@dataclass
class _Runner:
    """A warmed-up contender that gives one sample at a time."""

    name: str
    work: Work
    operations: int
    timed: bool
    clock: Clock
    awaited: bool = False
    calls: int = 1

    async def sample(self) -> float:
        gc.collect()
        if not self.timed:
            return float(cast("float", await self._outcome()))
        return await self.elapsed_ns() / self.calls / self.operations / 1e9

    async def _outcome(self) -> object:
        outcome = self.work()
        return await cast("Awaitable[object]", outcome) if self.awaited else outcome

    async def elapsed_ns(self) -> int:
        """Time ``calls`` calls; two bare loops, so that neither kind pays for the other."""
        work, clock = self.work, self.clock
        turns = itertools.repeat(None, self.calls)
        if self.awaited:
            begun = clock()
            for _ in turns:
                await cast("Callable[[], Awaitable[object]]", work)()
            return clock() - begun
        begun = clock()
        for _ in turns:
            work()
        return clock() - begun

    async def first_call(self) -> None:
        outcome = self.work()
        self.awaited = inspect.isawaitable(outcome)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if not self.timed and not isinstance(outcome, int | float):
            raise TypeError(f"{self.name}: a contest with a figure needs a number, got {outcome!r}")

    async def calibrate(self, effort: Effort) -> None:
        """Warm up, then find the number of calls that fills a sample."""
        spent = 0
        while spent < effort.warm_up_ns:
            spent += max(1, await self.elapsed_ns())
        taken = max(1, await self.elapsed_ns())
        while taken < effort.sample_ns:
            # At most tenfold a step: one lucky short reading must not make a sample of minutes.
            self.calls = min(self.calls * 10, self.calls * effort.sample_ns // taken + 1)
            taken = max(1, await self.elapsed_ns())


async def _ready(
    contest: Contest, contender: Contender, effort: Effort, clock: Clock, stack: AsyncExitStack
) -> _Runner:
    try:
        work = contender.work or await _enter(contender, stack)
        runner = _Runner(contender.name, work, contender.operations, contest.figure is None, clock)
        await runner.first_call()
        if runner.timed:
            await runner.calibrate(effort)
    except Exception as error:
        error.add_note(f"in the contest {contest.name!r}, contender {contender.name!r}")
        raise
    return runner


async def _enter(contender: Contender, stack: AsyncExitStack) -> Work:
    assert contender.opener, f"{contender.name} has neither work nor opener"
    opened = contender.opener()
    if isinstance(opened, AbstractAsyncContextManager):
        return await stack.enter_async_context(opened)
    return stack.enter_context(opened)
