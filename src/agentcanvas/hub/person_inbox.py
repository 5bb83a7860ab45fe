"""The one inbox for people: what waits in their mailboxes, and how it is answered (D24).

Who asks, and what follows from an answer, is the engine's matter and ``consent``'s.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from agentcanvas.clock import Clock
from agentcanvas.errors import NotFound
from agentcanvas.hub.broker import Transacting
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.kinds import Outcome as TaskOutcome
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Snapshot, Store

PERSON_ASK = "person.ask"
_PREFIX = f"{PrincipalKind.PERSON}:"
_asks = msgspec.json.Decoder(PersonAsk)


def mailbox_of(person: str) -> str:
    """The name a person has in the hub."""
    return _PREFIX + person


class PersonInbox:
    """All that waits for people, over all runs and sessions, for commands and pages."""

    def __init__(self, hub: Hub, broker: Transacting, store: Store, clock: Clock) -> None:
        self._hub = hub
        self._broker = broker
        self._store = store
        self._clock = clock

    async def persons(self) -> list[str]:
        """Whoever has a mailbox here."""
        return await self._store.read(_persons)

    async def asks(self, persons: Sequence[str]) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        return tuple([ask for ask, _, _ in await self._open(persons)])

    async def answer(self, persons: Sequence[str], ask_id: str, answer: PersonAnswer) -> str:
        """Answer one of them; gives the run it belongs to."""
        found = {
            ask.ask_id: (ask, number, asked) for ask, number, asked in await self._open(persons)
        }
        if ask_id not in found:
            raise NotFound(
                f"Nothing waits for an answer under {ask_id}; it was answered before, or its run "
                "has ended. See: agentcanvas review --list"
            )
        ask, number, asked = found[ask_id]
        principal = Principal(mailbox_of(ask.person), PrincipalKind.PERSON)
        reply = Envelope(
            id=new_id(),
            kind=Kind.TASK_COMPLETE,
            time=self._clock.now(),
            sender=AgentRef(principal.id),
            recipient=asked.sender,
            session=asked.session,
            reply_to=asked.id,
            correlation_id=asked.id,
            body=TaskResult(
                task_id=asked.task_id or UNSET,
                status=TaskOutcome.SUCCESS,
                output=freeze(answer),
            ),
        )
        post = await self._hub.prepare(principal, reply)
        await self._broker.transact(lambda unit: (unit.take_over(number), unit.put(post)))
        return ask.run_id

    async def _open(self, persons: Sequence[str]) -> list[tuple[PersonAsk, int, Envelope]]:
        found = []
        for person in persons:
            for number, envelope in await self._broker.waiting(mailbox_of(person)):
                body = envelope.body
                if isinstance(body, TaskAssign) and body.task_type == PERSON_ASK and body.input:
                    found.append((_asks.decode(body.input), number, envelope))
        return found


def _persons(look: Snapshot) -> list[str]:
    rows = look.query(
        "SELECT DISTINCT recipient FROM hub_letters WHERE recipient LIKE ?", (f"{_PREFIX}%",)
    )
    return sorted(name.removeprefix(_PREFIX) for (name,) in rows)
