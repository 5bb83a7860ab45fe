"""``agentcanvas retry``: the same once more, as a new run."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.watching import Manner, Watching
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.runs.office import Office

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def retry(
    run: Annotated[
        str | None,
        typer.Argument(help="The run, or a part of its id; the newest if not given."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON event per line, and nothing else.")
    ] = False,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="Never ask in this terminal.")
    ] = False,
) -> None:
    """Repeat a run as a new one: same flow, same request, the workspace as it is now."""

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        again = await office.retry(found.run_id)
        manner = Manner(json=as_json, no_input=no_input)
        return await Watching(office, again, root_here(), manner).until_it_rests()

    at_office(work, serve=True)
