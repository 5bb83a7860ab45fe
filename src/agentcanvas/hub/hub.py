"""The hub: takes messages from those it knows, checks them, and watches who is there.

It puts guard, sessions, router, broker and presence together; each of them does its part alone. It
reports what went wrong to the owner of a task and never reassigns one (D31). Doors to the network,
tokens and recovery are left to others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import groupby
from typing import Self

from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentCanvasError,
    AgentLost,
    AgentNotFound,
    InvalidMessage,
    MessageTooLarge,
    PermissionDenied,
    StoreError,
    ValidationError,
)
from agentcanvas.hub import duties, guard, mailbox, router
from agentcanvas.hub.alarm import Alarm
from agentcanvas.hub.background import beside
from agentcanvas.hub.broker import Broker, Inbox, Outcome, Parcel, Post, Receipt, Settlement
from agentcanvas.hub.duties import Duty
from agentcanvas.hub.events import (
    PRESENCE,
    AgentLostEvent,
    AgentPresentEvent,
    EventKind,
    OnBehalfOf,
    Owed,
    encode,
    stream_of,
)
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.intake import DEFAULT_SESSION
from agentcanvas.hub.mailbox import Origin
from agentcanvas.hub.notices import HUB, notice
from agentcanvas.hub.presence import Presence
from agentcanvas.hub.refusals import Refusals
from agentcanvas.hub.session import Session, Sessions
from agentcanvas.protocol.envelope import BROADCAST, Envelope
from agentcanvas.protocol.kinds import Heartbeat, Kind
from agentcanvas.protocol.limits import Limits
from agentcanvas.protocol.session import check_direction
from agentcanvas.store import Snapshot, Store

NOT_KEPT = frozenset({Kind.HEARTBEAT})
"""Kinds that are worth nothing a minute later: they change ``presence`` and are not delivered."""

_RESERVED = frozenset({HUB, BROADCAST})
_DEFAULTS = Limits()


class Hub:
    """Where agents, persons and the engine meet: ``async with Hub.open(broker, store) as hub``."""

    def __init__(self, broker: Broker, store: Store, clock: Clock, limits: Limits) -> None:
        """Prepare; ``open`` is the door."""
        self.broker = broker
        self.clock = clock
        self.limits = limits
        self.sessions = Sessions(store)
        self.presence = Presence(limits.heartbeat)
        self._store = store
        self._alarm = Alarm(clock)
        self._refusals = Refusals(store, clock)
        self._links: dict[tuple[str, str], Link] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, broker: Broker, store: Store, *, clock: Clock, limits: Limits = _DEFAULTS
    ) -> AsyncIterator[Self]:
        """Work until the block ends."""
        hub = cls(broker, store, clock, limits)
        await hub.sessions.load()
        for agent in await store.read(duties.begun):
            if guard.is_agent(agent):  # it had work in hand when we ended, and should come back
                hub.presence.register(agent)
                hub.presence.hear(agent, clock.monotonic())
        async with beside(hub._watch):
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
        inbox = await self.broker.connect(principal.id, instance=instance, window=window)
        if principal.kind is PrincipalKind.AGENT:
            self.presence.register(principal.id, capabilities)
            await self.hear(principal)
        link = Link(self, principal, inbox)
        self._links[principal.id, instance] = link
        return link

    async def send(
        self,
        principal: Principal,
        envelope: Envelope,
        *,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Receipt:
        """Keep a message for whom it is meant, or raise why not; it is on disk on return."""
        if self._hear(principal, envelope.body):
            await self._announce(principal.id)
        try:
            if envelope.kind in NOT_KEPT:
                guard.check_sender(principal, envelope, on_behalf_of)
                return Receipt(envelope.id, envelope.session or DEFAULT_SESSION)
            origin = await self._origin(envelope) if _is_vague(envelope) else None
            post = self._address(principal, envelope, origin, on_behalf_of)
            (outcome,) = await self.broker.post([post])
            if isinstance(outcome, Receipt):
                return outcome
            raise outcome
        except (PermissionDenied, ValidationError) as refusal:
            await self._note_refusal(principal, envelope, refusal)
            raise

    async def send_all(self, principal: Principal, envelopes: Sequence[Envelope]) -> list[Outcome]:
        """Keep many messages, in order; return a receipt or a refusal for each."""
        outcomes: list[Outcome | None] = []
        posts: list[Post] = []
        await self.hear(principal)
        for envelope in envelopes:
            try:
                if envelope.kind in NOT_KEPT:
                    outcomes.append(await self.send(principal, envelope))
                    continue
                posts.append(await self.prepare(principal, envelope))
                outcomes.append(None)
            except AgentCanvasError as refusal:
                outcomes.append(refusal)
        settled = iter(await self.broker.post(posts) if posts else ())
        return [next(settled) if outcome is None else outcome for outcome in outcomes]

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
        origin = await self._origin(envelope) if _is_vague(envelope) else None
        return self._address(principal, envelope, origin, on_behalf_of, breaches)

    def _address(
        self,
        principal: Principal,
        envelope: Envelope,
        origin: Origin | None,
        on_behalf_of: OnBehalfOf | UnsetType,
        breaches: Sequence[str] = (),
    ) -> Post:
        guard.check_sender(principal, envelope, on_behalf_of)
        session = self._session(envelope, origin)
        noted = (*breaches, *(str(breach) for breach in check_direction(envelope)))
        try:
            if envelope.is_broadcast:
                speaker = on_behalf_of.speaker if on_behalf_of is not UNSET else principal.id
                recipients = [
                    member
                    for member in session.members
                    if member not in (principal.id, speaker)
                    and guard.may_speak(session, envelope.kind, speaker, member)
                ]
                post = router.to_all(envelope, session.name, recipients, on_behalf_of, noted)
            else:
                recipient = _recipient(envelope, origin)
                if not session.has(recipient):
                    raise AgentNotFound(f"Agent not found: {recipient}")
                guard.check_edge(session, envelope, recipient, on_behalf_of)
                post = router.to_one(envelope, session.name, recipient, on_behalf_of, noted)
        except UnicodeEncodeError:
            sentence = f"The message {envelope.id!r} holds text that is not valid Unicode."
            raise InvalidMessage(sentence) from None
        self._refuse_large(post)
        return post

    async def _note_refusal(
        self, principal: Principal, envelope: Envelope, refusal: AgentCanvasError
    ) -> None:
        """Put a refusal on record where the sender belongs, whatever session it claims."""
        session = self.sessions.get(envelope.session or DEFAULT_SESSION)
        name = session.name if session and session.has(principal.id) else DEFAULT_SESSION
        await self._refusals.note(principal.id, name, envelope.id, refusal)

    # -- who and where ---------------------------------------------------------------------------

    async def _origin(self, envelope: Envelope) -> Origin | None:
        """Find the message that this one answers: who sent that, and where."""
        return await self._store.read(partial(_find_origin, envelope=envelope))

    def _session(self, envelope: Envelope, origin: Origin | None) -> Session:
        name = envelope.session or (origin.session if origin else DEFAULT_SESSION)
        session = self.sessions.get(name)
        if session is None:
            raise ValidationError(f"There is no session {name}; open it, or name another.")
        if not session.has(envelope.sender.id):
            raise AgentNotFound(f"Agent not found: {envelope.sender.id}")
        return session

    def _refuse_large(self, post: Post) -> None:
        most = self.limits.message.size_bytes
        for content in (post.broadcast, *(copy.content for copy in post.copies)):
            if content is not None and len(content) > most:
                raise MessageTooLarge(
                    f"The message {post.envelope.id} has {len(content)} bytes, more than the "
                    f"{most} allowed; send large content as a blob.",
                    message_id=post.envelope.id,
                )

    # -- presence --------------------------------------------------------------------------------

    async def hear(self, principal: Principal) -> None:
        """Note a sign of life."""
        if self._hear(principal):
            await self._announce(principal.id)

    def _hear(self, principal: Principal, said: object = None) -> bool:
        """Note a sign of life; tell whether the agent had been lost."""
        if principal.kind is not PrincipalKind.AGENT:
            return False
        beat = said if isinstance(said, Heartbeat) else None
        was_lost = self.presence.hear(principal.id, self.clock.monotonic(), beat)
        self._alarm.ring_by(self.presence.next_moment())
        return was_lost

    async def part(self, link: Link, *, goodbye: bool) -> None:
        """Note the end of a connection; an agent that left is told of to whom it owed something."""
        agent = link.principal.id
        ours = [key for key, each in self._links.items() if each is link]
        for key in ours:
            del self._links[key]
        # One that was replaced is no goodbye, and neither is one of several instances.
        if goodbye and ours and not any(name == agent for name, _ in self._links):
            await self._said_goodbye(link.principal)

    async def _said_goodbye(self, principal: Principal) -> None:
        if principal.kind is not PrincipalKind.AGENT:
            return
        self.presence.leave(principal.id)
        owed = await self._store.read(lambda look: duties.open_duties(look, principal.id))
        if owed:
            await self._report_lost(principal.id, "it left", owed)

    async def _announce(self, agent: str) -> None:
        with suppress(StoreError):  # a full disk must not keep an agent out
            await self._store.append(
                PRESENCE, EventKind.AGENT_PRESENT, encode(AgentPresentEvent(agent))
            )

    async def _watch(self) -> None:
        self._alarm.ring_by(self.presence.next_moment())
        while True:
            now = await self._alarm.wait()
            for agent in self.presence.silent(now):
                with suppress(StoreError):  # a full disk must not blind us
                    owed = await self._store.read(partial(duties.open_duties, agent=agent))
                    silence = f"nothing was heard of it for {self.limits.heartbeat.unavailable_s} s"
                    await self._report_lost(agent, silence, owed)
            self._alarm.ring_by(self.presence.next_moment())

    async def _report_lost(self, agent: str, reason: str, owed: Sequence[Duty]) -> None:
        def event(some: Iterable[Duty]) -> bytes:
            named = tuple(Owed(duty.kind, duty.name, duty.message, duty.owner) for duty in some)
            return encode(AgentLostEvent(agent, reason, named))

        await self._store.append(PRESENCE, EventKind.AGENT_LOST, event(owed))
        for session, group in groupby(owed, key=lambda duty: duty.session):
            some = list(group)
            await self._store.append(stream_of(session), EventKind.AGENT_LOST, event(some))
            await self.broker.post([self._loss(agent, reason, duty) for duty in some])

    def _loss(self, agent: str, reason: str, duty: Duty) -> Post:
        error = AgentLost(
            f"The agent {agent} is lost ({reason}); it has not ended the {duty.kind} {duty.name}. "
            "Wait for it, or give the work to somebody else."
        )
        return notice(
            error,
            to=duty.owner,
            session=duty.session,
            about=duty.message,
            at_ms=self.clock.now_ms(),
        )


class Link:
    """One connection, as the hub's side sees it; in process it is the transport itself."""

    def __init__(self, hub: Hub, principal: Principal, inbox: Inbox) -> None:
        self.principal = principal
        self._hub = hub
        self._inbox = inbox

    async def send(
        self, envelope: Envelope, on_behalf_of: OnBehalfOf | UnsetType = UNSET
    ) -> Receipt:
        """Keep a message for whom it is meant, or raise why not."""
        return await self._hub.send(self.principal, envelope, on_behalf_of=on_behalf_of)

    async def receive(self, most: int) -> Sequence[Parcel]:
        """Wait for mail; return at least one parcel and at most ``most``."""
        return await self._inbox.take(most)

    async def settle(self, numbers: Sequence[int], how: Settlement) -> int:
        """Say what became of parcels; return for how many that was news."""
        await self._hub.hear(self.principal)
        return await self._inbox.settle(numbers, how)

    async def close(self, *, goodbye: bool = True) -> None:
        """End the connection; without a goodbye it counts as broken, and may come back."""
        try:
            await self._inbox.close()
        finally:
            await self._hub.part(self, goodbye=goodbye)


def _is_vague(envelope: Envelope) -> bool:
    """Tell whether a message leaves open where it belongs, but answers one that may say it."""
    if envelope.session is not UNSET and envelope.recipient is not UNSET:
        return False
    return envelope.reply_to is not UNSET or envelope.correlation_id is not UNSET


def _recipient(envelope: Envelope, origin: Origin | None) -> str:
    if envelope.recipient is not UNSET:
        return envelope.recipient.id
    if origin is None:
        raise InvalidMessage(
            f"The message {envelope.id} names no recipient and answers no message that is known; "
            "name one of the two."
        )
    return origin.sender


def _find_origin(look: Snapshot, envelope: Envelope) -> Origin | None:
    """Look for the message in ``reply_to``, else for the session of the correlation id (D27)."""
    for id_ in (envelope.reply_to, envelope.correlation_id):
        if id_ is not UNSET and (found := mailbox.origin(look, router.key_of(id_), id_)):
            return found
    if envelope.correlation_id is not UNSET:
        session = mailbox.session_of_thread(look, envelope.correlation_id)
        if session is not None and envelope.recipient is not UNSET:
            return Origin(session, envelope.recipient.id)
    return None
