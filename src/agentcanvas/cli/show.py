"""``agentcanvas show``: how one run stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.here import folder_here, root_here
from agentcanvas.cli.live.clean import lines_of, one_line
from agentcanvas.cli.live.ending import last_words
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import console_here
from agentcanvas.cli.live.view import RunView, TaskView, view_of
from agentcanvas.cli.live.words import (
    RUN_STYLES,
    evidence_style,
    files,
    short,
    task_mark,
)
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.clock import SystemClock
from agentcanvas.runs.office import Office

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def show(
    run: Annotated[
        str | None,
        typer.Argument(help="The run, or a part of its id; the newest if not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
) -> None:
    """Show the state of a run: its tasks, checks and verdicts, and whom it waits for."""

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        view = view_of([entry async for entry in office.events(found.run_id, follow=False)])
        asks = await office.asks(found.run_id)
        if as_json:
            print(one_json(view))
            return ExitCode.DONE
        console = console_here()
        console.print(_shown(view))
        for line in last_words(view, asks, root_here(), SystemClock().now_ms(), here=folder_here()):
            console.print(Text(line), soft_wrap=True)
        return ExitCode.DONE

    at_office(work)


def _shown(view: RunView) -> RenderableType:
    title = Text(short(view.run_id), style="bold")
    title.append(f"  {view.status}", style=RUN_STYLES[view.status])
    about = Table.grid(padding=(0, 2))
    about.add_column(style="dim", no_wrap=True)
    about.add_column(overflow="fold")
    about.add_row("request", _text(lines_of(view.request)))
    about.add_row("flow", Text(one_line(view.flow)))
    if view.given:
        about.add_row("given", Text(one_line(view.given, 400), style="yellow"))
    for warning in view.warnings:
        about.add_row("warning", Text(one_line(warning, 400), style="yellow"))
    tasks = [part for task in view.tasks.values() for part in _task(view, task)]
    return Group(title, about, Text(), *tasks)


def _task(view: RunView, task: TaskView) -> list[RenderableType]:
    sign, word, style = task_mark(task, view)
    head = Text(f"{sign} ", style=style)
    head.append(short(task.task_id), style="bold")
    head.append(f"  {one_line(view.name_of(task.worker), 40)}  ")
    head.append(word, style=style)
    if task.attempts > 1:
        head.append(f"  attempt {task.attempts}", style="dim")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    rows.add_row("task", _text(lines_of(task.instruction)[:4]))
    if task.summary.strip():
        rows.add_row("says", _text(lines_of(task.summary)))
    if task.evidence:
        evidence = Text(one_line(task.evidence, 400), style=evidence_style(task.evidence_status))
        rows.add_row("checks", evidence)
    for verdict in task.verdicts:
        why = f": {one_line(verdict.reason, 400)}" if verdict.reason else ""
        by = one_line(verdict.by, 40)
        rows.add_row("verdict", Text(f"{verdict.decision} by {by}{why}"))
    if task.files:
        rows.add_row("files", Text(files(task.files)))
    if task.reason and not task.verdicts:
        rows.add_row("because", Text(one_line(task.reason, 400)))
    return [head, Padding(rows, (0, 0, 1, 2), expand=False)]


def _text(lines: Sequence[str]) -> Text:
    return Text("\n".join(lines))
