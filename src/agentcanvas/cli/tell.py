"""``agentcanvas tell``: say something to an agent of a run that goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.runs.office import Office

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def tell(
    agent: Annotated[str, typer.Argument(help="The agent, by its id in the flow.")],
    text: Annotated[list[str], typer.Argument(help="What you want to say.")],
    run: Annotated[
        str | None,
        typer.Option("--run", help="The run, or a part of its id; the newest if not given."),
    ] = None,
) -> None:
    """Send a message to an agent at work; it reads it at the start of its next turn."""

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        await office.tell(found.run_id, agent, " ".join(text))
        print(f"{one_line(agent, 40)} will read it at the start of its next turn.")
        return ExitCode.DONE

    at_office(work)
