"""``agentcanvas stop``: end a run and keep what is there."""

from __future__ import annotations

from typing import Annotated

import typer

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.view import ENDED
from agentcanvas.cli.live.words import quoted
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.runs.office import Office

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def stop(
    run: Annotated[
        str | None,
        typer.Argument(help="The run, or a part of its id; the newest if not given."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="ID", help="End only what this agent does now."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="End only what is done for this task now."),
    ] = None,
) -> None:
    """End a run and keep what is there: landed changes stay, proposals stay readable.

    With --agent or --task only that work ends, as failed, and the run goes on without it.
    """

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        name = quoted(found.run_id)
        if agent is not None or task is not None:
            turns = await office.stop_work(found.run_id, agent=agent, task_id=task)
            ended = (
                ", ".join(one_line(turn) for turn in turns) or "nothing: none of it is under way"
            )
            print(f"Told to end: {ended}")
            return ExitCode.DONE
        if found.status in ENDED:
            print(f"{name} had already ended: {one_line(found.reason)}")
            return ExitCode.DONE
        await office.stop(found.run_id)
        print(f"{name} is stopped. Everything so far is kept: agentcanvas show {name}")
        return ExitCode.DONE

    at_office(work)
