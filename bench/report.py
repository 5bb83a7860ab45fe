"""How results are shown on a terminal and kept as JSON and Markdown.

Absolute times are printed in a unit that suits them and are information only; what counts is the
ratio and the verdict beside it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.harness import Result, Standing

COLUMNS = ("contender", "figure", "±", "times better", "bar", "verdict")


class Machine(msgspec.Struct, frozen=True):
    """Where the figures were taken; nothing that names a person or a host."""

    python: str
    system: str
    processor: str
    cores: int

    @classmethod
    def here(cls) -> Machine:
        """Describe this machine."""
        return cls(
            python=f"{platform.python_implementation()} {platform.python_version()}",
            system=f"{platform.system()} {platform.release()}",
            processor=platform.machine(),
            cores=os.cpu_count() or 1,
        )


class Report(msgspec.Struct, frozen=True):
    """All contests of one benchmark file."""

    benchmark: str
    quick: bool
    machine: Machine
    results: tuple[Result, ...]

    @property
    def met(self) -> bool:
        """Whether every bar of every contest was reached."""
        return all(result.met for result in self.results)


def written(report: Report, folder: Path) -> Sequence[Path]:
    """Keep a report as JSON (with every sample) and Markdown; a quick one never replaces a full."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.benchmark}.quick" if report.quick else report.benchmark
    as_json, as_markdown = folder / f"{stem}.json", folder / f"{stem}.md"
    as_json.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    as_markdown.write_text(markdown(report), encoding="utf-8")
    return as_json, as_markdown


def markdown(report: Report) -> str:
    """Write the report as a page with one table a contest."""
    machine = report.machine
    lines = [
        f"# Benchmark: {report.benchmark}" + (" (quick)" if report.quick else ""),
        "",
        f"{machine.python} on {machine.system}, {machine.processor}, {machine.cores} cores."
        " Times are information; ratios are medians over interleaved rounds.",
    ]
    for result in report.results:
        lines += ["", f"## {result.name}", ""]
        lines += [result.note, ""] if result.note else []
        lines += [_markdown_row(COLUMNS), _markdown_row(["---"] * len(COLUMNS))]
        lines += [_markdown_row(_cells(result, standing)) for standing in result.standings]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def show(result: Result, console: Console) -> None:
    """Print a contest as a table."""
    table = Table(title=result.name, title_justify="left", caption=result.note or None)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in {"figure", "±"} else "left")
    for standing in result.standings:
        style = None
        if standing.verdict:
            style = "green" if standing.verdict.met else "bold red"
        table.add_row(*_cells(result, standing), style=style)
    console.print(table)


def _cells(result: Result, standing: Standing) -> Sequence[str]:
    summary = standing.figure
    value = human_time(summary.median) if result.timed else f"{summary.median:,.4g} {result.unit}"
    if standing.name == result.baseline:
        ratio = "baseline"
    else:
        ratio = f"{standing.times_better.median:.2f}x" if standing.times_better else ""
    verdict = standing.verdict
    return (
        standing.name,
        value,
        f"{summary.spread:.0%}" + (" noisy" if summary.noisy else ""),
        ratio,
        verdict.bar if verdict else "",
        f"{'met' if verdict.met else 'short'}: {verdict.reached:.3g}" if verdict else "",
    )


def human_time(seconds: float) -> str:
    """Say a time with three digits in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
