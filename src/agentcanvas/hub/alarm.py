"""Waiting for something or for a time, whichever comes first, on any ``Clock``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from agentcanvas.clock import Clock, SystemClock


class Timer(Protocol):
    """Something that is going to happen, unless it is called off."""

    def cancel(self) -> object:
        """Call it off."""
        ...


def ring_at(clock: Clock, deadline: float, ring: Callable[[], object]) -> Timer:
    """Call ``ring`` on the event loop at a time; most are called off long before.

    A limit that is never reached then costs an entry in a heap, where a task that waits for it
    would be made, cancelled and awaited for each message.
    """
    if isinstance(clock, SystemClock):  # its seconds pass as those of the loop's own timers do
        return asyncio.get_running_loop().call_later(deadline - clock.monotonic(), ring)
    waiting = asyncio.ensure_future(clock.sleep_until(deadline))
    waiting.add_done_callback(lambda done: None if done.cancelled() else ring())
    return waiting


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
