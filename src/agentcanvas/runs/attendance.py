"""Who is at work and who is waited for: with nobody but people left, a run is parked (D25)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from agentcanvas.clock import Clock
from agentcanvas.protocol.person import PersonAsk

_SETTLING_S = 0.05
"""Between two steps of a pattern nobody is at work for a moment; that is no waiting."""


class Attendance:
    """Counts what is under way in one run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._busy = 0
        self._changed = anyio.Event()
        self.people: dict[str, PersonAsk] = {}
        self.limits: dict[str, str] = {}
        """What is waited for that comes by itself."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Something is under way that needs no person."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if self.people or self.limits:  # else nothing can have come to a rest
                self._stir()

    @contextmanager
    def waiting_for(self, ask: PersonAsk) -> Iterator[None]:
        """What was at work waits for a person."""
        self.people[ask.ask_id] = ask
        self._busy -= 1
        self._stir()
        try:
            yield
        finally:
            del self.people[ask.ask_id]
            self._busy += 1
            self._stir()

    @contextmanager
    def held_up(self, key: str, what: str) -> Iterator[None]:
        """What was at work waits for a moment that comes by itself."""
        self.limits[key] = what
        self._busy -= 1
        self._stir()
        try:
            yield
        finally:
            del self.limits[key]
            self._busy += 1
            self._stir()

    @property
    def is_held_up(self) -> bool:
        """Whether nothing can go on before a moment has come."""
        return self._busy == 0 and bool(self.limits)

    async def changed(self) -> None:
        """Return when somebody begins to wait, or goes on."""
        await self._changed.wait()

    @property
    def is_parked(self) -> bool:
        """Whether nothing can go on before a person answers."""
        return self._busy == 0 and bool(self.people) and not self.limits

    async def parked(self) -> None:
        """Return when nothing can go on before a person answers."""
        while True:
            while not self.is_parked:
                await self._changed.wait()
            await self._clock.sleep(_SETTLING_S)
            if self.is_parked:
                return

    async def awake(self) -> None:
        """Return when something is under way again."""
        while self.is_parked:
            await self._changed.wait()

    def _stir(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
