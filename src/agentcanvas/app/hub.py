"""Putting a hub together on a file: store, broker, hub, tokens, the office that keeps them,
and the doors for agents of other processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from agentcanvas.clock import Clock
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.keeper import Keeper
from agentcanvas.hub.tokens import Tokens
from agentcanvas.protocol.limits import Limits
from agentcanvas.store import Projection, Store
from agentcanvas.web.doors import Doors


class OpenHub(NamedTuple):
    """A hub at work, with all that stands behind it."""

    store: Store
    broker: EmbeddedBroker
    hub: Hub
    tokens: Tokens
    keeper: Keeper
    doors: Doors
    clock: Clock
    limits: Limits


@asynccontextmanager
async def open_hub(
    path: Path,
    *,
    clock: Clock,
    limits: Limits,
    projections: Sequence[Projection] = (),
) -> AsyncIterator[OpenHub]:
    """Be the one owner of the store at ``path``, and of the hub in it, until the block ends."""
    async with (
        await Store.open(path, clock=clock, projections=projections) as store,
        EmbeddedBroker.open(store, clock=clock, rules=DeliveryRules.of(limits)) as broker,
        Hub.open(broker, store, clock=clock, limits=limits) as hub,
    ):
        tokens = Tokens(store, clock)
        await tokens.load()
        keeper = Keeper(hub, broker, store, tokens, clock)
        doors = Doors(hub, tokens, clock)
        yield OpenHub(store, broker, hub, tokens, keeper, doors, clock, limits)
