"""Every test of this folder runs over every broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.broker import Broker
from agentcanvas.hub.delivery import DeliveryRules
from tests.hub.conformance.harnesses import HARNESSES, Harness

STEADY = DeliveryRules(jitter=0)


@pytest.fixture(params=sorted(HARNESSES))
def harness(request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock) -> Harness:
    """Give a broker that can be opened, and opened again."""
    return HARNESSES[request.param](tmp_path, clock)


@pytest.fixture
async def broker(harness: Harness) -> AsyncIterator[Broker]:
    """Give an open broker with the default rules and no jitter."""
    async with harness.open(STEADY) as broker:
        yield broker
