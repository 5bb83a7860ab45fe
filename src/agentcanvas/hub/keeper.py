"""The office of a hub in its own process: tokens, agents, messages, the record, dead letters.

Each matter is done by the part of the hub that it belongs to; here it is put into the words of
``office``. Who may ask is left to the doors.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial

from msgspec import UNSET, Raw

from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentNotFound,
    NotFound,
    PermissionDenied,
    StoreError,
    ValidationError,
)
from agentcanvas.hub import chronicle, doors
from agentcanvas.hub.broker import DeadLetter, Post, Receipt, Transacting
from agentcanvas.hub.callbacks import Signer
from agentcanvas.hub.guard import Principal, PrincipalKind, is_agent, is_answer
from agentcanvas.hub.hub import NOT_KEPT, Hub
from agentcanvas.hub.intake import DEFAULT_SESSION
from agentcanvas.hub.notices import HUB
from agentcanvas.hub.office import (
    AgentLine,
    Choice,
    DeadLine,
    Entry,
    NewToken,
    Sent,
    TaskOrder,
    TokenLine,
    TokenOrder,
)
from agentcanvas.hub.person_inbox import PersonInbox
from agentcanvas.hub.presence import AgentCard
from agentcanvas.hub.registry import AgentState, Listing
from agentcanvas.hub.tokens import TokenCard, Tokens
from agentcanvas.protocol import dialects
from agentcanvas.protocol.envelope import AgentRef, Envelope, to_json
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Kind, TaskAssign
from agentcanvas.protocol.person import PersonAnswer, PersonAsk, is_of_hub
from agentcanvas.store import Store

PERSON = f"{PrincipalKind.PERSON}:"
HANDED_IN = "handed in by a person, not by its sender"
"""Noted with each message that did not come from the agent it names."""


class Keeper:
    """A hub's office (``HubOffice``), in its own process."""

    def __init__(
        self, hub: Hub, broker: Transacting, store: Store, tokens: Tokens, clock: Clock
    ) -> None:
        self._hub = hub
        self._mail = broker
        self._store = store
        self._tokens = tokens
        self._clock = clock
        self._inbox = PersonInbox(hub, broker, store, clock)

    # -- tokens ----------------------------------------------------------------------------------

    async def new_token(self, order: TokenOrder) -> NewToken:
        """Make a token, and its owner known to the others."""
        kind = _kind_of(order.name)
        if order.scopes and kind is not PrincipalKind.DOOR:
            raise ValidationError("Only a door has scopes; give its name the prefix door:")
        self._check_words(order.name, *order.permissions)
        issued = await self._tokens.issue(
            order.name, kind, scopes=order.scopes, permissions=order.permissions
        )
        try:
            if kind is not PrincipalKind.DOOR:  # a door has no inbox
                await self._hub.sessions.join(DEFAULT_SESSION, order.name)
        except StoreError:
            with suppress(StoreError):  # nobody will ever be told this token
                await self._tokens.revoke(issued.id)
            raise
        return NewToken(issued.id, order.name, issued.text)

    async def tokens(self) -> tuple[TokenLine, ...]:
        """Every token that was ever made, the oldest first."""
        return tuple(_token_line(card) for card in self._tokens.cards())

    async def revoke(self, id_or_name: str) -> tuple[TokenLine, ...]:
        """Refuse a token, or all of one name's, from now on, and end their connections."""
        revoked = await self._tokens.revoke(id_or_name)
        names = {card.principal.id for card in revoked}
        for name in names:
            await self._hub.expel(name)
        for name in names - set(self._owners()):
            await self._hub.sessions.leave(DEFAULT_SESSION, name)
        return tuple(_token_line(card) for card in revoked)

    async def callback_key(self) -> str:
        """The public key by which those whom the hub calls know it."""
        return (await Signer.load(self._store)).public

    def _check_words(self, *words: str) -> None:
        """Refuse what would put a secret where it cannot be taken out any more (D37)."""
        if any(self._hub.redactor.text(word) != word for word in words):
            raise ValidationError("A known secret is no name and no permission; use other words.")

    def _owners(self) -> dict[str, Principal]:
        """Whose tokens are good."""
        good = [card for card in self._tokens.cards() if card.revoked_ms is None]
        return {card.principal.id: card.principal for card in good}

    # -- agents ----------------------------------------------------------------------------------

    async def agents(self, capabilities: Sequence[str] = ()) -> tuple[AgentLine, ...]:
        """Every agent that is known and can do all of this, by name."""
        for name, principal in self._owners().items():
            if principal.kind is PrincipalKind.AGENT:
                self._hub.presence.register(name)
        now = self._clock.monotonic()
        wanted = set(capabilities)
        return tuple(
            _agent_line(listing, now)
            for listing in await self._hub.registry.listings()
            if wanted <= set(listing.card.capabilities)
        )

    # -- messages --------------------------------------------------------------------------------

    async def send(self, message: bytes) -> Sent:
        """Hand in a message of any dialect, as the one it names as its sender.

        It is no sign of life of that agent, and the record says that it came from a person.
        """
        doors.check_size(len(message), self._hub.limits.message)
        reading = dialects.decode(message)
        envelope = reading.envelope
        if envelope.verified_by is not UNSET:
            raise PermissionDenied("Only the hub says who has verified a message; leave it out.")
        if envelope.kind in NOT_KEPT:
            raise ValidationError(
                f"A {envelope.kind} says that its sender lives, and only an agent itself can; "
                "send another kind."
            )
        principal = self._principal(envelope.sender.id)
        await self._let_person_in(principal, envelope.session or DEFAULT_SESSION)
        breaches = [str(breach) for breach in reading.breaches]
        if principal.kind is PrincipalKind.AGENT:
            breaches.append(HANDED_IN)
        return await self._post(await self._hub.prepare(principal, envelope, breaches=breaches))

    async def assign(self, order: TaskOrder) -> Sent:
        """Give somebody a task."""
        principal = Principal(PERSON + order.person, PrincipalKind.PERSON)
        await self._let_person_in(principal, order.session)
        await self._clear_answers(principal.id)
        id_ = new_id()
        timeout_s = order.timeout_s or self._hub.limits.task.timeout_s
        envelope = Envelope(
            id=id_,
            kind=Kind.TASK_ASSIGN,
            time=self._clock.now(),
            sender=AgentRef(principal.id),
            recipient=AgentRef(order.to),
            session=order.session,
            priority=order.priority,
            correlation_id=id_,
            timeout_ms=round(timeout_s * 1000),
            body=TaskAssign(
                task_id=new_id(),
                task_type=order.task_type,
                input=order.input,
                callback_url=order.callback_url,
            ),
        )
        return await self._post(await self._hub.prepare(principal, envelope))

    async def _post(self, post: Post) -> Sent:
        envelope = post.envelope
        (outcome,) = await self._hub.broker.post([post])
        if not isinstance(outcome, Receipt):
            raise outcome
        return Sent(
            id=outcome.id,
            session=outcome.session,
            thread=envelope.correlation_id or envelope.id,
            number=min(outcome.numbers, default=0),
            repeated=outcome.repeated,
            held=outcome.held,
        )

    def _principal(self, name: str) -> Principal:
        if name.startswith(PERSON) and len(name) > len(PERSON):
            return Principal(name, PrincipalKind.PERSON)
        owner = self._owners().get(name)
        if owner is not None:
            return owner
        if is_agent(name) and name != HUB and self._hub.sessions.of(name):
            return Principal(name)
        raise AgentNotFound(
            f"Agent not found: {name}. Make it known first: agentcanvas token new {name}"
        )

    async def _let_person_in(self, principal: Principal, session: str) -> None:
        """A person may speak in the default session without having been invited (D26)."""
        if principal.kind is PrincipalKind.PERSON and session == DEFAULT_SESSION:
            self._check_words(principal.id)
            await self._hub.sessions.join(session, principal.id)

    async def _clear_answers(self, person: str) -> None:
        """Take over what a person was answered before: it is in the record, and read there."""
        answered = [
            number
            for number, envelope in await self._mail.waiting(person)
            if is_answer(envelope.kind)
        ]
        if answered:
            await self._hub.broker.acknowledge(person, answered)

    # -- the record ------------------------------------------------------------------------------

    async def latest(self, choice: Choice, most: int) -> tuple[Entry, ...]:
        """The newest lines that are wanted, in order."""
        look = partial(chronicle.latest, choice=choice, most=most)
        return tuple(await self._store.read(look))

    async def entries(self, choice: Choice, *, after: int) -> AsyncGenerator[Entry, None]:
        """Each wanted line after a number, and then every one as it happens."""
        while True:
            head = self._store.head
            look = partial(chronicle.page, choice=choice, after=after)
            wanted, reached = await self._store.read(look)
            for entry in wanted:
                yield entry
            if reached == after:  # nothing is left, or only what was forgotten
                after = max(after, head)
                await self._store.wait_beyond(after)
            after = max(after, reached)

    async def thread(self, name: str) -> tuple[Entry, ...]:
        """All messages of a conversation, by its correlation id or the id of one of them."""
        return tuple(await self._store.read(partial(chronicle.thread, name=name)))

    # -- dead letters ----------------------------------------------------------------------------

    async def dead_letters(self, *, after: int = 0, limit: int = 100) -> tuple[DeadLine, ...]:
        """What there is, the oldest first."""
        found = await self._hub.broker.dead_letters(after=after, limit=limit)
        return tuple(_dead_line(letter) for letter in found)

    async def dead_letter(self, number: int) -> DeadLine:
        """One of them."""
        found = await self._hub.broker.dead_letters(after=number - 1, limit=1)
        if not found or found[0].number != number:
            raise NotFound(
                f"There is no dead letter {number}; see which there are: agentcanvas deadletters"
            )
        return _dead_line(found[0])

    async def resend(self, number: int) -> None:
        """Put it back into its inbox, as if it had come now."""
        await self.dead_letter(number)
        await self._hub.broker.resend(number)

    async def delete(self, number: int) -> None:
        """Give it up for good."""
        await self.dead_letter(number)
        await self._hub.broker.delete(number)

    # -- consent ---------------------------------------------------------------------------------

    async def asks(self) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        return await self._inbox.asks(await self._inbox.persons())

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them; what a run has asked is answered where the run is."""
        persons = await self._inbox.persons()
        for ask in await self._inbox.asks(persons):
            if ask.ask_id == ask_id and not is_of_hub(ask):
                raise ValidationError(
                    f"{ask_id} was asked by a run; answer it with: agentcanvas review"
                )
        await self._inbox.answer(persons, ask_id, answer)


def _kind_of(name: str) -> PrincipalKind:
    """Tell from the prefix of a name whose it is (D26)."""
    return next(
        (kind for kind in PrincipalKind if name.startswith(f"{kind}:")), PrincipalKind.AGENT
    )


def _token_line(card: TokenCard) -> TokenLine:
    principal = card.principal
    return TokenLine(
        id=card.id,
        name=principal.id,
        kind=principal.kind,
        scopes=tuple(sorted(principal.scopes)),
        permissions=tuple(sorted(principal.permissions)),
        made_ms=card.made_ms,
        revoked_ms=card.revoked_ms,
    )


def _agent_line(listing: Listing, now: float) -> AgentLine:
    card = listing.card
    is_here = card.state is AgentState.PRESENT
    return AgentLine(
        id=card.agent,
        state=card.state.value,
        status=card.status if is_here else None,
        load=card.load if is_here else None,
        tasks_running=card.tasks_running if is_here else None,
        tasks_queued=card.tasks_queued if is_here else None,
        waiting=listing.waiting,
        silent_s=_silence(card, now),
        capabilities=card.capabilities,
    )


def _silence(card: AgentCard, now: float) -> float | None:
    was_heard = card.heard or card.state is not AgentState.AWAY
    return round(now - card.heard, 1) if was_heard else None


def _dead_line(letter: DeadLetter) -> DeadLine:
    return DeadLine(
        number=letter.number,
        session=letter.session,
        recipient=letter.recipient,
        reason=letter.reason,
        tries=letter.tries,
        at_ms=letter.at_ms,
        message=Raw(to_json(letter.envelope)),
    )
