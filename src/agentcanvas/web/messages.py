"""The HTTP door: messages for whoever cannot keep a WebSocket open (H1, D36).

A message is sent by POST, alone or in a batch. Reading never takes; ``ack`` does. Whoever takes
messages out of its inbox instead gets them as over a WebSocket: by priority, and again if it says
nothing about them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated

import anyio
import msgspec
from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, IllegalTransition, ProtocolError, ValidationError
from agentcanvas.hub import frames
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.broker import Outcome, Parcel, Receipt, Settlement
from agentcanvas.hub.doors import Admitted
from agentcanvas.hub.frames import Word
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Link
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import encode
from agentcanvas.protocol.timestamps import parse_ms
from agentcanvas.web import problems
from agentcanvas.web.doors import Credentials, Doors
from agentcanvas.web.feed import Feed
from agentcanvas.web.long_poll import LongPoll
from agentcanvas.web.operation import JSON, Operation, operation
from agentcanvas.web.takers import Takers

PATH = "/messages"
MOST_IN_BATCH = 1000
LARGEST_BATCH = 16 * 1024 * 1024
LONGEST_WAIT_S = 60.0
_CREATED = 201
_A_MOMENT_S = 0.1
_log = logging.getLogger(__name__)
_ANSWER_BYTES = 8 * 1024 * 1024
"""About how much one answer holds; there is always another call."""

_batch = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode

Instance = Annotated[str, Meta(max_length=200)]
Wait = Annotated[float, Meta(ge=0, le=LONGEST_WAIT_S, description="seconds")]


class AgentHeaders(Struct, frozen=True):
    """``Authorization: Bearer TOKEN``."""

    authorization: str = ""


class AgentQuery(Struct, frozen=True, kw_only=True):
    """Who asks; a header is the better place for the token."""

    agent_id: str | None = None
    auth_token: str | None = None

    def shown(self, headers: AgentHeaders) -> Credentials:
        """What is shown, in either place."""
        return Credentials.of(self.agent_id, self.auth_token, headers.authorization)


class ReadQuery(AgentQuery, frozen=True, kw_only=True):
    """``since`` is a time (RFC 3339) or the cursor of an earlier answer."""

    since: str | None = None
    wait: Wait = 0.0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    waiting: bool = False
    """Leave out what was acknowledged already."""

    dialect: DialectName | None = None


class InstanceQuery(AgentQuery, frozen=True, kw_only=True):
    """Which instance of the agent, if it has several."""

    instance: Instance = ""


class TakeOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """How many messages, and for how long to wait for the first."""

    most: Annotated[int, Meta(ge=1, le=64)] = 32
    wait: Wait = 0.0
    window: Annotated[int, Meta(ge=1, le=1024)] = 64
    instance: Instance = ""
    capabilities: tuple[str, ...] = ()
    dialect: DialectName | None = None


class MessagesView(Struct, frozen=True):
    """Messages, each with its ``delivery``; ``cursor`` is where to go on."""

    messages: tuple[Raw, ...]
    cursor: str


class TakenView(Struct, frozen=True):
    """Messages, each with its ``delivery``; they come again unless something is said of them."""

    messages: tuple[Raw, ...]


class BatchOutcome(Struct, frozen=True, omit_defaults=True):
    """What became of one message: a receipt, or a MAC ERROR message."""

    receipt: Receipt | None = None
    error: Raw | None = None


class BatchView(Struct, frozen=True):
    """What became of each message, in order."""

    outcomes: tuple[BatchOutcome, ...]


class SettledView(Struct, frozen=True):
    """For how many messages it was news."""

    news: int


class MessagesApi:
    """The operations of one hub's HTTP door."""

    def __init__(self, doors: Doors, feed: Feed) -> None:
        self._doors = doors
        self._feed = feed
        self._takers = Takers(doors)
        self._clock: Clock = doors.clock

    def routes(self) -> list[Operation]:
        """Every operation at its address."""
        return [
            operation(
                "POST",
                PATH,
                self.post,
                status=_CREATED,
                largest=LARGEST_BATCH,
                let_in=self._let_in,
            ),
            operation("GET", PATH, self.read),
            operation("POST", f"{PATH}/take", self.take, let_in=self._let_in),
            operation("POST", f"{PATH}/ack", self.settle, let_in=self._let_in),
            operation("DELETE", f"{PATH}/take", self.leave),
        ]

    # -- sending ---------------------------------------------------------------------------------

    async def post(
        self, query: AgentQuery, headers: AgentHeaders, body: bytes
    ) -> Receipt | BatchView | Response:
        """Hand in one message of any dialect, or an array of them, and wait until it is on disk."""
        principal = await self._recognise(query, headers)
        if body.lstrip()[:1] == b"[":
            return await self._post_batch(principal, body)
        (outcome,) = await self._outcomes(principal, [body])
        if isinstance(outcome, Receipt):
            return outcome
        return self._refusal(outcome, frames.id_in(body, self._doors.limits))

    async def _post_batch(self, principal: Principal, body: bytes) -> BatchView:
        try:
            messages = [bytes(each) for each in _batch.decode(body)]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
            raise ProtocolError(f"The batch is no array of messages: {wrong}.") from None
        if len(messages) > MOST_IN_BATCH:
            raise ValidationError(
                f"A batch holds at most {MOST_IN_BATCH:,} messages, not {len(messages):,}; "
                "send several."
            )
        limits = self._doors.limits
        outcomes = await self._outcomes(principal, messages)
        told = [
            BatchOutcome(receipt=outcome)
            if isinstance(outcome, Receipt)
            else BatchOutcome(
                error=Raw(self._doors.refusal(outcome, frames.id_in(message, limits)))
            )
            for message, outcome in zip(messages, outcomes, strict=True)
        ]
        return BatchView(tuple(told))

    async def _outcomes(self, principal: Principal, messages: Sequence[bytes]) -> list[Outcome]:
        refused: dict[int, AgentCanvasError] = {}
        admitted: list[Admitted] = []
        for index, message in enumerate(messages):
            try:
                admitted.append(self._doors.admit(message, principal))
            except AgentCanvasError as refusal:
                refused[index] = refusal
        began = self._clock.monotonic()
        kept = iter(await (await self._doors.hub.submit(principal, admitted)))
        self._doors.latency.add(self._clock.monotonic() - began, len(admitted))
        return [refused.get(index) or next(kept) for index in range(len(messages))]

    def _refusal(self, error: AgentCanvasError, about: str | None) -> Response:
        body = self._doors.refusal(error, about)
        return Response(body, status_code=problems.status_of(error), media_type=JSON)

    # -- reading ---------------------------------------------------------------------------------

    async def read(self, query: ReadQuery, headers: AgentHeaders) -> MessagesView | LongPoll:
        """Read what came for an agent, taken over or not, from a time or a cursor on."""
        principal = await self._recognise(query, headers)
        after, later_than_ms = await self._since(query.since)

        async def work() -> bytes:
            head = await self._feed.head()
            parcels = await self._doors.hub.read(
                principal,
                after=after,
                later_than_ms=later_than_ms,
                limit=query.limit,
                wait_s=query.wait,
                only_waiting=query.waiting,
            )
            written = _fitting(self._spelled(principal, parcels, query.dialect))
            cursor = await self._feed.place(written[-1][0]) if written else head
            return _encode(MessagesView(_messages(written), cursor))

        return LongPoll(work)

    async def _since(self, since: str | None) -> tuple[int, int | None]:
        if since is None:
            return 0, None
        number = await self._feed.number_in(since)
        if number is not None:
            return number, None
        try:
            return 0, parse_ms(since)
        except ProtocolError:
            raise ValidationError(
                f"{since[:60]!r} is neither a time such as 2026-01-28T10:00:00Z nor a cursor of "
                "this hub; begin without it, or with a time."
            ) from None

    def _spelled(
        self, principal: Principal, parcels: Sequence[Parcel], dialect: DialectName | None
    ) -> list[tuple[int, Raw | None]]:
        """Write messages as they are delivered; ``None`` for one that cannot be written so."""
        to = dialect or self._doors.spoken_by(principal)
        return [(parcel.number, _written(parcel, to)) for parcel in parcels]

    # -- taking ----------------------------------------------------------------------------------

    async def take(
        self, query: AgentQuery, headers: AgentHeaders, body: TakeOrder
    ) -> TakenView | LongPoll:
        """Take messages out of the inbox, the most urgent first; each has to be acknowledged."""
        principal = await self._recognise(query, headers)

        async def work() -> bytes:
            async with self._takers.taking(
                principal,
                instance=body.instance,
                window=body.window,
                capabilities=body.capabilities,
            ) as link:
                parcels = await self._received(link, body)
                written = self._spelled(principal, parcels, body.dialect)
                unwritten = [number for number, frame in written if frame is None]
                if unwritten:  # tried again, and in the end dead letters
                    await link.settle(unwritten, Settlement.FAILED)
            return _encode(TakenView(_messages(written)))

        return LongPoll(work)

    async def _received(self, link: Link, order: TakeOrder) -> Sequence[Parcel]:
        parcels: Sequence[Parcel] = ()
        # A moment at least: messages that are not at hand have to be read from the disk.
        deadline = self._clock.monotonic() + max(order.wait, _A_MOMENT_S)
        with anyio.CancelScope() as scope:
            limit = ring_at(self._clock, deadline, scope.cancel)
            try:
                parcels = await link.receive(order.most)
            finally:
                limit.cancel()
        return parcels

    async def settle(self, query: InstanceQuery, headers: AgentHeaders, body: Word) -> SettledView:
        """Say what became of messages: ``ack`` takes over, ``nack`` gives back, ``hold`` waits."""
        principal = await self._recognise(query, headers)
        broker = self._doors.hub.broker
        news = 0
        if body.ack:
            news = await broker.acknowledge(principal.id, await self._numbers(principal, body.ack))
        link = self._takers.link_of(principal, query.instance)
        for named, how in ((body.nack, Settlement.FAILED), (body.hold, Settlement.HELD)):
            if not named:
                continue
            if link is None:
                raise IllegalTransition(
                    "Only messages that were taken can be given back or held; read ones wait "
                    "until they are acknowledged."
                )
            news += await link.settle(await self._numbers(principal, named), how)
        return SettledView(news)

    async def leave(self, query: InstanceQuery, headers: AgentHeaders) -> None:
        """Say goodbye: what was taken and not acknowledged goes back to the inbox."""
        principal = await self._recognise(query, headers)
        await self._takers.leave(principal, query.instance)

    async def _numbers(self, principal: Principal, named: Sequence[int | str]) -> list[int]:
        numbers = [each for each in named if isinstance(each, int)]
        ids = [each for each in named if isinstance(each, str)]
        if ids:
            numbers += await self._doors.hub.broker.numbers_of(principal.id, ids)
        return numbers

    def _let_in(self, query: AgentQuery, headers: AgentHeaders) -> None:
        """Refuse a stranger before anything of its is read."""
        self._doors.check(query.shown(headers))

    async def _recognise(self, query: AgentQuery, headers: AgentHeaders) -> Principal:
        principal = await self._doors.recognise(query.shown(headers))
        await self._doors.hub.greet(principal)
        return principal


def _written(parcel: Parcel, to: DialectName) -> Raw | None:
    try:
        message = encode(parcel.envelope, to)
    except AgentCanvasError as refusal:
        _log.warning("message %s cannot be delivered: %s", parcel.envelope.id, refusal.code)
        return None
    return Raw(frames.write_delivered(message, frames.delivery_of(parcel)))


def _fitting(written: Sequence[tuple[int, Raw | None]]) -> Sequence[tuple[int, Raw | None]]:
    """As many as fit an answer, and one at least."""
    size = 0
    for index, (_, frame) in enumerate(written):
        size += len(bytes(frame)) if frame is not None else 0
        if size > _ANSWER_BYTES and index:
            return written[:index]
    return written


def _messages(written: Sequence[tuple[int, Raw | None]]) -> tuple[Raw, ...]:
    return tuple(frame for _, frame in written if frame is not None)
