"""``agentcanvas attach``: look over an agent's shoulder until its turn ends."""

from __future__ import annotations

import typer

from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode, closing
from agentcanvas.cli.live.view import RunView, after, view_of
from agentcanvas.cli.live.words import quoted
from agentcanvas.cli.offices import at_office, the_run
from agentcanvas.cli.transcript import Listening, RunAndAgent, run_and_agent, the_agent
from agentcanvas.runs.office import Office

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def attach(words: RunAndAgent) -> None:
    """Follow live what an agent says and does, until its turn ends.

    Ctrl-C leaves; the agent goes on.
    """
    run, agent = run_and_agent(words, "attach")

    async def work(office: Office) -> int:
        found = await the_run(office, run)
        view = view_of([entry async for entry in office.events(found.run_id, follow=False)])
        agent_id = the_agent(view, agent)
        name = one_line(view.name_of(agent_id), 40)
        if not view.agents[agent_id].turn_id:
            words = f"{quoted(found.run_id)} {quoted(agent_id)}"
            print(f"{name} is not at work. What it said: agentcanvas transcript {words}")
            return ExitCode.DONE
        listening = Listening(office, found.run_id, agent_id)
        await listening.until(lambda: _until_turn_ends(office, view, agent_id))
        print(f"The turn of {name} has ended.")
        return ExitCode.DONE

    at_office(work)


async def _until_turn_ends(office: Office, view: RunView, agent_id: str) -> None:
    turn_id = view.agents[agent_id].turn_id
    async with closing(office.events(view.run_id, after=view.seq)) as events:
        async for recorded in events:
            view = after(view, recorded)
            if view.agents[agent_id].turn_id != turn_id:
                return
