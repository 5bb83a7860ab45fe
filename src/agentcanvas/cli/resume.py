"""``agentcanvas resume``: go on with a run that was cut off or waits."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.watching import Manner, Watching
from agentcanvas.cli.live.words import quoted
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.errors import ValidationError
from agentcanvas.runs.office import Office
from agentcanvas.runs.state import RunStatus

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def resume(
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
    """Continue a run that was stopped or cut off, and watch it.

    What was settled is not done again. A turn that was cut off begins anew.
    """

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        if found.status is RunStatus.DONE:
            raise ValidationError(
                f"{found.run_id} is done; there is nothing to go on with. "
                f"Once more: agentcanvas retry {quoted(found.run_id)}"
            )
        watching = Watching(
            office, found.run_id, root_here(), Manner(json=as_json, no_input=no_input)
        )
        await watching.following.catch_up()
        if found.status is not RunStatus.RUNNING and not await office.asks(found.run_id):
            # With a question open it goes on when that is answered.
            await office.resume(found.run_id)
            watching.following.expect()
        return await watching.until_it_rests()

    at_office(work, serve=True)
