"""A hub in a process of its own, as a user starts it, for tests that need a real one."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from agentcanvas.app.hub import OpenHub
from agentcanvas.app.hub_office import open_hub_office
from agentcanvas.app.hub_server import serve_hub
from agentcanvas.app.server import ServerInfo
from agentcanvas.clock import Clock
from agentcanvas.hub.office import TokenOrder

HUB = "AgentCanvas hub is at "


async def tokens_for(folder: Path, *names: str) -> dict[str, str]:
    """Make tokens in the folder of a hub that does not run."""
    async with open_hub_office(folder, make=True) as (office, _):
        made = await asyncio.gather(*(office.new_token(TokenOrder(name=name)) for name in names))
        return {name: each.text for name, each in zip(names, made, strict=True)}


@contextmanager
def hub_process(
    folder: Path,
    *options: str,
    files: tuple[int, int] | None = None,
    complaints: IO[str] | None = None,
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run ``agentcanvas hub`` until the block ends; give its address.

    ``files`` are the soft and the hard limit on what it may have open.
    """
    set_files = partial(resource.setrlimit, resource.RLIMIT_NOFILE, files) if files else None
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from agentcanvas.cli import main; main()",
            "hub",
            "--port=0",
            f"--data={folder}",
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        preexec_fn=set_files,  # noqa: PLW1509 - it calls nothing but the kernel
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    with child.stdout:
        line = child.stdout.readline()
        try:
            assert line.startswith(HUB), line
            yield line.removeprefix(HUB).strip(), child
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            child.wait()


@asynccontextmanager
async def hub_beside(
    folder: Path, *, clock: Clock | None = None
) -> AsyncIterator[tuple[ServerInfo, OpenHub]]:
    """Serve a hub in this process, on a free port."""
    async with serve_hub(folder, port=0, clock=clock) as served:
        yield served


def ws(url: str) -> str:
    """The address of the WebSocket door's server."""
    return url.replace("http://", "ws://", 1)
