"""``agentcanvas token``: who may come into the hub."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agentcanvas.cli.hubs import AsJson, Data, Hub, at_hub
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.terminal import console_here
from agentcanvas.cli.live.words import count
from agentcanvas.cli.offices import misused
from agentcanvas.errors import ResourceError
from agentcanvas.hub.guard import Scope
from agentcanvas.hub.office import TokenLine, TokenOrder

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Create, list and revoke the tokens that let agents into the hub.",
)

NONE = "No token was made yet. Let an agent in with: "


@app.command()
def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            help="The agent's name. With the prefix person: or door: it is for one of these.",
        ),
    ],
    data: Data = None,
    permission: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="What its messages may ask of others; may be given several times, * is all.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="What a door may be used for; may be given several times.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write it to a new file that only you can read, instead of printing it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Create a token and print it, and nothing else. It cannot be shown again.

    Works while the hub runs and while it does not. The agent shows it when it connects; whoever
    has it is the agent. For example: `export AGENTCANVAS_TOKEN=$(agentcanvas token new worker-1)`
    """
    if out is not None and os.path.lexists(out):
        raise misused(f"{out} is there already; name a new file.")

    async def work(hub: Hub) -> int:
        order = TokenOrder(
            name=name, scopes=tuple(scope or ()), permissions=tuple(permission or ())
        )
        made = await hub.office.new_token(order)
        try:
            _hand_out(made.text, out)
        except OSError as wrong:
            if out is None:  # what is still in its buffer would fail once more at the very end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            await hub.office.revoke(made.id)  # nobody has it
            raise ResourceError(
                f"The token could not be handed out ({wrong.strerror}), and was revoked."
            ) from None
        if sys.stdout.isatty() or out is not None:
            print(
                f"This is {one_line(name)}'s, shown this once; take it back with: "
                f"{hub.command('token', 'revoke', made.id)}",
                file=sys.stderr,
            )
        return ExitCode.DONE

    at_hub(work, data, make=True)


def _hand_out(text: str, out: Path | None) -> None:
    if out is None:
        print(text, flush=True)
        return
    with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123  # a descriptor has no Path
        print(text, file=file)


@app.command(name="list")
def list_(
    data: Data = None,
    as_json: AsJson = False,
    all_: Annotated[
        bool, typer.Option("--all", "-a", help="Also those that were revoked.")
    ] = False,
) -> None:
    """List who has tokens; the tokens themselves are not stored and cannot be shown."""

    async def work(hub: Hub) -> int:
        found = [line for line in await hub.office.tokens() if all_ or line.revoked_ms is None]
        if as_json:
            for line in found:
                print(one_json(line))
        elif not found:
            print(NONE + hub.command("token", "new", "NAME"))
        else:
            console_here().print(_table(found, revoked=all_))
        return ExitCode.DONE

    at_hub(work, data)


@app.command()
def revoke(
    token: Annotated[
        str,
        typer.Argument(
            metavar="TOKEN-ID|AGENT",
            help="The id of a token, as `agentcanvas token list` shows it, or a name for all of "
            "its tokens.",
        ),
    ],
    data: Data = None,
) -> None:
    """Revoke a token, and close the connections that use it."""

    async def work(hub: Hub) -> int:
        revoked = await hub.office.revoke(token)
        names = sorted({one_line(line.name) for line in revoked})
        print(f"{count(len(revoked), 'token')} of {', '.join(names)} revoked.")
        left = {line.name for line in await hub.office.tokens() if line.revoked_ms is None}
        for line in revoked:
            if line.name in left:
                print(
                    f"{one_line(line.name)} has another token and may come back with that; revoke "
                    f"all of them: {hub.command('token', 'revoke', line.name)}"
                )
                break
        return ExitCode.DONE

    at_hub(work, data)


@app.command(name="callback-key")
def callback_key(data: Data = None) -> None:
    """Print the public key that the hub's calls to a `callback_url` are signed for.

    A receiver checks them with it, as Standard Webhooks describes (Ed25519, `v1a`).
    """

    async def work(hub: Hub) -> int:
        print(await hub.office.callback_key())
        return ExitCode.DONE

    at_hub(work, data)


def _table(found: list[TokenLine], *, revoked: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("token", no_wrap=True, style="dim")
    table.add_column("name", style="bold")
    table.add_column("kind", no_wrap=True)
    table.add_column("made", no_wrap=True)
    if revoked:
        table.add_column("revoked", no_wrap=True)
    table.add_column("may")
    for line in found:
        may = [*line.scopes, *line.permissions]
        when = [Text(_when(line.revoked_ms), style="red")] if revoked else []
        table.add_row(
            Text(line.id),
            Text(one_line(line.name)),
            Text(line.kind),
            Text(_when(line.made_ms)),
            *when,
            Text(one_line(", ".join(may))),
        )
    return table


def _when(ms: int | None) -> str:
    if ms is None:
        return ""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
