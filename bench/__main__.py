"""``python -m bench [names…]``: run benchmarks, show them, keep them in bench/results/.

Ends with 1 when a bar was missed, with 2 when there is no such benchmark.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

import bench
from bench import report
from bench.harness import Contest, Effort, run

Contests: TypeAlias = Callable[..., Generator[Contest, None, None]]

RESULTS = Path(__file__).parent / "results"
MACHINERY = {"__main__", "figures", "ground", "harness", "network", "report"}


def available() -> Mapping[str, str]:
    """Name the benchmark files beside this one, and their modules."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return {name: f"bench.{name}" for name in sorted(found) if name not in MACHINERY}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks.")
    parser.add_argument("names", nargs="*", help="which ones; all when none is named")
    parser.add_argument("--quick", action="store_true", help="few, short samples: does it run?")
    parser.add_argument("--rounds", type=int, help="how often each contender is measured")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    options = parser.parse_args(arguments)

    known = available()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        there_are = ", ".join(known) or "none yet"
        _complain(f"There is no benchmark {', '.join(unknown)}. There are: {there_are}.")
        return 2

    console = Console()
    reports = [
        _run_file(name, console, quick=options.quick, rounds=options.rounds, out=options.out)
        for name in options.names or known
    ]
    short = [r.benchmark for r in reports if not r.met]
    if short:
        _complain(f"A bar was missed in: {', '.join(short)}.")
    return 1 if short else 0


def _run_file(
    name: str, console: Console, *, quick: bool, rounds: int | None, out: Path
) -> report.Report:
    contests: Contests = importlib.import_module(available()[name]).contests
    effort = Effort.quick() if quick else Effort.full()
    if rounds:
        effort = replace(effort, rounds=rounds)
    results = []
    with closing(contests(quick=quick)) as stated:  # what they stand on is cleared away at once
        for contest in stated:
            results.append(run(contest, effort))
            report.show(results[-1], console)
    finished = report.Report(name, quick, report.Machine.here(), tuple(results))
    for path in report.written(finished, out):
        console.print(f"[dim]kept in {path}[/dim]")
    return finished


def _complain(sentence: str) -> None:
    print(sentence, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
