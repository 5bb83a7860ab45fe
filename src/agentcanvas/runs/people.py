"""One inbox for people (D24): whatever waits for a person is a message in their mailbox.

An ask is asked once, however often a run is resumed, and its answer is on record before anybody
acts on it. Who answers, and in which window, is no matter of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET

from agentcanvas.clock import Clock
from agentcanvas.errors import DeadlineExceeded, ProtocolError
from agentcanvas.hub import mailbox
from agentcanvas.hub.broker import Unit
from agentcanvas.hub.client import INTERIM, Connection, Delivery
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.person_inbox import PERSON_ASK, mailbox_of
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import step_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.values import freeze
from agentcanvas.runs import events as e
from agentcanvas.runs.attendance import Attendance
from agentcanvas.runs.logbook import Logbook

_LONGEST = 200

_answers = msgspec.json.Decoder(PersonAnswer)


def engine_of(run_id: str) -> str:
    """The name a run's engine has in the hub (D22)."""
    return f"engine:{run_id}"


class People:
    """Asks people on behalf of one run."""

    def __init__(
        self,
        hub: Hub,
        connection: Connection,
        logbook: Logbook,
        *,
        attendance: Attendance,
        clock: Clock,
        before: Iterable[e.Recorded] = (),
    ) -> None:
        """Take up what earlier lives of the run have asked and heard."""
        self._hub = hub
        self._connection = connection
        self._logbook = logbook
        self._attendance = attendance
        self._clock = clock
        self._engine = Principal(engine_of(logbook.run_id), PrincipalKind.ENGINE)
        self._asked: dict[str, int] = {}
        self._lying: set[str] = set()
        self._answered: dict[str, PersonAnswer] = {}
        for entry in before:
            if isinstance(entry.event, e.AskedPerson):
                self._note_asked(entry.event.payload.ask_id)
            elif isinstance(entry.event, e.RunEnded):
                self._lying.clear()  # an end takes back what nobody has answered
            elif isinstance(entry.event, e.AnsweredByPerson):
                said = entry.event.payload
                self._answered[said.ask_id] = PersonAnswer(
                    msgspec.json.decode(said.content), said.person
                )

    def has_heard(self, ask_id: str) -> bool:
        """Whether the answer to an ask is on record."""
        return ask_id in self._answered

    async def ask(self, ask: PersonAsk) -> PersonAnswer:
        """Put an ask into the inbox and return with the answer to it."""
        known = self._answered.get(ask.ask_id)
        if known is not None:
            return known
        envelope = self._envelope(ask)
        timeout_s = None
        if ask.deadline_ms is not UNSET:
            timeout_s = max(0.0, (ask.deadline_ms - self._clock.now_ms()) / 1000)
        delivery = await self._hear(ask, envelope, timeout_s)
        if delivery is None:
            answer = await self._take_default(ask, envelope)
            if answer is not None:
                return answer
            delivery = await self._hear(ask, envelope, None)
            assert delivery is not None, "it is on its way"
        return await self._heard(ask, delivery)

    async def _hear(
        self, ask: PersonAsk, envelope: Envelope, timeout_s: float | None
    ) -> Delivery | None:
        """Put an ask, unless it lies there, and wait for the answer; None when time is over."""
        async with self._connection.converse(
            envelope, timeout_s=timeout_s, send=False
        ) as conversation:
            await self._put(ask, envelope)
            with self._attendance.waiting_for(ask):
                try:
                    async for delivery in conversation:
                        if delivery.envelope.kind not in INTERIM:
                            return delivery
                        await delivery.ack()
                except DeadlineExceeded:
                    pass
        return None

    async def _put(self, ask: PersonAsk, envelope: Envelope) -> None:
        if ask.ask_id in self._lying:
            return  # asked by an earlier life of the run
        post = await self._hub.prepare(self._engine, envelope)
        asked = e.PersonAsked(
            ask_id=ask.ask_id,
            person=ask.person,
            question=_headline(ask.text),
            scope=ask.scope,
            task_id=_task_of(ask.scope),
        )
        event = e.AskedPerson(actor=ask.agent_id, provenance=e.Provenance.SYSTEM, payload=asked)
        await self._logbook.transact(
            lambda unit: (unit.put(post), self._logbook.note(unit.transaction, event))
        )
        self._note_asked(ask.ask_id)

    def _note_asked(self, ask_id: str) -> None:
        self._asked[ask_id] = self._asked.get(ask_id, 0) + 1
        self._lying.add(ask_id)

    async def _heard(self, ask: PersonAsk, delivery: Delivery) -> PersonAnswer:
        answer = _answer_in(delivery.envelope)
        event = _answered(ask, answer)
        await self._logbook.transact(
            lambda unit: (
                unit.take_over(delivery.number),
                self._logbook.note(unit.transaction, event),
            )
        )
        self._answered[ask.ask_id] = answer
        return answer

    async def _take_default(self, ask: PersonAsk, envelope: Envelope) -> PersonAnswer | None:
        """Take the question back; None when it was answered in time and nobody has heard it yet."""
        answer = None if ask.default is UNSET else PersonAnswer(ask.default, "")

        def work(unit: Unit) -> bool:
            waiting = mailbox.waiting_for(unit.transaction, self._engine.id)
            if any(reply.reply_to == envelope.id for _, reply in waiting):
                return False
            unit.withdraw(self._logbook.run_id, self._engine.id, envelope.id)
            if answer is not None:
                self._logbook.note(unit.transaction, _answered(ask, answer))
            return True

        if not await self._logbook.transact(work):
            return None
        if answer is None:
            raise DeadlineExceeded(f"{ask.person} did not answer in time: {_headline(ask.text)}")
        self._answered[ask.ask_id] = answer
        return answer

    def _envelope(self, ask: PersonAsk) -> Envelope:
        """The message; one that was taken back and is asked again has an id of its own (M5)."""
        times = self._asked.get(ask.ask_id, 0) + (ask.ask_id not in self._lying)
        task_id = f"ask/{ask.ask_id}" + (f".{times}" if times > 1 else "")
        return Envelope(
            id=step_id(self._logbook.run_id, f"person/{ask.ask_id}", times),
            kind=Kind.TASK_ASSIGN,
            time=self._clock.now(),
            sender=AgentRef(self._engine.id),
            recipient=AgentRef(mailbox_of(ask.person)),
            session=self._logbook.run_id,
            body=TaskAssign(task_id=task_id, task_type=PERSON_ASK, input=freeze(ask)),
        )


def _answer_in(envelope: Envelope) -> PersonAnswer:
    body = envelope.body
    if not isinstance(body, TaskResult) or body.output is UNSET:
        raise ProtocolError(f"{envelope.sender.id} sent no answer.")
    return _answers.decode(body.output)


def _answered(ask: PersonAsk, answer: PersonAnswer) -> e.AnsweredByPerson:
    said = e.PersonAnswered(
        ask_id=ask.ask_id,
        person=answer.person or ask.person,
        answer=_headline(_as_text(answer.content)),
        content=freeze(answer.content),
    )
    who = mailbox_of(answer.person or ask.person)
    return e.AnsweredByPerson(actor=who, provenance=e.Provenance.USER_INPUT, payload=said)


def _as_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping) and "decision" in content:
        reason = content.get("reason")
        return f"{content['decision']}: {reason}" if reason else str(content["decision"])
    return msgspec.json.encode(content).decode()


def _headline(text: str) -> str:
    first = next((line.strip(" #") for line in text.splitlines() if line.strip(" #")), "")
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"


def _task_of(scope: str) -> str:
    kind, _, name = scope.partition(":")
    return name if kind in ("review", "task") else ""
