"""``agentcanvas serve``: hold this workspace and show it in the browser (D1, D44)."""

from __future__ import annotations

import importlib
import signal
import webbrowser
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
import typer

from agentcanvas.app.server import PORT, ServerInfo, find_server, read_info
from agentcanvas.cli.offices import finish, root_here
from agentcanvas.errors import ResourceError
from agentcanvas.runs.office import Office

app = typer.Typer()


@app.command()
def serve(
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Where to listen, or the next free one; 0 for any."),
    ] = PORT,
    *,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link, but do not open it.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with runs that were cut off.")
    ] = False,
) -> None:
    """Serve this workspace until Ctrl-C: its runs, its API and its page, on this machine only.

    When a server has the workspace already, its link is opened instead.
    """

    async def main() -> int:
        root = root_here()
        running = await find_server(root)
        if running is not None:
            print(f"Process {running.pid} serves this workspace already.")
            await _show(running, in_browser=not no_browser)
            return 0
        async with _open_office(root, port=port, resume=resume):
            info = read_info(root)
            if info is None:
                raise ResourceError(f"The server of {root} did not say where it listens.")
            with anyio.open_signal_receiver(signal.SIGTERM) as told_to_end:
                await _show(info, in_browser=not no_browser)
                print("Ctrl-C ends it; runs that are under way can be resumed.", flush=True)
                await anext(aiter(told_to_end))
        return 0

    finish(main)


def _open_office(root: Path, *, port: int, resume: bool) -> AbstractAsyncContextManager[Office]:
    # Imported when it is needed: the engine is most of the product, and --help needs none of it.
    module = importlib.import_module("agentcanvas.app.office")
    opened: AbstractAsyncContextManager[Office] = module.open_office(
        root, serve=True, port=port, resume=resume
    )
    return opened


async def _show(info: ServerInfo, *, in_browser: bool) -> None:
    print(f"AgentCanvas is at {info.link}", flush=True)
    if in_browser:
        await anyio.to_thread.run_sync(webbrowser.open, info.link)
