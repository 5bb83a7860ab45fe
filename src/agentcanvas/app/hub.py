"""Putting a hub together on a file: store, broker, hub, tokens, the office that keeps them,
and the doors for agents of other processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from agentcanvas.app import descriptors
from agentcanvas.app.calling import caller
from agentcanvas.app.secrets import secrets_in
from agentcanvas.clock import Clock
from agentcanvas.hub.background import beside
from agentcanvas.hub.blobs import Blobs
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.callbacks import Callbacks
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.hub.doors import SealDoor
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.keeper import Keeper
from agentcanvas.hub.redaction import Redactor
from agentcanvas.hub.tokens import Tokens
from agentcanvas.protocol.limits import Limits
from agentcanvas.protocol.seal import Demand, Keyring, ReplayGuard, SealPolicy
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


class Sealed(NamedTuple):
    """Agents who have to sign, and those who have to encrypt, whatever holds for the others."""

    signing: Collection[str] = ()
    encrypting: Collection[str] = ()


_NOBODY = Sealed()


@asynccontextmanager
async def open_hub(
    path: Path,
    *,
    clock: Clock,
    limits: Limits,
    projections: Sequence[Projection] = (),
    calls_back: bool = True,
    person: str | None = None,
    sealed: Sealed = _NOBODY,
) -> AsyncIterator[OpenHub]:
    """Be the one owner of the store at ``path``, and of the hub in it, until the block ends.

    Without ``calls_back`` nobody is told that a task has ended: for an owner of a moment only.
    ``person`` is asked for consent (C5); without one nothing waits for it. ``sealed`` are agents
    whose messages have to be.
    """
    redactor = Redactor(secrets_in(os.environ))
    async with (
        await Store.open(path, clock=clock, projections=projections) as store,
        EmbeddedBroker.open(store, clock=clock, rules=DeliveryRules.of(limits)) as broker,
        Hub.open(
            broker, store, clock=clock, limits=limits, redactor=redactor, person=person
        ) as hub,
    ):
        tokens = Tokens(store, clock)
        await tokens.load()
        keeper = Keeper(hub, broker, store, tokens, clock)
        blobs = Blobs(path.parent / "blobs", limits.blob)
        most = max(1, descriptors.room() - descriptors.RESERVED)
        doors = Doors(hub, tokens, clock, _seal(limits, sealed), blobs, most_connections=most)
        opened = OpenHub(store, broker, hub, tokens, keeper, doors, clock, limits)
        if not calls_back:
            yield opened
            return
        async with (
            caller(limits.callback.timeout_s) as call,
            beside(Callbacks(store, clock, limits, call).run),
        ):
            yield opened


def _seal(limits: Limits, sealed: Sealed) -> SealDoor:
    return SealDoor(
        Keyring(),
        ReplayGuard(limits.replay.window_s * 1000),
        signatures=_policy(limits.seal.signatures, sealed.signing),
        encryption=_policy(limits.seal.encryption, sealed.encrypting),
    )


def _policy(default: str, agents: Collection[str]) -> SealPolicy:
    return SealPolicy(Demand(default), dict.fromkeys(agents, Demand.REQUIRE))
