"""Thousands of agents in one process, each a socket and little else; and a look at their hub."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import httpx

from bench.network.plain_socket import PlainSocket, connected

_AT_ONCE = 100
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") / 1024


class Member:
    """An agent that keeps what it hears."""

    def __init__(self, name: str, socket: PlainSocket) -> None:
        self.name = name
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self._stirred = asyncio.Event()
        socket.heard = self._hear

    def _hear(self, frames: list[bytes]) -> None:
        self.heard += map(json.loads, frames)
        self._stirred.set()

    def say(self, *said: object) -> None:
        """Send frames, all in one write."""
        self.socket.send(json.dumps(each).encode() for each in said)

    async def hear(self, number: int = 1) -> list[dict[str, Any]]:
        """Wait for so many frames; return them."""
        while len(self.heard) < number:
            self._stirred.clear()
            await self._stirred.wait()
        found, self.heard = self.heard[:number], self.heard[number:]
        return found


async def join(url: str, agent: str, token: str, query: str = "") -> Member:
    """Connect as an agent."""
    return Member(agent, await connected(url, f"/agent/ws?agent_id={agent}{query}", token))


async def join_all(url: str, tokens: dict[str, str], names: Iterable[str]) -> list[Member]:
    """Connect as many, some at a time."""
    room = anyio.CapacityLimiter(_AT_ONCE)

    async def one(name: str) -> Member:
        async with room:
            return await join(url, name, tokens[name])

    return list(await asyncio.gather(*map(one, names)))


class Look:
    """What can be seen of a hub's process from outside."""

    def __init__(self, folder: Path, url: str) -> None:
        info = json.loads((folder / "server.json").read_text())
        self._url, self._token, self._pid = url, info["token"], info["pid"]

    @property
    def resident_kb(self) -> float:
        """How much memory it holds."""
        return int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * _PAGE_KB

    @property
    def files(self) -> int:
        """How many files and sockets it has open."""
        return len(list(Path(f"/proc/{self._pid}/fd").iterdir()))

    async def metric(self, name: str) -> int:
        """Ask it for a number."""
        headers = {"authorization": f"Bearer {self._token}"}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            answer = await client.get(f"{self._url}/metrics", headers=headers)
        found = re.search(rf"^{re.escape(name)} ([0-9.]+)$", answer.text, re.MULTILINE)
        assert found, answer.text
        return int(float(found[1]))

    async def wait_for(self, name: str, value: int) -> None:
        """Ask until it is so: nothing outside a process tells when its connections have ended."""
        with anyio.fail_after(60):
            while await self.metric(name) != value:
                pass
