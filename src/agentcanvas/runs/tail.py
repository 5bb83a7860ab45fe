"""The newest events of many streams, read once for everybody who follows one.

Each commit would otherwise wake each follower to a read of its own. The first who wants to know
waits a moment and reads for all who want to know by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from agentcanvas.clock import Clock
from agentcanvas.store import Event, Snapshot, Store

_PAGE = 1000
_MOMENT_S = 0.02
"""How long after a read the next may be: nobody sees the difference, and it serves all of it."""


class Page(msgspec.Struct, frozen=True):
    """Events of a stream; ``head`` is the number up to which they are all."""

    rows: Sequence[Event]
    head: int
    is_full: bool


class _Wanted:
    def __init__(self, stream: str, after: int, head: int) -> None:
        self.stream = stream
        self.after = after
        self.head = head
        self.found: asyncio.Future[Page] = asyncio.get_running_loop().create_future()

    def give(self, page: Page) -> None:
        if not self.found.done():
            self.found.set_result(page)


class Tail:
    """The end of a store, as those see it who follow it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._wanted: list[_Wanted] = []
        self._last_read = float("-inf")

    async def page(self, stream: str, after: int) -> Page:
        """The next events of a stream, as they stand."""
        head = self._store.head
        return _page(await self._store.events(after=after, stream=stream, limit=_PAGE), head)

    async def beyond(self, stream: str, after: int, head: int) -> Page:
        """The same, maybe none, once there is anything in the store beyond ``head``."""
        await self._store.wait_beyond(head)
        mine = _Wanted(stream, after, head)
        self._wanted.append(mine)
        if len(self._wanted) == 1:
            await self._read_for_all()
        return await mine.found

    async def _read_for_all(self) -> None:
        wanted: Sequence[_Wanted] = ()
        try:
            try:
                await self._pause()
            finally:
                wanted, self._wanted = self._wanted, []
            head = self._store.head
            pages = await self._store.read(lambda look: _pages(look, wanted))
        except BaseException:
            for each in wanted:  # they look again, and the first of them reads
                each.give(Page((), each.head, is_full=False))
            raise
        for each, rows in zip(wanted, pages, strict=True):
            each.give(_page(rows, head))

    async def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        pause = self._last_read + _MOMENT_S - loop.time()
        if pause > 0:
            self._clock.hold()  # a reader that takes its time must not make time pass
            try:
                await asyncio.sleep(pause)
            finally:
                self._clock.release()
        self._last_read = loop.time()


def _pages(look: Snapshot, wanted: Sequence[_Wanted]) -> list[list[Event]]:
    return [look.events(after=each.after, stream=each.stream, limit=_PAGE) for each in wanted]


def _page(rows: Sequence[Event], head: int) -> Page:
    is_full = len(rows) == _PAGE
    return Page(rows, rows[-1].seq if is_full else head, is_full)
