"""The harness takes turns, measures with a clock that the test holds, and refuses nonsense."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
import pytest
from rich.console import Console

from bench import report
from bench.__main__ import main
from bench.harness import (
    Contender,
    Contest,
    Effort,
    Figure,
    Result,
    at_most,
    run,
    times_better,
)

BRIEF = Effort(rounds=4, sample_ns=1_000, warm_up_ns=100)


@dataclass
class TellingClock:
    """A clock that moves only when work says how long it took, and remembers who worked."""

    now: int = 0
    diary: list[str] = field(default_factory=list)

    def __call__(self) -> int:
        return self.now

    def work(self, name: str, nanoseconds: int) -> Callable[[], None]:
        def once() -> None:
            self.now += nanoseconds
            self.diary.append(name)

        return once


def duel(clock: TellingClock, *, bar: float = 3) -> Contest:
    return Contest(
        name="a duel",
        baseline="slow",
        contenders=[
            Contender("slow", clock.work("slow", 400)),
            Contender("fast", clock.work("fast", 100), bar=times_better(bar, than="slow")),
        ],
    )


def test_a_timed_contest_gives_seconds_ratios_and_a_verdict() -> None:
    clock = TellingClock()
    slow, fast = run(duel(clock), BRIEF, clock=clock).standings
    assert slow.figure.median == pytest.approx(400e-9)
    assert fast.figure.median == pytest.approx(100e-9)
    assert fast.times_better
    assert fast.times_better.median == pytest.approx(4)
    assert fast.verdict
    assert fast.verdict.met


def test_a_missed_bar_is_short() -> None:
    clock = TellingClock()
    result = run(duel(clock, bar=5), BRIEF, clock=clock)
    assert not result.met


def test_contenders_take_turns_and_the_first_turn_rotates() -> None:
    clock = TellingClock()
    contest = Contest(
        name="turns",
        contenders=[Contender(name, clock.work(name, 1_000)) for name in "ABC"],
    )
    run(contest, BRIEF, clock=clock)
    assert "".join(clock.diary[-12:]) == "ABCBCACABABC"


def test_short_work_is_repeated_until_the_clock_can_see_it() -> None:
    clock = TellingClock()
    contest = Contest(name="short", contenders=[Contender("short", clock.work("short", 1))])
    (standing,) = run(contest, BRIEF, clock=clock).standings
    assert standing.figure.median == pytest.approx(1e-9)
    assert len(clock.diary) >= BRIEF.rounds * BRIEF.sample_ns


def test_work_of_several_operations_is_told_for_one() -> None:
    clock = TellingClock()
    contender = Contender("batch", clock.work("batch", 3_200), operations=32)
    (standing,) = run(Contest(name="b", contenders=[contender]), BRIEF, clock=clock).standings
    assert standing.figure.median == pytest.approx(100e-9)


def test_asynchronous_work_is_awaited() -> None:
    clock = TellingClock()
    step = clock.work("async", 250)

    async def work() -> None:
        await anyio.lowlevel.checkpoint()
        step()

    (standing,) = run(
        Contest(name="async", contenders=[Contender("async", work)]), BRIEF, clock=clock
    ).standings
    assert standing.figure.median == pytest.approx(250e-9)


def test_a_counted_figure_is_taken_as_returned() -> None:
    figures = iter([9.0, 2.0, 1.0, 3.0, 2.0])
    contest = Contest(
        name="fsyncs",
        figure=Figure("fsyncs/write"),
        contenders=[Contender("ours", lambda: next(figures), bar=at_most(2))],
    )
    result = run(contest, BRIEF)
    (standing,) = result.standings
    assert standing.samples == (2.0, 1.0, 3.0, 2.0), "the first call warms up and does not count"
    assert result.met


def test_more_is_better_when_the_figure_says_so() -> None:
    contest = Contest(
        name="throughput",
        baseline="peer",
        figure=Figure("messages/s", better="higher"),
        contenders=[
            Contender("peer", lambda: 100),
            Contender("ours", lambda: 300, bar=times_better(3, than="peer")),
        ],
    )
    assert run(contest, BRIEF).met


def test_opened_work_is_closed_after_the_contest() -> None:
    diary = []

    @asynccontextmanager
    async def asynchronous() -> AsyncIterator[Callable[[], object]]:
        async with anyio.create_task_group():
            diary.append("opened")
            yield lambda: diary.append("worked")
        diary.append("closed")

    @contextmanager
    def plain() -> Iterator[Callable[[], object]]:
        yield lambda: None
        diary.append("closed too")

    contenders = [Contender.opened("a", asynchronous), Contender.opened("b", plain)]
    clock = iter(range(0, 10_000_000, 1_000))
    run(Contest(name="opened", contenders=contenders), BRIEF, clock=lambda: next(clock))
    assert diary[0] == "opened"
    assert set(diary[1:-2]) == {"worked"}
    assert diary[-2:] == ["closed too", "closed"]


def test_a_failing_contender_is_named() -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError) as caught:
        run(Contest(name="c", contenders=[Contender("ours", fail)]), BRIEF)
    assert caught.value.__notes__ == ["in the contest 'c', contender 'ours'"]


def test_a_figure_that_is_no_number_is_refused() -> None:
    contest = Contest(name="c", figure=Figure("x"), contenders=[Contender("ours", lambda: None)])
    with pytest.raises(TypeError, match="needs a number"):
        run(contest, BRIEF)


def test_a_contest_without_contenders_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one contender"):
        Contest(name="c", contenders=[])


def test_two_contenders_of_one_name_are_refused() -> None:
    twice = [Contender("ours", lambda: None), Contender("ours", lambda: None)]
    with pytest.raises(ValueError, match="each one once"):
        Contest(name="c", contenders=twice)


def test_a_rival_that_is_not_there_is_refused() -> None:
    contender = Contender("ours", lambda: None, bar=times_better(2, than="pydantic"))
    with pytest.raises(ValueError, match="no contender 'pydantic'"):
        Contest(name="c", contenders=[contender])


def test_a_bar_on_a_time_is_refused_because_it_would_judge_the_machine() -> None:
    with pytest.raises(ValueError, match="bar on a time"):
        Contest(name="c", contenders=[Contender("ours", lambda: None, bar=at_most(1))])


def reported(result: Result) -> report.Report:
    return report.Report("sample", quick=True, machine=report.Machine.here(), results=(result,))


def test_a_report_is_kept_as_json_and_markdown(tmp_path: Path) -> None:
    clock = TellingClock()
    result = run(duel(clock), BRIEF, clock=clock)
    as_json, as_markdown = report.written(reported(result), tmp_path / "results")
    assert as_json.name == "sample.quick.json"
    assert msgspec.json.decode(as_json.read_bytes(), type=report.Report).results == (result,)
    page = as_markdown.read_text()
    assert "| slow | 400 ns | 0% | baseline |  |  |" in page
    assert "| fast | 100 ns | 0% | 4.00x | ≥ 3x better than slow | met: 4 |" in page


def test_a_table_shows_the_verdict() -> None:
    clock = TellingClock()
    screen = io.StringIO()
    report.show(run(duel(clock, bar=5), BRIEF, clock=clock), Console(file=screen, width=120))
    assert "short: 4" in screen.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.5, "2.5 s"), (0.0125, "12.5 ms"), (3.3e-6, "3.3 µs"), (6e-8, "60 ns"), (0.0, "0 ns")],
)
def test_times_are_said_in_a_unit_that_suits_them(seconds: float, words: str) -> None:
    assert report.human_time(seconds) == words


def test_a_benchmark_that_is_not_there_is_told_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["no-such-benchmark"]) == 2
    assert "There is no benchmark no-such-benchmark. There are:" in capsys.readouterr().err
