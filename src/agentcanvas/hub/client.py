"""How the engine and agents speak: a connection, whatever it goes over.

``Transport`` is the way there (``transports``). The connection sorts what arrives: answers go to
whoever asked, everything else to ``receive``. What to do about an answer that does not come is left
to those who ask.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol, Self

import anyio
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import DeadlineExceeded, Disconnected, StoreError
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.background import beside
from agentcanvas.hub.broker import Parcel, Receipt, Settlement
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import ANSWERS, Kind

_AT_ONCE = 32
_HOLD_EVERY_S = 10.0

INTERIM = frozenset({Kind.TASK_ACCEPT, Kind.TASK_PROGRESS, Kind.ACK})
"""Answers after which more is to come."""


class Transport(Protocol):
    """A way to the hub."""

    async def send(
        self,
        envelope: Envelope,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Sequence[int] = (),
    ) -> Receipt:
        """Hand a message over, and take parcels over with it; both are safe when this returns.

        Parcels are taken over also when the message is refused.
        """
        ...

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        ...

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class Delivery(Struct, frozen=True):
    """A parcel, and the connection it came over.

    Acknowledge it when it is taken over; until then it comes again (D28). To record something and
    acknowledge in one transaction, use ``number`` with ``broker.Transacting``.
    """

    parcel: Parcel
    connection: Connection

    @property
    def number(self) -> int:
        """What it is acknowledged by."""
        return self.parcel.number

    @property
    def envelope(self) -> Envelope:
        """The message."""
        return self.parcel.envelope

    @property
    def session(self) -> str:
        """The session it belongs to, whether or not the message says so."""
        return self.parcel.session

    @property
    def redelivered(self) -> bool:
        """Whether it may have come before."""
        return self.parcel.redelivered

    async def ack(self) -> bool:
        """Take it over; tell whether that was news."""
        return bool(await self.connection.ack([self]))

    async def answer(self, envelope: Envelope) -> Receipt:
        """Take it over and send what it comes to, in one go."""
        return await self.connection.send(envelope, taking=[self])

    async def nack(self) -> None:
        """Give it back; it comes again after a pause, or is given up after too many tries."""
        await self.connection.nack([self])


class Conversation:
    """A message that was sent and the answers to it: ``async for delivery in conversation``."""

    def __init__(self, asked: Envelope) -> None:
        self.asked = asked
        self.arrived: deque[Delivery] = deque()
        self.stirred = asyncio.Event()
        self.broken: Disconnected | None = None
        self._is_late = False

    def give_up(self) -> None:
        """Expect nothing more."""
        self._is_late = True
        self.stirred.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        """Return the next answer, interim or final; raise when none comes in time."""
        while not self.arrived:
            if self.broken is not None:
                raise type(self.broken)(str(self.broken))
            if self._is_late:
                recipient = "anybody" if self.asked.recipient is UNSET else self.asked.recipient.id
                raise DeadlineExceeded(
                    f"No answer from {recipient} to the message {self.asked.id} in time."
                )
            self.stirred.clear()
            await self.stirred.wait()
        return self.arrived.popleft()


class Connection:
    """Speaking and listening as one: ``async with Connection.over(transport, clock) as …``."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._conversations: dict[str, Conversation] = {}
        self._inbox: deque[Delivery] = deque()
        self._stirred = asyncio.Event()
        self._broken: Disconnected | None = None
        self._is_expected: Callable[[Envelope], bool] = lambda _: True
        self._unexpected: list[Delivery] = []
        self._unexpected_came = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def over(cls, transport: Transport, clock: Clock) -> AsyncIterator[Self]:
        """Speak over a transport until the block ends; then it is closed."""
        connection = cls(transport, clock)
        work = (connection._listen, connection._hold, connection._drop)
        async with beside(*work, ending=connection._close):
            yield connection

    async def _close(self) -> None:
        self._break(Disconnected("The connection is closed."))
        with anyio.CancelScope(shield=True):
            await self._transport.close()

    async def send(
        self,
        envelope: Envelope,
        *,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Iterable[Delivery] = (),
    ) -> Receipt:
        """Send a message, and take deliveries over with it; both are safe when this returns."""
        numbers = [delivery.number for delivery in taking]
        return await self._transport.send(envelope, on_behalf_of, numbers)

    def receive(self) -> AsyncIterator[Delivery]:
        """Iterate over the messages that are not answers to a conversation, as they come."""
        return self._receive()

    async def ack(self, deliveries: Iterable[Delivery]) -> int:
        """Take deliveries over; return for how many that was news."""
        numbers = [delivery.number for delivery in deliveries]
        return await self._transport.settle(numbers, Settlement.TAKEN)

    async def nack(self, deliveries: Iterable[Delivery]) -> None:
        """Give deliveries back; they come again after a pause."""
        numbers = [delivery.number for delivery in deliveries]
        await self._transport.settle(numbers, Settlement.FAILED)

    @asynccontextmanager
    async def converse(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        send: bool = True,
    ) -> AsyncIterator[Conversation]:
        """Send a message and hear every answer to it; each has to be acknowledged.

        Without ``send`` it is put by the caller, in a transaction inside the block. Answers are
        known by ``reply_to``, else by the task, else by the correlation id if only one conversation
        here has it; the last is how the answers to the copies of a broadcast come together. Those
        that came before, to an earlier life of the caller, are heard too.
        """
        conversation = Conversation(envelope)
        conversation.broken = self._broken
        self._conversations[envelope.id] = conversation
        limit = None
        if timeout_s is not None:
            deadline = self._clock.monotonic() + timeout_s
            limit = ring_at(self._clock, deadline, conversation.give_up)
        try:
            self._hear_what_came_before()
            if send:
                await self.send(envelope, on_behalf_of=on_behalf_of)
            yield conversation
        finally:
            if limit is not None:
                limit.cancel()
            del self._conversations[envelope.id]
            for delivery in conversation.arrived:
                self._sort(delivery)

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Send a message and return the final answer, which has to be acknowledged.

        Interim ones (accepted, progress) are acknowledged and passed over.
        """
        async with self.converse(
            envelope, timeout_s=timeout_s, on_behalf_of=on_behalf_of
        ) as conversation:
            async for delivery in conversation:
                if delivery.envelope.kind not in INTERIM:
                    return delivery
                await delivery.ack()
        raise AssertionError("a conversation ends by an exception, not by itself")

    def expect_only(self, expected: Callable[[Envelope], bool]) -> None:
        """Take over unseen what is for no conversation and is not expected either.

        For those who only ask: mail that nobody looks at would in the end keep answers from coming.
        """
        self._is_expected = expected
        self._hear_what_came_before()

    # -- what arrives ----------------------------------------------------------------------------

    async def _receive(self) -> AsyncIterator[Delivery]:
        while True:
            while self._inbox:
                yield self._inbox.popleft()
            if self._broken is not None:
                raise type(self._broken)(str(self._broken))
            self._stirred.clear()
            await self._stirred.wait()

    async def _listen(self) -> None:
        try:
            while True:
                for parcel in await self._transport.receive(_AT_ONCE):
                    self._sort(Delivery(parcel, self))
        except Disconnected as reason:
            self._break(reason)

    def _sort(self, delivery: Delivery) -> None:
        conversation = self._conversation_of(delivery.envelope)
        if conversation is not None:
            conversation.arrived.append(delivery)
            conversation.stirred.set()
        elif self._is_expected(delivery.envelope):
            self._inbox.append(delivery)
            self._stirred.set()
        else:
            self._unexpected.append(delivery)
            self._unexpected_came.set()

    def _hear_what_came_before(self) -> None:
        if not self._inbox:
            return
        arrived, self._inbox = self._inbox, deque()
        for delivery in arrived:
            self._sort(delivery)

    def _conversation_of(self, envelope: Envelope) -> Conversation | None:
        if envelope.reply_to is not UNSET and (found := self._conversations.get(envelope.reply_to)):
            return found
        if envelope.kind not in ANSWERS:
            return None
        task, correlation = envelope.task_id, envelope.correlation_id
        open_ones = list(self._conversations.values())
        same_task = [each for each in open_ones if task and each.asked.task_id == task]
        if same_task:
            return same_task[0]
        same_thread = [
            each
            for each in open_ones
            if correlation is not UNSET
            and correlation in (each.asked.correlation_id, each.asked.id)
            # What answers another message of the thread is none of ours, unless that is a copy.
            and (envelope.reply_to is UNSET or each.asked.is_broadcast)
        ]
        return same_thread[0] if len(same_thread) == 1 else None

    async def _drop(self) -> None:
        """Take over what came for nobody."""
        try:
            while True:
                await self._unexpected_came.wait()
                self._unexpected_came.clear()
                dropped, self._unexpected = self._unexpected, []
                with suppress(StoreError):  # a full disk: they come again
                    await self.ack(dropped)
        except Disconnected as reason:
            self._break(reason)

    async def _hold(self) -> None:
        """Ask for patience with what nobody has looked at yet."""
        try:
            while True:
                await self._clock.sleep(_HOLD_EVERY_S)
                waiting = [delivery.number for delivery in self._inbox]
                for conversation in self._conversations.values():
                    waiting += [delivery.number for delivery in conversation.arrived]
                if waiting:
                    await self._transport.settle(waiting, Settlement.HELD)
        except Disconnected as reason:
            self._break(reason)

    def _break(self, reason: Disconnected) -> None:
        if self._broken is None:
            self._broken = reason
        self._stirred.set()
        for conversation in self._conversations.values():
            conversation.broken = self._broken
            conversation.stirred.set()
