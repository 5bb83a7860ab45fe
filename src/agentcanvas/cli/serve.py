"""``agentcanvas serve``: hold this workspace and show it in the browser (D1, D44)."""

from __future__ import annotations

import importlib
import signal
import webbrowser
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, NoReturn

import anyio
import anyio.to_thread
import typer

from agentcanvas.app.server import PORT, ServerInfo, Use, find_server, read_info
from agentcanvas.cli.here import root_here
from agentcanvas.cli.offices import finish, tell_of_settings
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import ResourceError
from agentcanvas.runs.office import Office
from agentcanvas.runs.state import RunStatus

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_LOOK_EVERY_S = 30.0


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
        bool, typer.Option("--resume", help="Resume runs that were cut off.")
    ] = False,
    idle_minutes: Annotated[
        float | None,
        typer.Option(min=0, help="End when nobody has asked and nothing has run for so long."),
    ] = None,
) -> None:
    """Open this workspace in the browser and serve it until Ctrl-C, on this machine only.

    When a server has the workspace already, its link is opened instead.
    """
    serve_here(port=port, in_browser=not no_browser, resume=resume, idle_minutes=idle_minutes)


def serve_here(
    *,
    port: int = PORT,
    in_browser: bool = True,
    resume: bool = False,
    idle_minutes: float | None = None,
) -> NoReturn:
    """Hold the workspace of this folder until there is an end."""

    async def main() -> int:
        root = root_here()
        running = await find_server(root)
        if running is not None:
            print(f"Process {running.pid} serves this workspace already.")
            await _show(running, in_browser=in_browser)
            return 0
        tell_of_settings(root)
        clock = SystemClock()
        use = Use(clock)
        async with _open_office(root, port=port, resume=resume, use=use) as office:
            info = read_info(root)
            if info is None:
                raise ResourceError(f"The server of {root} did not say where it listens.")
            with anyio.open_signal_receiver(signal.SIGTERM) as told_to_end:
                await _show(info, in_browser=in_browser)
                print("Ctrl-C ends it; runs that are under way can be resumed.", flush=True)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_until_told, told_to_end, tasks.cancel_scope)
                    if idle_minutes is not None:
                        await _until_idle(office, use, clock, idle_minutes * 60)
                        tasks.cancel_scope.cancel()
        return 0

    finish(main)


async def _until_told(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()


async def _until_idle(office: Office, use: Use, clock: Clock, seconds: float) -> None:
    """Return when nothing runs and nobody has asked for so long; what waits for a person waits."""
    while True:
        if any(run.status is RunStatus.RUNNING for run in await office.runs()):
            use.note()
        if use.idle_s >= seconds:
            return
        await clock.sleep(min(_LOOK_EVERY_S, max(seconds - use.idle_s, 0.01)))


def _open_office(
    root: Path, *, port: int, resume: bool, use: Use
) -> AbstractAsyncContextManager[Office]:
    # Imported when it is needed: the engine is most of the product, and --help needs none of it.
    module = importlib.import_module("agentcanvas.app.office")
    opened: AbstractAsyncContextManager[Office] = module.open_office(
        root, serve=True, port=port, resume=resume, use=use
    )
    return opened


async def _show(info: ServerInfo, *, in_browser: bool) -> None:
    print(f"AgentCanvas is at {info.link}", flush=True)
    if in_browser:
        await anyio.to_thread.run_sync(webbrowser.open, info.link)
