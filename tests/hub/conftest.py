"""A store in memory and a clock that jumps, for the tests of the hub."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.store import Store
from tests.hub.helpers import a_broker


@pytest.fixture
def clock() -> VirtualClock:
    """Give a clock that jumps when all tasks wait."""
    return VirtualClock()


@pytest.fixture
async def store(clock: VirtualClock) -> AsyncIterator[Store]:
    """Give a store that is gone afterwards."""
    async with await Store.in_memory(clock=clock) as store:
        yield store


@pytest.fixture
async def broker(store: Store, clock: VirtualClock) -> AsyncIterator[EmbeddedBroker]:
    """Give a broker with the default rules and no jitter."""
    async with a_broker(store, clock) as broker:
        yield broker
