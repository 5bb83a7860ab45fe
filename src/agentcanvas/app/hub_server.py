"""A hub of its own: a folder, the doors for agents, and nothing of a workspace (D1)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import anyio.to_thread

from agentcanvas import _version
from agentcanvas.app.descriptors import Starvation
from agentcanvas.app.hub import OpenHub, Sealed, open_hub
from agentcanvas.app.server import ServerInfo, new_token, serve_app
from agentcanvas.app.settings import load_settings
from agentcanvas.app.workspace import store_path_in, unmade
from agentcanvas.clock import Clock, SystemClock
from agentcanvas.web.app import build_hub_app

LOOPBACK = "127.0.0.1"
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what a user may ask for


@asynccontextmanager
async def serve_hub(
    folder: Path,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    hosts: Collection[str] = (),
    person: str | None = None,
    sealed: Sealed = Sealed(),  # noqa: B008  # frozen
    clock: Clock | None = None,
    version: str = _version.__version__,
) -> AsyncIterator[tuple[ServerInfo, OpenHub]]:
    """Serve a hub for as long as the block lasts; ``hosts`` are more names it is reached by.

    ``person`` is asked for consent, and ``sealed`` says whose messages have to be.
    """
    await anyio.to_thread.run_sync(_make, folder)
    asyncio.get_running_loop().set_exception_handler(Starvation().handle)
    clock = clock or SystemClock()
    limits = load_settings(folder, environ=os.environ).limits
    token = new_token()
    async with open_hub(
        store_path_in(folder), clock=clock, limits=limits, person=person, sealed=sealed
    ) as hub:
        hub.hub.redactor.know("server token", token)
        app = build_hub_app(
            hub.keeper,
            hub.doors,
            hub.store,
            token=token,
            root=folder,
            version=version,
            clock=clock,
            hosts=[*hosts, *_names_of(host)],
            any_address=host in _EVERYWHERE,
        )
        async with serve_app(
            app,
            folder,
            token=token,
            version=version,
            ports=[port],
            host=host,
            largest_message=limits.message.size_bytes,
        ) as info:
            yield info, hub


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names_of(host: str) -> list[str]:
    """The names under which a host is asked for, beside its number."""
    if host in _EVERYWHERE:
        return [socket.gethostname().lower(), socket.getfqdn().lower()]
    return [f"[{host}]" if ":" in host else host.lower()]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as wrong:
        step = "name a folder that you may write to with --data."
        raise unmade(folder, wrong, step) from None
