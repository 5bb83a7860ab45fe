"""The hub: takes messages from those it knows, checks them, and watches who is there.

It puts guard, sessions, router, broker and presence together; each of them does its part alone. It
reports what went wrong to the owner of a task and never reassigns one (D31). Doors to the network,
tokens and recovery are left to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Self

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentCanvasError,
    Disconnected,
    PermissionDenied,
    StoreError,
    ValidationError,
)
from agentcanvas.hub import duties, guard
from agentcanvas.hub.addressing import Addressing
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.background import beside
from agentcanvas.hub.breakers import Breakers
from agentcanvas.hub.broker import Broker, Inbox, Outcome, Parcel, Post, Receipt, Settlement
from agentcanvas.hub.consent import Consent, Held, HeldState, refusal_of
from agentcanvas.hub.doors import Admitted
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.intake import DEFAULT_SESSION
from agentcanvas.hub.mailbox import Origin
from agentcanvas.hub.notices import HUB, notice
from agentcanvas.hub.origins import is_vague, place
from agentcanvas.hub.presence import Presence
from agentcanvas.hub.rates import Rates
from agentcanvas.hub.redaction import Redactor
from agentcanvas.hub.refusals import Refusals
from agentcanvas.hub.registry import Registry
from agentcanvas.hub.session import Sessions
from agentcanvas.hub.watch import Watch
from agentcanvas.protocol.envelope import BROADCAST, Envelope
from agentcanvas.protocol.kinds import Error, ErrorSeverity, Kind
from agentcanvas.protocol.limits import Limits
from agentcanvas.store import Store

NOT_KEPT = frozenset({Kind.HEARTBEAT})
"""Kinds that are worth nothing a minute later: they change ``presence`` and are not delivered."""

_AGAIN_AFTER_S = 1.0
"""How long to wait for a store that could not keep something, before people are heard again."""

_RESERVED = frozenset({HUB, BROADCAST})
_DEFAULTS = Limits()


class Hub:
    """Where agents, persons and the engine meet: ``async with Hub.open(broker, store) as hub``."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        clock: Clock,
        *,
        limits: Limits,
        redactor: Redactor,
        person: str | None,
    ) -> None:
        """Prepare; ``open`` is the door."""
        self.broker = broker
        self.clock = clock
        self.limits = limits
        self.sessions = Sessions(store)
        self.presence = Presence(limits.heartbeat)
        self.registry = Registry(self.presence, store)
        self.breakers = Breakers(limits.breaker)
        self.rates = Rates()
        self.redactor = redactor
        self.consent = Consent(store, clock, limits, person=person) if person else None
        self._store = store
        self._watch = Watch(self.presence, broker, store, clock, limits.heartbeat)
        self._refusals = Refusals(store, clock, redactor)
        self._addressing = Addressing(self.sessions, self.rates, redactor, clock, limits)
        self._links: dict[tuple[str, str], Link] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        broker: Broker,
        store: Store,
        *,
        clock: Clock,
        limits: Limits = _DEFAULTS,
        redactor: Redactor | None = None,
        person: str | None = None,
    ) -> AsyncIterator[Self]:
        """Work until the block ends.

        ``redactor`` knows the secrets that must not be kept. ``person`` is asked for consent (C5)
        and shown critical errors (H9); without one, nothing waits for consent.
        """
        redactor = redactor or Redactor()
        hub = cls(broker, store, clock, limits=limits, redactor=redactor, person=person)
        await hub.sessions.load()
        for agent in await store.read(duties.begun):
            if guard.is_agent(agent):  # it had work in hand when we ended, and should come back
                hub.presence.register(agent)
                hub.presence.hear(agent, clock.monotonic())
        work = [hub._watch.run]
        if hub.consent is not None:
            work.append(hub._hear_people)
        async with beside(*work):
            yield hub

    # -- speaking --------------------------------------------------------------------------------

    async def connect(
        self,
        principal: Principal,
        *,
        instance: str = "",
        capabilities: Iterable[str] = (),
        window: int = 64,
    ) -> Link:
        """Let somebody in who was recognised; up to ``window`` parcels may be in its hands."""
        if principal.id in _RESERVED or not principal.id:
            raise PermissionDenied(f"Nobody can connect as {principal.id!r}; choose another id.")
        # Whoever is replaced from here on has gone without a goodbye: the same agent has come.
        self._links.pop((principal.id, instance), None)
        inbox = await self.broker.connect(principal.id, instance=instance, window=window)
        link = self._links[principal.id, instance] = Link(self, principal, inbox)
        try:
            await self.greet(principal, map(self.redactor.text, capabilities))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await link.close(goodbye=False)
            raise
        return link

    async def send(
        self,
        principal: Principal,
        envelope: Envelope,
        *,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Receipt:
        """Keep a message for whom it is meant, or raise why not; it is on disk on return."""
        if envelope.kind in NOT_KEPT:
            envelope = self.redactor.envelope(envelope)
        await self._watch.hear(principal, envelope.body)
        try:
            if envelope.kind in NOT_KEPT:
                guard.check_sender(principal, envelope, on_behalf_of)
                return Receipt(envelope.id, envelope.session or DEFAULT_SESSION)
            post = await self.prepare(principal, envelope, on_behalf_of=on_behalf_of)
            if self.consent is not None and self.consent.concerns(principal, post):
                return await self._begin_with_consent(principal, post, self.consent)
            return await self._post(post)
        except (PermissionDenied, ValidationError) as refusal:
            await self._note_refusal(principal, envelope, refusal)
            raise

    async def _post(self, post: Post) -> Receipt:
        (outcome,) = await self.broker.post([post])
        if isinstance(outcome, Receipt):
            return outcome
        raise outcome

    def _begin_with_consent(
        self, principal: Principal, post: Post, consent: Consent
    ) -> asyncio.Future[Receipt]:
        """Begin what ends by itself: a task is not held without anybody being asked about it."""
        posting = self._post_with_consent(principal, post, consent)
        return asyncio.shield(asyncio.ensure_future(posting))

    async def _post_with_consent(
        self, principal: Principal, post: Post, consent: Consent
    ) -> Receipt:
        if consent.is_needed(principal, post):
            receipt, question = await consent.hold(post)
            if question is not None:
                await self._post(question)
            if receipt.held:
                return receipt
        receipt = await self._post(post)
        body = post.envelope.body
        if isinstance(body, Error) and body.severity is ErrorSeverity.CRITICAL:
            shown = consent.shown(post.envelope, post.session)
            if shown is not None:
                await self._post(shown)
        return receipt

    async def send_all(self, principal: Principal, envelopes: Sequence[Envelope]) -> list[Outcome]:
        """Keep many messages, in order; return a receipt or a refusal for each."""
        return await (await self.submit(principal, [Admitted(each) for each in envelopes]))

    async def submit(
        self, principal: Principal, messages: Sequence[Admitted]
    ) -> Awaitable[list[Outcome]]:
        """Check many messages and queue them; what comes back waits until they are on disk.

        What is queued first is kept first, but for tasks that wait for a person.
        """
        came_ms = self.clock.now_ms()
        await self.hear(principal)
        outcomes: list[Outcome | asyncio.Future[Receipt] | None] = []
        posts: list[Post] = []
        placed = await self._placed([each.envelope for each in messages])
        for admitted, (envelope, origin) in zip(messages, placed, strict=True):
            try:
                if envelope.kind in NOT_KEPT:
                    outcomes.append(await self.send(principal, envelope))
                    continue
                post = self._checked(principal, envelope, origin, UNSET, admitted.breaches)
            except AgentCanvasError as refusal:
                if isinstance(refusal, PermissionDenied | ValidationError):
                    await self._note_refusal(principal, envelope, refusal)
                outcomes.append(refusal)
                continue
            if self.consent is not None and self.consent.concerns(principal, post):
                outcomes.append(self._begin_with_consent(principal, post, self.consent))
            else:
                spelled = admitted.spelled if post.envelope is envelope else b""
                posts.append(msgspec.structs.replace(post, spelled=spelled, came_ms=came_ms))
                outcomes.append(None)
        # A task of its own, so that it is queued in this order whoever waits for it.
        posting = asyncio.ensure_future(self._post_all(posts)) if posts else None
        return _gathered(outcomes, posting)

    async def _post_all(self, posts: Sequence[Post]) -> Sequence[Outcome]:
        try:
            return await self.broker.post(posts)
        except AgentCanvasError as failure:  # nothing of it was kept: a full disk, most likely
            return [failure] * len(posts)

    async def prepare(
        self,
        principal: Principal,
        envelope: Envelope,
        *,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        breaches: Sequence[str] = (),
    ) -> Post:
        """Check a message and find its recipients, for ``Unit.put``; nothing is kept yet.

        ``breaches`` are those it was not refused for at the door.
        """
        came_ms = self.clock.now_ms()
        ((envelope, origin),) = await self._placed([envelope])
        post = self._checked(principal, envelope, origin, on_behalf_of, breaches)
        return msgspec.structs.replace(post, came_ms=came_ms)

    async def _placed(
        self, envelopes: Sequence[Envelope]
    ) -> Sequence[tuple[Envelope, Origin | None]]:
        """Find what messages answer that do not say themselves where they belong."""
        if any(is_vague(each) for each in envelopes):
            return await self._store.read(partial(place, envelopes=envelopes))
        return [(each, None) for each in envelopes]

    def _checked(
        self,
        principal: Principal,
        envelope: Envelope,
        origin: Origin | None,
        on_behalf_of: OnBehalfOf | UnsetType,
        breaches: Sequence[str],
    ) -> Post:
        if self.consent is None:
            guard.check_consent(principal, envelope)
        return self._addressing.address(principal, envelope, origin, on_behalf_of, breaches)

    async def _note_refusal(
        self, principal: Principal, envelope: Envelope, refusal: AgentCanvasError
    ) -> None:
        """Put a refusal on record where the sender belongs, whatever session it claims."""
        session = self.sessions.get(envelope.session or DEFAULT_SESSION)
        name = session.name if session and session.has(principal.id) else DEFAULT_SESSION
        await self._refusals.note(principal.id, name, envelope.id, refusal)

    # -- people ----------------------------------------------------------------------------------

    async def _hear_people(self) -> None:
        """Read what persons answer the hub, and do what follows from it."""
        assert self.consent is not None
        inbox = await self.broker.connect(HUB)
        for question in await self.consent.unasked():
            await self.broker.post([question])
        while True:
            try:
                (parcel,) = await inbox.take(1)
                held = await self.consent.decide(parcel.envelope)
                if held is not None:
                    await self._carry_out(held)
                await inbox.settle([parcel.number], Settlement.TAKEN)
            except StoreError:  # a full disk: the answer comes again later
                await self.clock.sleep(_AGAIN_AFTER_S)

    async def _carry_out(self, held: Held) -> None:
        """Deliver what a person agreed to, or tell its sender that nobody did."""
        try:
            if held.state is not HeldState.APPROVED:
                raise refusal_of(held)
            origin = Origin(held.session, held.sender)
            await self._post(
                self._addressing.address(
                    Principal(held.sender), held.message, origin, UNSET, again=True
                )
            )
        except StoreError:
            raise
        except AgentCanvasError as refusal:
            told = notice(
                refusal,
                to=held.sender,
                session=held.session,
                about=held.id,
                at_ms=self.clock.now_ms(),
                correlation=held.message.correlation_id,
            )
            await self.broker.post([told])

    async def expel(self, name: str) -> int:
        """End every connection of a principal, as after its token was revoked; return how many."""
        links = [link for (agent, _), link in self._links.items() if agent == name]
        for link in links:
            await link.close(goodbye=False)
        return len(links)

    async def read(
        self,
        principal: Principal,
        *,
        after: int = 0,
        later_than_ms: int | None = None,
        limit: int = 100,
        wait_s: float = 0.0,
        only_waiting: bool = False,
    ) -> Sequence[Parcel]:
        """Read somebody's own mail without taking it, waiting a while for some (D36)."""
        await self.hear(principal)
        deadline = self.clock.monotonic() + wait_s
        while True:
            head = self._store.head
            found = await self.broker.since(
                principal.id,
                after=after,
                later_than_ms=later_than_ms,
                limit=limit,
                only_waiting=only_waiting,
            )
            if found or self.clock.monotonic() >= deadline:
                return found
            async with anyio.create_task_group() as group:
                limit_ = ring_at(self.clock, deadline, group.cancel_scope.cancel)
                try:
                    await self._store.wait_beyond(head)
                finally:
                    limit_.cancel()

    # -- presence --------------------------------------------------------------------------------

    async def hear(self, principal: Principal) -> None:
        """Note a sign of life."""
        await self._watch.hear(principal)

    async def greet(self, principal: Principal, capabilities: Iterable[str] = ()) -> None:
        """Note that somebody is there, whether it stays connected or not."""
        if principal.kind is not PrincipalKind.AGENT:
            return
        self.presence.register(principal.id, capabilities)
        await self.hear(principal)

    async def wait_for(self, agent: str) -> None:
        """Wait until an agent is there, by whichever door it comes."""
        await self._watch.wait_for(agent)

    async def part(self, link: Link, *, goodbye: bool) -> None:
        """Note the end of a connection; an agent that left is told of to whom it owed something."""
        agent = link.principal.id
        ours = [key for key, each in self._links.items() if each is link]
        for key in ours:
            del self._links[key]
        # One that was replaced is no goodbye, and neither is one of several instances.
        if goodbye and ours and not any(name == agent for name, _ in self._links):
            await self._watch.goodbye(link.principal)


class Link:
    """One connection, as the hub's side sees it; in process it is the transport itself."""

    def __init__(self, hub: Hub, principal: Principal, inbox: Inbox) -> None:
        self.principal = principal
        self._hub = hub
        self._inbox = inbox
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether it was ended from our side."""
        return self._closed

    async def send(
        self,
        envelope: Envelope,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
        taking: Sequence[int] = (),
    ) -> Receipt:
        """Keep a message for whom it is meant, or raise why not; take parcels over with it."""
        if self._closed:
            raise Disconnected(f"The connection of {self.principal.id} is closed.")
        taken = self._inbox.take_over(taking) if taking else None
        try:
            return await self._hub.send(self.principal, envelope, on_behalf_of=on_behalf_of)
        finally:
            if taken is not None:
                await taken

    async def submit(self, messages: Sequence[Admitted]) -> Awaitable[list[Outcome]]:
        """Queue many messages, as ``Hub.submit`` does."""
        if self._closed:
            raise Disconnected(f"The connection of {self.principal.id} is closed.")
        return await self._hub.submit(self.principal, messages)

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        return await self._inbox.take(most)

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news."""
        await self._hub.hear(self.principal)
        return await self._inbox.settle(numbers, how)

    def take_over(self, numbers: Sequence[int]) -> asyncio.Future[int]:
        """Settle parcels as taken without waiting, so that many share a commit."""
        return self._inbox.take_over(numbers)

    async def close(self, *, goodbye: bool = True) -> None:
        """End the connection; without a goodbye it counts as broken, and may come back."""
        if self._closed:
            return
        self._closed = True
        # A full disk keeps nobody from going. What is on record then says too much, not too little:
        # that they are there and may have seen what waits.
        with suppress(StoreError):
            await self._inbox.close()
        with suppress(StoreError):
            await self._hub.part(self, goodbye=goodbye)


async def _gathered(
    outcomes: Sequence[Outcome | asyncio.Future[Receipt] | None],
    posting: asyncio.Future[Sequence[Outcome]] | None,
) -> list[Outcome]:
    """Wait for what was queued, and put each outcome where its message was."""
    posted = iter(await posting if posting is not None else ())
    gathered: list[Outcome] = []
    for outcome in outcomes:
        if outcome is None:
            gathered.append(next(posted))
        elif isinstance(outcome, asyncio.Future):
            try:
                gathered.append(await outcome)
            except AgentCanvasError as refusal:
                gathered.append(refusal)
        else:
            gathered.append(outcome)
    return gathered
