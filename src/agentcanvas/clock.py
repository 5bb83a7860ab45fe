"""Time, in one place (D5): no other module imports ``time``.

Whatever waits or dates something takes a ``Clock``. ``SystemClock`` is the machine's;
``VirtualClock`` is its twin for tests: it stands still while anything can run, and jumps to the
earliest sleeper when all tasks wait, so that a test of an hour takes no time and gives the same
order every time.

What time is used for (deadlines, heartbeats, retention) belongs to those who ask.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

import anyio
import anyio.lowlevel

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(ms: int) -> str:
    """Write milliseconds since the epoch as ``2026-01-31T09:30:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock(Protocol):
    """Where the time comes from.

    The wall clock dates things and may be set at any moment; durations and deadlines are measured
    with the monotonic one, in seconds.
    """

    def now_ms(self) -> int:
        """Tell the wall clock, in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Tell the seconds since some fixed moment; never goes back."""
        ...

    async def sleep_until(self, deadline: float) -> None:
        """Return as soon as ``monotonic()`` has reached ``deadline``."""
        ...

    def hold(self) -> None:
        """Say that a thread works on the event loop's behalf, until ``release``.

        The loop looks idle meanwhile, but is not: a virtual clock must not jump. Calls nest.
        """

    def release(self) -> None:
        """Say, on the event loop, that the work of one ``hold`` is done."""

    def now(self) -> str:
        """Tell the wall clock as RFC 3339 text, UTC, with milliseconds."""
        return rfc3339(self.now_ms())

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""
        await self.sleep_until(self.monotonic() + seconds)


class SystemClock(Clock):
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Tell the wall clock, in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Tell the seconds since some fixed moment; never goes back."""
        return time.monotonic()

    async def sleep_until(self, deadline: float) -> None:
        """Return as soon as ``monotonic()`` has reached ``deadline``."""
        await anyio.lowlevel.checkpoint()
        # Event loops round timers to their clock's resolution and may wake a little too early.
        while (left := deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - time is what it awaits
            await anyio.sleep(left)

    def hold(self) -> None:
        """Need nothing: real time passes for threads too."""

    def release(self) -> None:
        """Need nothing: real time passes for threads too."""


class VirtualClock(Clock):
    """A clock for tests, on one asyncio event loop.

    - It jumps by itself to the earliest sleeper when no task can run and nobody holds it; with
      ``jumps=False`` time moves only by ``advance``.
    - ``advance`` wakes every sleeper on the way, in order, and lets each run until it waits again.
    - ``set_wall`` sets the wall clock apart, as a user or NTP does; ``monotonic`` takes no notice.

    Waiting that does not go through this clock does not keep it from jumping: real sockets and
    processes are reached in real time, so drive such tests with ``jumps=False`` and ``advance``.
    """

    # A socket written in one turn of the loop is readable in the next; a third turn that finds
    # nothing means that nothing is under way inside this process.
    _QUIET_TURNS = 3

    def __init__(self, *, start_ms: int = 1_767_225_600_000, jumps: bool = True) -> None:
        self._elapsed = 0.0
        self._wall_ms = start_ms
        self._jumps = jumps
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrival = itertools.count()
        self._holds = 0
        self._released: asyncio.Future[None] | None = None
        self._advancing = False
        self._watched: asyncio.AbstractEventLoop | None = None
        self._quiet_turns = 0

    def now_ms(self) -> int:
        """Tell the wall clock, in milliseconds since the epoch."""
        return self._wall_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        """Tell the virtual seconds since this clock was made."""
        return self._elapsed

    @property
    def sleeping(self) -> int:
        """How many tasks sleep on this clock."""
        return sum(not waiter.done() for _, _, waiter in self._sleepers)

    async def sleep_until(self, deadline: float) -> None:
        """Return as soon as ``monotonic()`` has reached ``deadline``."""
        if deadline <= self._elapsed:
            await anyio.lowlevel.checkpoint()
            return
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (deadline, next(self._arrival), waiter))
        self._watch_from_now()
        await waiter

    def hold(self) -> None:
        """Stand still until ``release``: a thread works on the event loop's behalf."""
        self._holds += 1

    def release(self) -> None:
        """Take back one ``hold``."""
        assert self._holds, "release() without hold()"
        self._holds -= 1
        if self._holds:
            return
        if self._released is not None and not self._released.done():
            self._released.set_result(None)
        if self._sleepers:
            self._watch_from_now()

    async def advance(self, seconds: float) -> None:
        """Move on by ``seconds``, waking every sleeper on the way at its own moment."""
        assert seconds >= 0, "time does not go back; set_wall() sets the wall clock"
        assert not self._advancing, "another task is advancing this clock"
        target = self._elapsed + seconds
        self._advancing = True
        try:
            await self._until_quiet()
            while (deadline := self._next_deadline()) is not None and deadline <= target:
                self._jump_to(deadline)
                await self._until_quiet()
            self._elapsed = target
        finally:
            self._advancing = False
            self._watch_from_now()

    def set_wall(self, ms: int) -> None:
        """Set the wall clock; deadlines stay where they are."""
        self._wall_ms = ms - round(self._elapsed * 1000)

    def _next_deadline(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():  # cancelled meanwhile
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _jump_to(self, deadline: float) -> None:
        self._elapsed = deadline
        while self._sleepers and self._sleepers[0][0] <= deadline:
            _, _, waiter = heapq.heappop(self._sleepers)
            if not waiter.done():
                waiter.set_result(None)

    def _watch_from_now(self) -> None:
        loop = asyncio.get_running_loop()
        if self._jumps and self._watched is not loop:
            self._watched = loop
            self._quiet_turns = 0
            loop.call_soon(self._watch, loop)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take a turn of the loop: jump if all was quiet long enough, else look again next turn.

        A callback, not a task: nobody has to own it, and a loop may close around it.
        """
        deadline = self._next_deadline()
        if deadline is None or self._holds or self._advancing:
            self._watched = None
            return
        self._quiet_turns = 0 if _others_are_ready(loop) else self._quiet_turns + 1
        if self._quiet_turns == self._QUIET_TURNS:
            self._quiet_turns = 0
            self._jump_to(deadline)
        loop.call_soon(self._watch, loop)

    async def _until_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        quiet_turns = 0
        while quiet_turns < self._QUIET_TURNS:
            await asyncio.sleep(0)
            if self._holds:
                self._released = loop.create_future()
                await self._released
            quiet_turns = 0 if _others_are_ready(loop) else quiet_turns + 1


def _others_are_ready(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether anything but the caller could run now.

    asyncio has no public word for this; its own loops keep what can run in ``_ready``.
    """
    ready = getattr(loop, "_ready", None)
    if ready is None:
        raise RuntimeError(
            "VirtualClock needs asyncio's own event loop, not another implementation"
        )
    return bool(ready)
