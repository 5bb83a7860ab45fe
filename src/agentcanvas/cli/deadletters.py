"""``agentcanvas deadletters``: what could not be delivered, and what may be done about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.hubs import AsJson, Data, Hub, at_hub
from agentcanvas.cli.live.clean import json_line, one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.said_in_hub import gist, time_of_day
from agentcanvas.cli.live.terminal import console_here, listing
from agentcanvas.cli.live.words import count
from agentcanvas.cli.offices import complain, misused
from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub.office import DeadLine
from agentcanvas.protocol.envelope import from_json

app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    help="List messages that could not be delivered, and resend or delete them.",
)

NONE = "There are no dead letters: whatever was sent arrived, or still waits."
_A_PAGE = 500

Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="NUMBER", help="As they are listed.", show_default=False, min=1),
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@app.callback()
def deadletters(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """List them, when no command is given."""
    if context.invoked_subcommand is None:
        _list(data, as_json=as_json)
    context.obj = data


@app.command(name="list")
def list_(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """List them: what it was, for whom, how often it was tried, and why it was given up."""
    _list(data or context.obj, as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="As it is listed.", min=1)],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show one of them in full."""

    async def work(hub: Hub) -> int:
        letter = await hub.office.dead_letter(number)
        if as_json:
            print(one_json(letter))
            return ExitCode.DONE
        console = console_here()
        console.print(_table([letter]))
        console.print(Text(f"Why: {one_line(letter.reason)}", style="red"), soft_wrap=True)
        for line in msgspec.json.format(bytes(letter.message), indent=2).split(b"\n"):
            print(json_line(line))
        print(f"Send it again: {hub.command('deadletters', 'resend', str(number))}")
        return ExitCode.DONE

    at_hub(work, data or context.obj)


@app.command()
def resend(
    context: typer.Context, numbers: Numbers = None, *, all_: All = False, data: Data = None
) -> None:
    """Deliver some again, with all their attempts."""
    _each(numbers, all_, data or context.obj, "resent", lambda hub: hub.office.resend)


@app.command()
def delete(
    context: typer.Context, numbers: Numbers = None, *, all_: All = False, data: Data = None
) -> None:
    """Delete some for good; a repeat of the same message is still recognised."""
    _each(numbers, all_, data or context.obj, "deleted", lambda hub: hub.office.delete)


def _list(data: Path | None, *, as_json: bool) -> None:
    async def work(hub: Hub) -> int:
        found = await _all(hub)
        if as_json:
            for letter in found:
                print(one_json(letter))
        elif not found:
            print(NONE)
        else:
            console_here().print(_table(found))
            print(f"Look at one: {hub.command('deadletters', 'show', str(found[0].number))}")
        return ExitCode.DONE

    at_hub(work, data)


async def _all(hub: Hub) -> list[DeadLine]:
    found: list[DeadLine] = []
    while page := await hub.office.dead_letters(
        after=found[-1].number if found else 0, limit=_A_PAGE
    ):
        found += page
    return found


def _each(
    numbers: list[int] | None,
    all_: bool,
    data: Path | None,
    done: str,
    doing: Callable[[Hub], Callable[[int], Awaitable[None]]],
) -> None:
    if bool(numbers) == all_:
        raise misused("Say which: one or more numbers, or --all.")

    async def work(hub: Hub) -> int:
        wanted = numbers or [letter.number for letter in await _all(hub)]
        failed = 0
        for number in wanted:
            try:
                await doing(hub)(number)
            except AgentCanvasError as reason:
                failed += 1
                complain(f"{number} was not {done}: {reason}")
        print(f"{count(len(wanted) - failed, 'dead letter')} {done}.")
        return ExitCode.ERROR if failed else ExitCode.DONE

    at_hub(work, data)


def _table(found: list[DeadLine]) -> Table:
    table = listing()
    table.add_column("number", no_wrap=True, justify="right", style="bold")
    table.add_column("when", no_wrap=True)
    table.add_column("from → to", no_wrap=True)
    table.add_column("tries", no_wrap=True, justify="right")
    table.add_column("message", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("why", no_wrap=True, overflow="ellipsis", ratio=1)
    for letter in found:
        envelope = from_json(bytes(letter.message))
        table.add_row(
            Text(str(letter.number)),
            Text(time_of_day(letter.at_ms)),
            Text(f"{one_line(envelope.sender.id, 30)} → {one_line(letter.recipient, 30)}"),
            Text(str(letter.tries)),
            Text(gist(envelope)),
            Text(one_line(letter.reason), style="red"),
        )
    return table
