"""``agentcanvas hub``: a hub for agents of any language, without a workspace (D1)."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentcanvas.app.descriptors import raise_limit
from agentcanvas.app.hub import Sealed
from agentcanvas.app.hub_server import LOOPBACK, is_loopback, serve_hub
from agentcanvas.app.workspace import user_data_folder
from agentcanvas.cli.here import folder_here
from agentcanvas.cli.offices import complain, finish
from agentcanvas.hub import frames

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

PORT = 7718


@app.command()
def hub(
    host: Annotated[
        str, typer.Option(help="Where to listen; another address than loopback opens it to others.")
    ] = LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port, and no other; 0 for any free one.")
    ] = PORT,
    *,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder it keeps its messages in; by default one of your own."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who is asked before a task of high priority is delivered; nobody if not given.",
        ),
    ] = None,
    signing: Annotated[
        list[str] | None,
        typer.Option("--require-signature", metavar="AGENT", help="Who has to sign every message."),
    ] = None,
    encrypting: Annotated[
        list[str] | None,
        typer.Option("--require-encryption", metavar="AGENT", help="Who has to encrypt payloads."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name agents reach it by; may be given several times."),
    ] = None,
) -> None:
    """Run a hub until Ctrl-C: agents connect over WebSocket or HTTP, each with a token of its own.

    It is ready when it prints its address.
    """

    async def main() -> int:
        raise_limit()
        folder = (folder_here() / (data or user_data_folder(os.environ) / "hub")).resolve()
        names = [name.lower() for name in allow_host or ()]
        sealed = Sealed(signing or (), encrypting or ())
        serving = serve_hub(folder, host=host, port=port, hosts=names, person=person, sealed=sealed)
        async with serving as (info, _):
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as told_to_end:
                print(f"AgentCanvas hub is at {info.url}", flush=True)
                socket = info.url.replace("http://", "ws://", 1) + frames.PATH
                print(f"Agents connect to {socket}; a token for one:", flush=True)
                print(f"  agentcanvas token new NAME --data {shlex.quote(str(folder))}", flush=True)
                if not is_loopback(host):
                    complain(
                        f"{host} can be reached by other machines, and what is said there is not "
                        "encrypted; put a proxy with TLS before it."
                    )
                await anext(told_to_end)
        return 0

    finish(main)
