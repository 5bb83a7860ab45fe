"""A store on disk and its twin in memory: what both promise is tested on both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agentcanvas.db"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=["file", "memory"])
async def store(
    request: pytest.FixtureRequest, path: Path, clock: VirtualClock
) -> AsyncIterator[Store]:
    opened = Store.open(path, clock=clock) if request.param == "file" else None
    async with await (opened or Store.in_memory(clock=clock)) as store:
        yield store
