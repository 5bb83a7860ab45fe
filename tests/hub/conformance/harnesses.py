"""Brokers to be examined, each with a way to open it, and to open it again after a sudden end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Protocol

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.broker import Broker
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.delivery import DeliveryRules
from agentcanvas.store import Store


class Harness(Protocol):
    """A broker, and what it stands on."""

    def open(self, rules: DeliveryRules) -> AbstractAsyncContextManager[Broker]:
        """Open it on what is there."""
        ...

    async def crash(self) -> None:
        """Go on, from the next ``open``, with what was on disk at this moment."""
        ...


class EmbeddedHarness:
    """The broker on a store in a file; after a crash on a copy of that file."""

    def __init__(self, folder: Path, clock: VirtualClock) -> None:
        self._folder = folder
        self._clock = clock
        self._lives = 0
        self._store: Store | None = None

    @asynccontextmanager
    async def open(self, rules: DeliveryRules) -> AsyncIterator[Broker]:
        """Open it on what is there."""
        async with await Store.open(self._path, clock=self._clock) as store:
            self._store = store
            async with EmbeddedBroker.open(
                store, clock=self._clock, rules=rules, chance=Random(7)
            ) as broker:
                yield broker

    async def crash(self) -> None:
        """Copy what is on disk; whatever the old broker still writes is not in it."""
        assert self._store is not None
        store, self._lives = self._store, self._lives + 1
        await store.backup(self._path)

    @property
    def _path(self) -> Path:
        return self._folder / f"life-{self._lives}.db"


HARNESSES: dict[str, Callable[[Path, VirtualClock], Harness]] = {"embedded": EmbeddedHarness}
