"""A way to the hub that finds its way back: reconnects, resumes, loses and repeats nothing.

What was sent is sent again under its id, and the hub knows a repeat (M5). What was received and not
settled comes again on the new connection; it is recognised by its number and not handed up twice.
How a connection is made is left to ``Dial``.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from typing import TypeAlias, TypeVar

import anyio
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, Disconnected, Replaced
from agentcanvas.hub.broker import Parcel, Receipt, Settlement
from agentcanvas.hub.client import Transport
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.protocol.envelope import Envelope

T = TypeVar("T")

Dial: TypeAlias = Callable[[], Awaitable[Transport]]
"""Makes a connection, or raises: ``Disconnected`` to be asked again, anything else for good."""


class BackOff(Struct, frozen=True, kw_only=True):
    """How long to wait before the next try: longer each time, and never all at once."""

    first_s: float = 0.5
    most_s: float = 30.0
    attempts: int | None = None
    """After how many failures in a row to give up; ``None`` for never."""

    def pause_s(self, failures: int, chance: Random) -> float:
        """Draw from the upper half of the time that so many failures stand for."""
        longest: float = min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 32))
        return longest * (1 + chance.random()) / 2


_DEFAULTS = BackOff()
_log = logging.getLogger(__name__)
_TAKEN_KEPT = 10_000


class Reconnecting:
    """A ``Transport`` over as many connections as it takes."""

    def __init__(
        self,
        dial: Dial,
        clock: Clock,
        *,
        back_off: BackOff = _DEFAULTS,
        chance: Random | None = None,
    ) -> None:
        self._dial = dial
        self._clock = clock
        self._back_off = back_off
        self._chance = chance or Random()  # noqa: S311 - it only spreads tries over time
        self._way: Transport | None = None
        self._closed: Disconnected | None = None
        self._dialing = anyio.Lock()
        self._in_hand: set[int] = set()
        """Numbers that were handed up and about which the hub has no word yet."""
        self._taken: OrderedDict[int, None] = OrderedDict()
        """The last that were taken over: they may be on their way to us once more."""
        self.connections = 0

    async def open(self) -> None:
        """Connect now, so that a refusal shows at once."""
        await self._connected(None)

    async def send(
        self,
        envelope: Envelope,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Sequence[int] = (),
    ) -> Receipt:
        """Hand a message over, again if need be; the hub keeps it once."""
        try:
            receipt = await self._through(lambda way: way.send(envelope, on_behalf_of, taking))
        except AgentCanvasError as refusal:
            if not isinstance(refusal, Disconnected):
                self._note_taken(taking)  # they are taken over all the same
            raise
        # Not when cancelled: then nobody knows, and they must not be handed up again.
        self._note_taken(taking)
        return receipt

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        while True:
            parcels = await self._through(lambda way: way.receive(most))
            numbers = [each.number for each in parcels]
            held = [number for number in numbers if number in self._in_hand]
            taken = [number for number in numbers if number in self._taken]
            fresh = [each for each in parcels if each.number not in {*held, *taken}]
            self._in_hand.update(each.number for each in fresh)
            if held:  # somebody is at it: it was in hand when a connection broke
                await self.settle(held, Settlement.HELD)
            if taken:  # it was on its way when it was taken over
                await self.settle(taken, Settlement.TAKEN)
            if fresh:
                return fresh

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels, again if need be."""
        news = await self._through(lambda way: way.settle(numbers, how))
        if how is Settlement.TAKEN:
            self._note_taken(numbers)
        elif how is Settlement.FAILED:
            self._in_hand.difference_update(numbers)
        return news

    def _note_taken(self, numbers: Sequence[int]) -> None:
        self._in_hand.difference_update(numbers)
        self._taken.update(dict.fromkeys(numbers))
        while len(self._taken) > _TAKEN_KEPT:
            self._taken.popitem(last=False)

    async def close(self) -> None:
        """End it for good."""
        self._closed = self._closed or Disconnected("The connection is closed.")
        way, self._way = self._way, None
        if way is not None:
            await way.close()

    async def _through(self, work: Callable[[Transport], Awaitable[T]]) -> T:
        """Do something over a connection; over the next one if it breaks meanwhile."""
        way = await self._connected(None)
        while True:
            try:
                return await work(way)
            except Replaced:
                raise
            except Disconnected:
                way = await self._connected(way)

    async def _connected(self, broken: Transport | None) -> Transport:
        """Return a connection that is another one than ``broken``."""
        async with self._dialing:
            if self._way is not None and self._way is not broken:
                return self._way
            if broken is not None and self._way is broken:
                self._way = None
                with suppress(AgentCanvasError):
                    await broken.close()
            way = await self._redial()
            if self._closed is not None:  # meanwhile: nobody else knows of this connection
                await way.close()
                raise Disconnected(str(self._closed))
            self._way = way
            return way

    async def _redial(self) -> Transport:
        failures = 0
        while True:
            if self._closed is not None:
                raise Disconnected(str(self._closed))
            try:
                way = await self._dial()
            except Replaced:
                raise
            except Disconnected as reason:
                failures += 1
                if failures == self._back_off.attempts:
                    raise
                if failures == 1:
                    _log.warning("%s Trying again until it can.", reason)
                await self._clock.sleep(self._back_off.pause_s(failures, self._chance))
            except AgentCanvasError as refusal:
                if not self.connections:
                    raise
                self._closed = Disconnected(f"The hub does not let us in again: {refusal}")
            else:
                self.connections += 1
                return way
