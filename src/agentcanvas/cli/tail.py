"""``agentcanvas tail``: what is said in the hub, as it is said."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from agentcanvas.cli.hubs import AsJson, Data, Hub, at_hub
from agentcanvas.cli.live.following import ExitCode, closing
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.said_in_hub import entry_json, entry_text
from agentcanvas.cli.live.terminal import console_here
from agentcanvas.hub.office import Choice, Entry

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_MOST = 1_000


@app.command()
def tail(
    *,
    data: Data = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", "-a", help="Only what this agent says or is told.", show_default=False
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            "-k",
            help="Only this kind, such as task.complete, task, error, undeliverable, agent_lost.",
            show_default=False,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            help="Only this session; that of a run is its id.",
            show_default=False,
        ),
    ] = None,
    correlation: Annotated[
        str | None,
        typer.Option("--correlation", help="Only this conversation.", show_default=False),
    ] = None,
    last: Annotated[
        int, typer.Option("--last", "-n", help="Begin with so many.", min=0, max=_MOST)
    ] = 10,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Go on until Ctrl-C, or stop there.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show the latest messages in the hub, then each new one, until Ctrl-C.

    Each line is who → whom, the kind of message, and what it says. What was refused, could not be
    delivered, and who was lost, is shown too.
    """
    choice = Choice(agent=agent, kind=kind, session=session, correlation=correlation)

    async def work(hub: Hub) -> int:
        printing = _Printing(as_json=as_json)
        for entry in await hub.office.latest(choice, last):
            printing.print(entry)
        if not follow:
            if not printing.reached and last:
                print(_nothing(choice), file=sys.stderr)
            return ExitCode.DONE
        if not hub.is_live:
            print(
                f"The hub does not run, so nothing more will come. Start it: {hub.start}",
                file=sys.stderr,
            )
            return ExitCode.DONE
        after = printing.reached or await _end_of(hub)
        async with closing(hub.office.entries(choice, after=after)) as entries:
            async for entry in entries:
                printing.print(entry)
        return ExitCode.DONE

    at_hub(work, data)


async def _end_of(hub: Hub) -> int:
    """Where the record ends now."""
    newest = await hub.office.latest(Choice(), 1)
    return newest[-1].seq if newest else 0


def _nothing(choice: Choice) -> str:
    if choice == Choice():
        return "Nothing was said yet. Say something: agentcanvas send AGENT TASK-TYPE 'words'"
    return "Nothing like that was said yet."


class _Printing:
    """Prints lines of the record, for a tool or for a person; ``reached`` is the last."""

    def __init__(self, *, as_json: bool) -> None:
        self._console: Console | None = None if as_json else console_here()
        self.reached = 0

    def print(self, entry: Entry) -> None:
        """Print one, at once."""
        self.reached = entry.seq
        if self._console is None:
            print(one_json(entry_json(entry)), flush=True)
        else:
            self._console.print(entry_text(entry), soft_wrap=True)
            self._console.file.flush()
