"""``agentcanvas report``: what happened in a run, as a document."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentcanvas.cli.live.clean import clean
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.errors import ResourceError
from agentcanvas.runs.events import Recorded
from agentcanvas.runs.office import Office
from agentcanvas.runs.report import markdown
from agentcanvas.runs.report_html import html_report
from agentcanvas.runs.report_json import json_report

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


class Format(StrEnum):
    """What the report is written as."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"


@app.command()
def report(
    run: Annotated[
        str | None,
        typer.Argument(help="The run, or a part of its id; the newest if not given."),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="Markdown for people, JSON for tools, or a page.")
    ] = Format.MARKDOWN,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it there; else print it."),
    ] = None,
) -> None:
    """Report on a run: who did what, what was decided and what landed."""

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        recorded = [entry async for entry in office.events(found.run_id, follow=False)]
        text = written(recorded, form)
        if output is None:
            sys.stdout.write(clean(text))
        else:
            _write(output, text)
            print(f"The report of {found.run_id} is in {output}")
        return ExitCode.DONE

    at_office(work)


def written(recorded: Sequence[Recorded], form: Format) -> str:
    """The report in one of its forms."""
    if form is Format.MARKDOWN:
        return markdown(recorded)
    if form is Format.JSON:
        return json_report(recorded).decode()
    return html_report(recorded)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise ResourceError(f"{file} cannot be written: {wrong.strerror}") from None
