"""Putting a hub together on a file: store, broker, hub, tokens, the office that keeps them,
and the doors for agents of other processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from agentcanvas.app.calling import caller
from agentcanvas.clock import Clock
from agentcanvas.hub.background import beside
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.callbacks import Callbacks
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
    calls_back: bool = True,
) -> AsyncIterator[OpenHub]:
    """Be the one owner of the store at ``path``, and of the hub in it, until the block ends.

    Without ``calls_back`` nobody is told that a task has ended: for an owner of a moment only.
    """
    async with (
        await Store.open(path, clock=clock, projections=projections) as store,
        EmbeddedBroker.open(store, clock=clock, rules=DeliveryRules.of(limits)) as broker,
        Hub.open(broker, store, clock=clock, limits=limits) as hub,
    ):
        tokens = Tokens(store, clock)
        await tokens.load()
        keeper = Keeper(hub, broker, store, tokens, clock)
        doors = Doors(hub, tokens, clock)
        opened = OpenHub(store, broker, hub, tokens, keeper, doors, clock, limits)
        if not calls_back:
            yield opened
            return
        async with (
            caller(limits.callback.timeout_s) as call,
            beside(Callbacks(store, clock, limits, call).run),
        ):
            yield opened
