"""Getting the office of a hub: this process becomes it for a moment, or asks the one that is (D1).

A hub is known by the folder that it keeps its files in: a workspace's own, or that of
``agentcanvas hub --data``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from agentcanvas.app.hub import OpenHub, open_hub
from agentcanvas.app.office import PROJECTIONS
from agentcanvas.app.remote_hub import RemoteHub
from agentcanvas.app.server import ServerInfo, find_server_in
from agentcanvas.app.settings import load_settings
from agentcanvas.app.settings_here import settings_here
from agentcanvas.app.workspace import FOLDER, store_path_in, unmade
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.errors import ResourceError, StoreBusy
from agentcanvas.hub.office import HubOffice

_TRIES = 30
_PAUSE_S = 0.1


class Reached(NamedTuple):
    """A hub's office; ``is_live`` says that a server has it, so that more may happen there."""

    office: HubOffice
    is_live: bool


@asynccontextmanager
async def open_hub_office(folder: Path, *, make: bool = False) -> AsyncIterator[Reached]:
    """The office of the hub in a folder; with ``make`` a folder that is not there is made."""
    async with AsyncExitStack() as stack:
        holder = await find_server_in(folder)
        if holder is None:
            _prepare(folder, make=make)
            clock = SystemClock()
            try:
                hub = await stack.enter_async_context(_open_here(folder, clock))
            except StoreBusy:
                holder = await _wait_for_server(folder, clock)
            else:
                yield Reached(hub.keeper, is_live=False)
                return
        yield Reached(await stack.enter_async_context(RemoteHub(holder)), is_live=True)


def _open_here(folder: Path, clock: Clock) -> AbstractAsyncContextManager[OpenHub]:
    is_workspace = folder.name == FOLDER
    # The folder of a hub by itself is one that its user has named: it came with no repository.
    settings = (
        settings_here(folder.parent, os.environ)
        if is_workspace
        else load_settings(folder, environ=os.environ)
    )
    return open_hub(
        store_path_in(folder),
        clock=clock,
        limits=settings.limits,
        projections=PROJECTIONS if is_workspace else (),
        calls_back=False,
    )


def _prepare(folder: Path, *, make: bool) -> None:
    if store_path_in(folder).exists():
        return
    if not make:
        raise ResourceError(
            f"There is no hub in {folder}. Start one: agentcanvas hub --data {folder}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as wrong:
        raise unmade(folder, wrong, "name a folder that you may write to.") from None


async def _wait_for_server(folder: Path, clock: Clock) -> ServerInfo:
    """The server of a process that has just taken the folder and is about to say where it is."""
    for _ in range(_TRIES):
        found = await find_server_in(folder)
        if found is not None:
            return found
        await clock.sleep(_PAUSE_S)
    raise StoreBusy(
        f"Another agentcanvas works in {folder} and cannot be reached; wait for its end, or stop "
        "it."
    )
