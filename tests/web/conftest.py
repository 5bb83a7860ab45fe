"""A real server on a free port, over a real store; what it does is told by a fake office."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from agentcanvas.app.server import ServerInfo, serve_beside
from agentcanvas.clock import VirtualClock
from agentcanvas.store import Store
from tests.web.office import FakeOffice


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".agentcanvas").mkdir()
    return tmp_path


@pytest.fixture
def clock() -> VirtualClock:
    """Moves only when told: the sockets are real."""
    return VirtualClock(jumps=False)


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with await Store.open(root / ".agentcanvas" / "agentcanvas.db") as store:
        yield store


@pytest.fixture
def office(store: Store) -> FakeOffice:
    return FakeOffice(store)


@pytest.fixture
async def server(
    office: FakeOffice, store: Store, root: Path, clock: VirtualClock
) -> AsyncIterator[ServerInfo]:
    async with serve_beside(office, store, root, port=0, static=None, clock=clock) as info:
        yield info


@pytest.fixture
async def client(server: ServerInfo) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=server.url,
        headers={"authorization": f"Bearer {server.token}"},
        trust_env=False,
    ) as client:
        yield client
