"""Waiting for something or for a time, whichever comes first, on any ``Clock``."""

from __future__ import annotations

import asyncio

import anyio
from anyio.abc import TaskGroup

from agentcanvas.clock import Clock


async def happened_by(event: asyncio.Event, clock: Clock, deadline: float | None) -> bool:
    """Wait for ``event``, no longer than until ``deadline``; tell whether it has happened."""
    if deadline is None:
        await event.wait()
    elif not event.is_set():
        async with anyio.create_task_group() as group:
            group.start_soon(_give_up_at, deadline, clock, group)
            await event.wait()
            group.cancel_scope.cancel()
    return event.is_set()


async def _give_up_at(deadline: float, clock: Clock, group: TaskGroup) -> None:
    await clock.sleep_until(deadline)
    group.cancel_scope.cancel()


class Alarm:
    """Wakes one task at the earliest of the times it was asked for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadline: float | None = None
        self._earlier = asyncio.Event()

    def ring_by(self, deadline: float | None) -> None:
        """Ring no later than this."""
        if deadline is not None and (self._deadline is None or deadline < self._deadline):
            self._deadline = deadline
            self._earlier.set()

    async def wait(self) -> float:
        """Return when it rings, with the time; it has to be asked again for another."""
        while self._deadline is None or self._clock.monotonic() < self._deadline:
            self._earlier.clear()
            await happened_by(self._earlier, self._clock, self._deadline)
        self._deadline = None
        return self._clock.monotonic()
