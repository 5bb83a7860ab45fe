"""``agentcanvas agents``: who is known to the hub, and how they are; ``test`` tries a CLI."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.agent_test import try_cli
from agentcanvas.cli.hubs import AsJson, Data, Hub, at_hub
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import console_here, listing
from agentcanvas.cli.live.words import duration
from agentcanvas.hub.office import AgentLine

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

app.command("test")(try_cli)

_STYLES = {"present": "green", "away": "dim", "lost": "red"}


@app.callback(invoke_without_command=True)
def agents(
    context: typer.Context,
    data: Data = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            "--capability",
            "-c",
            metavar="WORD",
            help="Only those that can do this; may be given several times, then all of it.",
            show_default=False,
        ),
    ] = None,
    present: Annotated[
        bool, typer.Option("--present", help="Only those that are there now.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the agents the hub knows: who is present, what they can do, what waits for them.

    An agent that says nothing for 90 seconds is lost; it is present again with its next word.
    """
    if context.invoked_subcommand is not None:
        return

    async def work(hub: Hub) -> int:
        wanted = tuple(capability or ())
        known = await hub.office.agents(wanted)
        found = [line for line in known if line.state == "present" or not present]
        if as_json:
            for line in found:
                print(one_json(line))
            return ExitCode.DONE
        if not found:
            _say_nobody(hub, wanted, present=present)
        else:
            console_here().print(_table(found))
        if not hub.is_live:
            print(f"The hub does not run, so nobody is there. Start it: {hub.start}")
        return ExitCode.DONE

    at_hub(work, data)


def _say_nobody(hub: Hub, wanted: tuple[str, ...], *, present: bool) -> None:
    if wanted:
        what = one_line(", ".join(wanted))
        print(f"No agent that can do {what} is {'there' if present else 'known'}.")
    elif present:
        print(f"Nobody is there. See who is known: {hub.command('agents')}")
    else:
        print(f"No agent is known yet. Let one in: {hub.command('token', 'new', 'NAME')}")


def _table(found: list[AgentLine]) -> Table:
    table = listing()
    table.add_column("agent", style="bold", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("load", no_wrap=True, justify="right")
    table.add_column("tasks", no_wrap=True)
    table.add_column("inbox", no_wrap=True, justify="right")
    table.add_column("heard", no_wrap=True, justify="right")
    table.add_column("can do", no_wrap=True, overflow="ellipsis", ratio=1)
    for line in found:
        table.add_row(
            Text(one_line(line.id, 40)),
            Text(_state(line), style=_STYLES.get(line.state, "")),
            Text("" if line.load is None else f"{line.load:.0%}"),
            Text(_tasks(line)),
            Text(f"{line.waiting:,}" if line.waiting else "", style="yellow"),
            Text("" if line.silent_s is None else f"{duration(round(line.silent_s * 1000))} ago"),
            Text(one_line(", ".join(line.capabilities)), style="dim"),
        )
    return table


def _state(line: AgentLine) -> str:
    """Present says nothing more than how it is; whoever is not there is just that."""
    return (line.status or line.state).lower() if line.state == "present" else line.state


def _tasks(line: AgentLine) -> str:
    if line.tasks_running is None:
        return ""
    queued = f" + {line.tasks_queued}" if line.tasks_queued else ""
    return f"{line.tasks_running}{queued}"
