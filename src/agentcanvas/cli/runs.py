"""``agentcanvas runs``: every run of this workspace, the newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import console_here, listing
from agentcanvas.cli.live.words import RUN_STYLES, quoted, short, spent
from agentcanvas.cli.offices import NO_RUNS, at_office
from agentcanvas.runs.office import Office, RunSummary
from agentcanvas.runs.state import RunStatus

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_NARROW = 100


@app.command()
def runs(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")] = False,
) -> None:
    """List the runs of this workspace, the newest first, and what they wait for."""

    async def work(office: Office) -> int:
        found = await office.runs()
        if as_json:
            for run in found:
                print(one_json(run))
        elif not found:
            print(NO_RUNS)
        else:
            console = console_here()
            console.print(_table(found, console.width))
            for run in found:
                if run.status is RunStatus.PARKED:
                    print(f"Waits for {one_line(run.waits_for)}  {_answer(run)}")
        return ExitCode.DONE

    at_office(work)


def _table(found: tuple[RunSummary, ...], width: int) -> Table:
    wide = width >= _NARROW
    table = listing()
    table.add_column("run", no_wrap=True, style="bold")
    table.add_column("status", no_wrap=True)
    if wide:
        table.add_column("started", no_wrap=True)
        table.add_column("spent", no_wrap=True)
    table.add_column("applied", no_wrap=True, justify="right")
    table.add_column("request", no_wrap=True, overflow="ellipsis", ratio=1)
    for run in found:
        cells = [
            Text(short(run.run_id)),
            Text(str(run.status), style=RUN_STYLES[run.status]),
            *((Text(_when(run.started_ms)), Text(_spent(run))) if wide else ()),
            Text(f"{run.applied}/{run.tasks}"),
            _about(run),
        ]
        table.add_row(*cells)
    return table


def _about(run: RunSummary) -> Text:
    """What was asked, and why it ended."""
    text = Text(one_line(run.request))
    if run.reason:
        text.append(f"  {one_line(run.reason)}", style="dim")
    return text


def _answer(run: RunSummary) -> str:
    return f"agentcanvas review {quoted(run.run_id)}"


def _spent(run: RunSummary) -> str:
    return spent(run.tokens, run.cost, estimated=run.is_estimate)


def _when(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
