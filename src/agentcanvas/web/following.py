"""From where on a reader wants to know, and the stream that tells it (D1).

A place in the feed wins over a number, since it also says in which history the number counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Protocol, TypeVar

from agentcanvas.clock import Clock
from agentcanvas.errors import ValidationError
from agentcanvas.web.feed import Feed
from agentcanvas.web.stream import EventStream, frame
from agentcanvas.web.views import FeedHeaders

T = TypeVar("T")


class Resumed(Protocol):
    """A query that says from where on."""

    @property
    def after(self) -> int:
        """The number of an event."""
        ...

    @property
    def last_event_id(self) -> str | None:
        """A place in the feed."""
        ...


class Following:
    """Streams over one feed."""

    def __init__(self, feed: Feed, *, clock: Clock, ending: asyncio.Event) -> None:
        self._feed = feed
        self._clock = clock
        self._ending = ending

    async def after(self, query: Resumed, headers: FeedHeaders) -> int:
        """The number of the event that the reader has seen last."""
        place = headers.last_event_id or query.last_event_id
        if place is None:
            return query.after
        seq = await self._feed.find(place)
        if seq is None:
            raise ValidationError(
                f"The place {place} is not in the history of this workspace: a back-up was brought "
                "back, or old events were forgotten. Begin without it."
            )
        return seq

    def frames(self, frames: AsyncGenerator[bytes, None]) -> EventStream:
        """A stream of frames that are made already."""
        return EventStream(frames, clock=self._clock, ending=self._ending)

    def stream(
        self, source: AsyncIterator[T], number: Callable[[T], int], line: Callable[[T], bytes]
    ) -> EventStream:
        """A stream of numbered values; a frame named ``end`` says that there are no more."""

        async def frames() -> AsyncGenerator[bytes, None]:
            try:
                async for item in source:
                    yield frame(line(item), id=await self._feed.place(number(item)))
            finally:
                if isinstance(source, AsyncGenerator):
                    await source.aclose()
            yield frame(b"{}", event="end")

        return self.frames(frames())
