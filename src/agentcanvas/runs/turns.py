"""One turn of one agent: a message out, its answer in, each recorded together with its mail (D3).

A turn that was cut off is taken back if nobody began it and sent again as another attempt (D18); an
answer that came meanwhile is used. What the answer means is left to the ``desk``.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import msgspec
from msgspec import UNSET

from agentcanvas.clock import Clock
from agentcanvas.errors import DeadlineExceeded, StageEnded
from agentcanvas.hub.broker import Record, Transacting
from agentcanvas.hub.client import Connection, Conversation, Delivery
from agentcanvas.hub.guard import Principal, PrincipalKind, is_agent
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.notices import HUB
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.ids import step_id
from agentcanvas.protocol.kinds import Error, TaskProgress, TaskReject, TaskResult
from agentcanvas.protocol.records import BlobRef, FailureClass
from agentcanvas.protocol.turns import MOST_PARTS, PARTIAL, Report
from agentcanvas.runs import events as e
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.people import engine_of
from agentcanvas.runs.stall import On, Wait
from agentcanvas.runs.turn import Attempt, Place, TurnOutcome, TurnSpec
from agentcanvas.runs.turn_events import TurnEvents, usage_told
from agentcanvas.runs.turn_mail import TurnMail, outcome_of, speaker_of


@dataclass
class _UnderWay:
    """A turn that somebody is at, or will be."""

    spec: TurnSpec
    wait: Wait
    heard: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Listening for its answer."""
    withdrawn: str = ""
    """Why nobody will begin it."""


class Turns:
    """The turns of one run."""

    def __init__(
        self,
        hub: Hub,
        broker: Transacting,
        connection: Connection,
        logbook: Logbook,
        journal: Journal,
        *,
        clock: Clock,
        meter: Meter,
        limits_s: dict[str, float | None],
        estimated: Container[str] = (),
        images: tuple[BlobRef, ...] = (),
        before: Sequence[e.Recorded] = (),
    ) -> None:
        """Take up what was under way; ``limits_s`` is how long a turn of each agent may take.

        ``estimated`` are agents behind which a model may be: what they do not tell of their usage
        is charged by estimate (D19). ``images`` go with every turn of a task, and with the first
        of each part that is only asked (F5).
        """
        self._hub = hub
        self._broker = broker
        self._connection = connection
        self._logbook = logbook
        self._journal = journal
        self._clock = clock
        self._meter = meter
        self._estimated = estimated
        self._mail = TurnMail(logbook.run_id, clock, limits_s, images)
        self._events = TurnEvents(before)
        self._under_way: dict[str, _UnderWay] = {}
        self._engine = Principal(engine_of(logbook.run_id), PrincipalKind.ENGINE)
        self._attempts: dict[str, Attempt] = {}
        self._unheard: dict[str, list[str]] = {}
        """What people have said to an agent since its last turn began."""
        self._said: dict[str, list[str]] = {}
        """What they had said when a turn began; another attempt at it says it again."""
        for entry in before:
            if isinstance(entry.event, e.TurnStarted):
                begun = entry.event.payload
                self._attempts[begun.turn_id] = Attempt(
                    begun.attempt, begun.message_id, begun.generation
                )
                self._said_for(begun.turn_id, begun.to)
            elif isinstance(entry.event, e.WorkerTold):
                self.note_told(entry.event.payload)
        self._cut_off = {
            attempt.message_id for key, attempt in self._attempts.items() if key not in journal
        }
        """What an earlier life has sent; the answer may be there before it is asked for again."""
        connection.expect_only(self._expects)

    def _expects(self, envelope: Envelope) -> bool:
        """Whether it may yet be heard, though no turn that is under way waits for it."""
        if not is_agent(envelope.sender.id):
            return True  # what persons answer is heard elsewhere
        return bool(self._cut_off) and envelope.reply_to in (UNSET, *self._cut_off)

    def note_told(self, told: e.Told) -> None:
        """Keep what a person said until the agent's next turn."""
        self._unheard.setdefault(told.agent, []).append(told.text)

    def _said_for(self, key: str, agent: str) -> Sequence[str]:
        said = self._said.setdefault(key, [])
        said += self._unheard.pop(agent, ())
        return said

    async def end_work(
        self, reason: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """Tell whoever does it to end an agent's turns, or a task's; gives the ids of the turns."""
        chosen = [
            each
            for each in self._under_way.values()
            if agent in (None, each.spec.to) and task_id in (None, each.wait.who)
        ]
        for each in chosen:
            if await self._take_back([self._attempts[each.spec.key].message_id]):
                each.withdrawn = reason
                each.heard.cancel()
            else:
                await self._tell_to_end(each.spec, reason)
        return tuple(each.spec.key for each in chosen)

    async def give_up(self, step: str, reason: str) -> None:
        """Wait no longer for the turns of a step, and let nobody go on with them in vain."""
        for spec in [each.spec for each in self._under_way.values()]:
            if spec.key.startswith(f"{step}/"):
                await self._take_back([self._attempts[spec.key].message_id])
                await self._tell_to_end(spec, reason)
                self._end(spec, _too_late(reason), None)

    async def _tell_to_end(self, spec: TurnSpec, reason: str) -> None:
        cancel = self._mail.cancel(self._attempts[spec.key], spec.to, reason)
        post = await self._hub.prepare(self._engine, cancel)
        await self._logbook.record(Record(post=post))

    async def take_back(self) -> None:
        """Take back what an earlier life has sent and nobody has begun.

        Done before the agents are there, or they would begin what is about to be sent anew.
        """
        await self._take_back(list(self._cut_off))

    async def _take_back(self, messages: Sequence[str]) -> bool:
        """Have nobody begin what lies in a mailbox; what ends it would be read before it.

        Tells whether all of it was still there.
        """
        if not messages:
            return True
        run_id, engine = self._logbook.run_id, self._engine.id
        return all(
            await self._logbook.transact(
                lambda unit: [unit.withdraw(run_id, engine, message) for message in messages]
            )
        )

    async def take(self, spec: TurnSpec, *also: e.RunEvent) -> TurnOutcome:
        """Have a turn done, now or in an earlier life; ``also`` is recorded when it begins."""
        known = self._journal.recall(spec.key, spec.identity, TurnOutcome)
        if known is not None:
            return known
        earlier = self._attempts.get(spec.key)
        if earlier is not None:
            if await self._is_answered(earlier.message_id):
                return await self._hear(spec, earlier)
            self._cut_off.discard(earlier.message_id)
        return await self._hear(spec, self._next_attempt(spec, earlier), also)

    def _next_attempt(self, spec: TurnSpec, earlier: Attempt | None) -> Attempt:
        number = 1 if earlier is None else earlier.number + 1
        generation = spec.generation if earlier is None else earlier.generation
        return Attempt(number, step_id(self._logbook.run_id, spec.key, number), generation)

    async def _is_answered(self, message_id: str) -> bool:
        """Whether the answer to an earlier life's message lies in the engine's mailbox."""
        return any(
            envelope.reply_to == message_id and isinstance(envelope.body, TaskResult)
            for _, envelope in await self._broker.waiting(self._engine.id)
        )

    async def _hear(
        self,
        spec: TurnSpec,
        attempt: Attempt,
        also: Sequence[e.RunEvent] = (),
    ) -> TurnOutcome:
        """Send an attempt, unless it was sent before, and hear what comes of it."""
        begins = self._attempts.get(spec.key) != attempt
        sent = _with_what_was_said(spec, self._said_for(spec.key, spec.to)) if begins else spec
        envelope = self._mail.task(sent, attempt)
        timeout_s = self._mail.timeout_s(spec)
        started = self._clock.monotonic()
        async with self._connection.converse(
            envelope, timeout_s=timeout_s, send=False
        ) as conversation:
            if begins:
                await self._begin(spec, sent, attempt, envelope, also)
            under_way = self._under_way.get(spec.key) or _UnderWay(spec, self._wait_for(spec))
            delivery: Delivery | None = None
            try:
                with under_way.heard:
                    delivery = await self._final(conversation, spec)
            except DeadlineExceeded as late:
                return self._end(spec, _too_late(str(late)), None)
            if delivery is None:
                return self._end(spec, _called_off(under_way.withdrawn), None)
        elapsed = round((self._clock.monotonic() - started) * 1000)
        return self._end(spec, outcome_of(delivery.envelope, elapsed), delivery)

    async def _begin(
        self,
        spec: TurnSpec,
        sent: TurnSpec,
        attempt: Attempt,
        envelope: Envelope,
        also: Sequence[e.RunEvent],
    ) -> None:
        post = await self._hub.prepare(self._engine, envelope, on_behalf_of=speaker_of(spec.place))
        begun = self._events.started(sent, attempt)
        events = [*also, begun] if attempt.number == 1 else [begun]
        self._attempts[spec.key] = attempt
        self._under_way[spec.key] = _UnderWay(spec, self._wait_for(spec))
        await self._logbook.record(Record(events=self._logbook.rows(*events), post=post))

    def _wait_for(self, spec: TurnSpec) -> Wait:
        since, who = self._clock.monotonic(), spec.task_id or spec.key
        return Wait(who=who, on=On.AGENT, names=(spec.to,), since=since)

    async def _final(self, conversation: Conversation, spec: TurnSpec) -> Delivery:
        """The last word; what is said on the way is put on record."""
        parts = 0
        async for delivery in conversation:
            body = delivery.envelope.body
            if delivery.envelope.reply_to not in (conversation.asked.id, UNSET):
                await delivery.ack()  # about an attempt that was given up
                continue
            if delivery.envelope.sender.id not in (spec.to, HUB):
                await delivery.ack()  # nobody answers for somebody else
                continue
            if isinstance(body, TaskResult | TaskReject | Error):
                return delivery
            self._note_sign_of_life(spec)
            if isinstance(body, TaskProgress) and body.status == PARTIAL:
                parts += 1
                await self._pass_on(spec, body, parts)
            elif isinstance(body, TaskProgress):
                await self._logbook.write(self._events.progressed(spec, body))
            await delivery.ack()
        raise AssertionError("a conversation ends by an exception, not by itself")

    async def _pass_on(self, spec: TurnSpec, body: TaskProgress, number: int) -> None:
        """Put a part of an answer on record, and tell those who hear it before its end."""
        place, text = spec.place, body.current_step or ""
        if not place.streamed or number > MOST_PARTS:
            return
        await self._logbook.write(self._events.part(spec, body, number))
        attempt = self._attempts[spec.key].number
        for to in place.listeners:
            edge = place.edge_id if to == place.speaker else ""
            here = Place(place.interaction_id, edge, logged=place.logged)
            # A budget that is used up ends what is asked next, not what is being answered.
            with suppress(StageEnded):
                self._meter.spend_message()
                key = f"{spec.key}/attempt:{attempt}/part:{number}/{to}"
                await self.say(TurnSpec(key=key, place=here, to=to, message=text), by=spec.to)

    def generation_of(self, key: str) -> int | None:
        """The generation that a turn began on, in whichever life."""
        attempt = self._attempts.get(key)
        return None if attempt is None else attempt.generation

    @property
    def under_way(self) -> tuple[Wait, ...]:
        """Whom the run waits for, and since when."""
        return tuple(each.wait for each in self._under_way.values())

    def _note_sign_of_life(self, spec: TurnSpec) -> None:
        under_way = self._under_way.get(spec.key)
        if under_way is not None:
            sign = self._clock.monotonic()
            under_way.wait = msgspec.structs.replace(under_way.wait, sign=sign)

    def _charge(self, spec: TurnSpec, outcome: TurnOutcome) -> e.Charge | None:
        """What a turn has cost, told or guessed."""
        usage = usage_told(outcome)
        if usage is None and spec.to not in self._estimated:
            return None
        spent = self._meter.spent
        tokens, cost = spent.tokens, spent.cost
        characters = len(spec.message) + len(outcome.report.text)
        guessed = self._meter.spend_usage(usage, characters=characters)
        return e.Charge(spent.tokens - tokens, spent.cost - cost, guessed)

    def _end(self, spec: TurnSpec, outcome: TurnOutcome, delivery: Delivery | None) -> TurnOutcome:
        """Record an outcome and take its message over; the pattern need not wait for the disk."""
        self._under_way.pop(spec.key, None)
        self._cut_off.discard(self._attempts[spec.key].message_id)
        done = self._events.ended(spec, outcome, self._charge(spec, outcome))
        step = self._journal.entry(spec.key, spec.identity, outcome)
        rows = (*self._logbook.rows(done), self._journal.row(step))
        taken = () if delivery is None else (delivery.number,)
        self._logbook.queue_record(Record(events=rows, taken=taken))
        self._journal.remember(step)
        return outcome

    async def say(self, spec: TurnSpec, *, by: str = "") -> None:
        """Tell an agent something that needs no answer; ``by`` is whose answer it is a part of.

        Answers take no edge of their own: they go back along that of the question.
        """
        told, speaker = self._mail.telling(spec), speaker_of(spec.place)
        post = await self._hub.prepare(self._engine, told, on_behalf_of=speaker)
        said = self._events.passed(spec, by)
        await self._logbook.record(Record(events=self._logbook.rows(said), post=post))


def _with_what_was_said(spec: TurnSpec, said: Sequence[str]) -> TurnSpec:
    """The message with what people have added to it; what makes the turn the same is not."""
    if not said:
        return spec
    added = "\n\n".join(f"A person says to you: {text}" for text in said)
    return msgspec.structs.replace(spec, message=f"{spec.message}\n\n{added}")


def _too_late(reason: str) -> TurnOutcome:
    return TurnOutcome(
        report=Report(timed_out=True), ok=False, reason=reason, failure=FailureClass.TIMEOUT
    )


def _called_off(reason: str) -> TurnOutcome:
    return TurnOutcome(report=Report(), ok=False, reason=reason, failure=FailureClass.CANCELLED)
