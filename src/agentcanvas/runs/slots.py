"""Who may work now: so many at once, and one at a time in an agent's sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Slots:
    """The places of one run.

    Whoever waits for its agent holds no slot. Of those who could begin, the highest rank does,
    then whoever came first; nobody waits while they could work.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._busy: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._arrivals = 0

    @asynccontextmanager
    async def hold(self, agent: str | None = None, *, rank: int = 0) -> AsyncIterator[None]:
        """Wait for a slot, and for ``agent`` to be free if one is named."""
        self._arrivals += 1
        mine = _Waiting(-rank, self._arrivals, agent, anyio.Event())
        self._waiting.append(mine)
        self._waiting.sort(key=lambda each: (each.order, each.arrival))
        self._let_in()
        # Entering without a wait must not give up this turn of the loop: what was settled just
        # before then shares its commit with what begins now.
        if not mine.inside:
            try:
                await mine.called.wait()
            except BaseException:
                self._leave(mine)
                raise
        try:
            yield
        finally:
            self._leave(mine)

    def _let_in(self) -> None:
        for each in list(self._waiting):
            if not self._free:
                return
            if each.agent is None or each.agent not in self._busy:
                self._waiting.remove(each)
                self._free -= 1
                if each.agent is not None:
                    self._busy.add(each.agent)
                each.inside = True
                each.called.set()

    def _leave(self, each: _Waiting) -> None:
        if not each.inside:
            self._waiting.remove(each)
            return
        self._free += 1
        if each.agent is not None:
            self._busy.discard(each.agent)
        self._let_in()


class _Waiting:
    def __init__(self, order: int, arrival: int, agent: str | None, called: anyio.Event) -> None:
        self.order = order
        self.arrival = arrival
        self.agent = agent
        self.called = called
        self.inside = False
