"""One turn of one agent: a message out, its answer in, each recorded together with its mail (D3).

A turn that was cut off is taken back if nobody began it and sent again as another attempt (D18); an
answer that came meanwhile is used. What the answer means is left to the ``desk``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import DeadlineExceeded, StageEnded
from agentcanvas.hub.broker import Record, Transacting
from agentcanvas.hub.client import Connection, Conversation, Delivery
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.notices import HUB
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id, step_id
from agentcanvas.protocol.kinds import (
    AttemptSummary,
    Broadcast,
    Error,
    Kind,
    TaskAssign,
    TaskCancel,
    TaskConstraints,
    TaskContext,
    TaskProgress,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.packet import Rule
from agentcanvas.protocol.records import BlobRef, FailureClass, Usage
from agentcanvas.protocol.turns import MOST_PARTS, PARTIAL, Access, Order, Report, report_in
from agentcanvas.protocol.values import freeze
from agentcanvas.runs import events as e
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.people import engine_of
from agentcanvas.runs.stall import On, Wait

_LONGEST_SHOWN = 2_000
_PATIENCE_S = 60.0
"""How long the host may take beyond its own limit to say that the limit was reached."""


class Place(Struct, frozen=True):
    """Where in the flow a turn belongs, for the record (D22)."""

    interaction_id: str = ""
    edge_id: str = ""
    speaker: str = ""
    logged: bool = True
    """Whether the interaction's log has a line for it."""
    streamed: bool = False
    """Whether what is said before the end is passed on as it comes, to ``listeners``."""
    listeners: tuple[str, ...] = ()


class TurnSpec(Struct, frozen=True, kw_only=True):
    """What a turn is about; ``key`` is its step in the run, and its name on record."""

    key: str
    place: Place = Place()
    to: str
    message: str
    role: str = ""
    number: int = 1
    task_id: str = ""
    revision: int = 0
    again: bool = False
    """Whether the same was tried before and failed (C1)."""
    continuation: int = 0
    """How often it was taken up again after a limit of its service."""
    patience: int = 1
    """How many times its usual time it may take."""
    access: Access = Access.NONE
    own_words: bool = False
    generation: int | None = None
    on: tuple[str, ...] = ()
    session: str = ""
    """The agent's own session of an earlier turn, to go on with."""
    schema: dict[str, Any] | None = None
    scope: tuple[str, ...] | None = None
    testing_required: bool = False
    acceptance_criteria: tuple[str, ...] = ()
    previous_attempts: tuple[AttemptSummary, ...] = ()
    rules: tuple[Rule, ...] = ()


class TurnOutcome(Struct, frozen=True, kw_only=True):
    """What came of it; ``reason`` is the sentence of a turn that did not end well."""

    report: Report
    ok: bool
    reason: str = ""
    failure: FailureClass | None = None
    duration_ms: int = 0
    by: str = ""
    """Who did it, where it was handed over."""


class _Attempt(Struct, frozen=True):
    number: int
    message_id: str
    generation: int | None


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
        before: Iterable[e.Recorded] = (),
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
        self._limits_s = limits_s
        self._estimated = estimated
        self._images = images
        self._under_way: dict[str, Wait] = {}
        self._engine = Principal(engine_of(logbook.run_id), PrincipalKind.ENGINE)
        self._attempts: dict[str, _Attempt] = {}
        self._unheard: dict[str, list[str]] = {}
        """What people have said to an agent since its last turn began."""
        self._lines: Counter[str] = Counter()
        """How many lines the log of each interaction has."""
        for entry in before:
            if isinstance(entry.event, e.TurnProgressed):
                name = entry.event.interaction_id or ""
                self._lines[name] = max(self._lines[name], entry.event.payload.line)
            if isinstance(entry.event, e.TurnStarted | e.TurnEnded | e.MessagePassed):
                name = entry.event.interaction_id or ""
                self._lines[name] = max(self._lines[name], entry.event.payload.step)
            if isinstance(entry.event, e.TurnStarted):
                begun = entry.event.payload
                self._attempts[begun.turn_id] = _Attempt(
                    begun.attempt, begun.message_id, begun.generation
                )
                self._unheard.pop(begun.to, None)
            elif isinstance(entry.event, e.WorkerTold):
                self.note_told(entry.event.payload)

    def note_told(self, told: e.Told) -> None:
        """Keep what a person said until the agent's next turn."""
        self._unheard.setdefault(told.agent, []).append(told.text)

    async def end_work(
        self, reason: str, *, agent: str | None = None, task_id: str | None = None
    ) -> tuple[str, ...]:
        """Tell whoever does it to end an agent's turns, or a task's; gives the ids of the turns."""
        chosen = [
            (key, wait.names[0])
            for key, wait in self._under_way.items()
            if agent in (None, wait.names[0]) and task_id in (None, wait.who)
        ]
        for key, worker in chosen:
            cancel = Envelope(
                id=new_id(),
                kind=Kind.TASK_CANCEL,
                time=self._clock.now(),
                sender=AgentRef(self._engine.id),
                recipient=AgentRef(worker),
                session=self._logbook.run_id,
                body=TaskCancel(target_id=self._attempts[key].message_id, reason=reason),
                priority=9,
            )
            post = await self._hub.prepare(self._engine, cancel)
            await self._logbook.transact(lambda unit, post=post: unit.put(post))  # type: ignore[misc]
        return tuple(key for key, _ in chosen)

    async def take_back(self) -> None:
        """Take back what an earlier life has sent and nobody has begun.

        Done before the agents are there, or they would begin what is about to be sent anew.
        """
        cut_off = [
            attempt.message_id
            for key, attempt in self._attempts.items()
            if key not in self._journal
        ]
        if cut_off:
            run_id, engine = self._logbook.run_id, self._engine.id
            await self._logbook.transact(
                lambda unit: [unit.withdraw(run_id, engine, message) for message in cut_off]
            )

    async def take(self, spec: TurnSpec, *also: e.RunEvent) -> TurnOutcome:
        """Have a turn done, now or in an earlier life; ``also`` is recorded when it begins."""
        known = self._journal.recall(spec.key, _request(spec), TurnOutcome)
        if known is not None:
            return known
        earlier = self._attempts.get(spec.key)
        if earlier is not None and await self._is_answered(earlier.message_id):
            return await self._hear(spec, earlier)
        return await self._hear(spec, self._next_attempt(spec, earlier), also)

    def _next_attempt(self, spec: TurnSpec, earlier: _Attempt | None) -> _Attempt:
        number = 1 if earlier is None else earlier.number + 1
        generation = spec.generation if earlier is None else earlier.generation
        return _Attempt(number, step_id(self._logbook.run_id, spec.key, number), generation)

    async def _is_answered(self, message_id: str) -> bool:
        """Whether the answer to an earlier life's message lies in the engine's mailbox."""
        return any(
            envelope.reply_to == message_id and isinstance(envelope.body, TaskResult)
            for _, envelope in await self._broker.waiting(self._engine.id)
        )

    async def _hear(
        self,
        spec: TurnSpec,
        attempt: _Attempt,
        also: Sequence[e.RunEvent] = (),
    ) -> TurnOutcome:
        """Send an attempt, unless it was sent before, and hear what comes of it."""
        sent = self._with_what_was_said(spec)
        envelope = self._envelope(sent, attempt)
        limit_s = self._limit_s(spec)
        timeout_s = None if limit_s is None else limit_s + _PATIENCE_S
        started = self._clock.monotonic()
        async with self._connection.converse(
            envelope, timeout_s=timeout_s, send=False
        ) as conversation:
            if self._attempts.get(spec.key) != attempt:
                await self._begin(sent, attempt, envelope, also)
                self._unheard.pop(spec.to, None)
            try:
                delivery = await self._final(conversation, spec)
            except DeadlineExceeded as late:
                outcome = TurnOutcome(
                    report=Report(timed_out=True),
                    ok=False,
                    reason=str(late),
                    failure=FailureClass.TIMEOUT,
                )
                return self._end(spec, outcome, None)
        elapsed = round((self._clock.monotonic() - started) * 1000)
        return self._end(spec, _outcome_of(delivery.envelope, elapsed), delivery)

    def _with_what_was_said(self, spec: TurnSpec) -> TurnSpec:
        """The message with what people have added to it; what makes the turn the same is not."""
        said = self._unheard.get(spec.to)
        if not said:
            return spec
        added = "\n\n".join(f"A person says to you: {text}" for text in said)
        return msgspec.structs.replace(spec, message=f"{spec.message}\n\n{added}")

    async def _begin(
        self,
        spec: TurnSpec,
        attempt: _Attempt,
        envelope: Envelope,
        also: Sequence[e.RunEvent],
    ) -> None:
        place = spec.place
        speaking = OnBehalfOf(place.speaker, place.edge_id or UNSET) if place.speaker else UNSET
        post = await self._hub.prepare(self._engine, envelope, on_behalf_of=speaking)
        begun = e.TurnStarted(
            actor=place.speaker or "engine",
            provenance=e.Provenance.ORCHESTRATOR_TO_WORKER,
            interaction_id=place.interaction_id or None,
            edge_id=place.edge_id or None,
            payload=e.TurnBegun(
                turn_id=spec.key,
                to=spec.to,
                message_id=envelope.id,
                text=_shortened(spec.message),
                role=spec.role,
                task_id=spec.task_id,
                attempt=attempt.number,
                revision=spec.revision,
                generation=attempt.generation,
                step=self._next_line(place),
            ),
        )
        events = [*also, begun] if attempt.number == 1 else [begun]
        await self._logbook.record(Record(events=self._logbook.rows(*events), post=post))
        self._attempts[spec.key] = attempt
        now = self._clock.monotonic()
        who = spec.task_id or spec.key
        self._under_way[spec.key] = Wait(who=who, on=On.AGENT, names=(spec.to,), since=now)

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
                await self._logbook.write(_progressed(spec, body))
            await delivery.ack()
        raise AssertionError("a conversation ends by an exception, not by itself")

    async def _pass_on(self, spec: TurnSpec, body: TaskProgress, number: int) -> None:
        """Put a part of an answer on record, and tell those who hear it before its end."""
        place, text = spec.place, body.current_step or ""
        if not place.streamed or number > MOST_PARTS:
            return
        line = 0 if place.listeners else self._next_line(place)
        await self._logbook.write(_progressed(spec, body, part=number, line=line))
        attempt = self._attempts[spec.key].number
        here = Place(place.interaction_id, logged=place.logged)
        for to in place.listeners:
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
        return tuple(self._under_way.values())

    def _note_sign_of_life(self, spec: TurnSpec) -> None:
        wait = self._under_way.get(spec.key)
        if wait is not None:
            sign = self._clock.monotonic()
            self._under_way[spec.key] = msgspec.structs.replace(wait, sign=sign)

    def _charge(self, spec: TurnSpec, report: Report) -> e.Charge | None:
        """What a turn has cost, told or guessed."""
        usage = _known(report.usage)
        if usage is None and spec.to not in self._estimated:
            return None
        spent = self._meter.spent
        tokens, cost = spent.tokens, spent.cost
        characters = len(spec.message) + len(report.text)
        guessed = self._meter.spend_usage(usage, characters=characters)
        return e.Charge(spent.tokens - tokens, spent.cost - cost, guessed)

    def _end(self, spec: TurnSpec, outcome: TurnOutcome, delivery: Delivery | None) -> TurnOutcome:
        """Record an outcome and take its message over; the pattern need not wait for the disk."""
        self._under_way.pop(spec.key, None)
        done = e.TurnEnded(
            actor=spec.to,
            provenance=e.Provenance.WORKER_PROPOSAL,
            usage=_known(outcome.report.usage),
            interaction_id=spec.place.interaction_id or None,
            edge_id=spec.place.edge_id or None,
            payload=e.TurnDone(
                turn_id=spec.key,
                text=_shortened(outcome.report.text),
                ok=outcome.ok,
                reason=outcome.reason,
                task_id=spec.task_id,
                duration_ms=outcome.duration_ms,
                charge=self._charge(spec, outcome.report),
                step=self._next_line(spec.place),
            ),
        )
        step = self._journal.entry(spec.key, _request(spec), outcome)

        rows = (*self._logbook.rows(done), self._journal.row(step))
        taken = () if delivery is None else (delivery.number,)
        self._logbook.queue_record(Record(events=rows, taken=taken))
        self._journal.remember(step)
        return outcome

    async def say(self, spec: TurnSpec, *, by: str = "") -> None:
        """Tell an agent something that needs no answer; ``by`` is whose answer it is a part of.

        Answers take no edge of their own: they go back along that of the question.
        """
        attempt = _Attempt(1, step_id(self._logbook.run_id, spec.key, 1), None)
        told = msgspec.structs.replace(
            self._envelope(spec, attempt),
            kind=Kind.BROADCAST,
            body=Broadcast(event="told", message=spec.message),
            timeout_ms=UNSET,
        )
        place = spec.place
        speaking = OnBehalfOf(place.speaker, place.edge_id or UNSET) if place.speaker else UNSET
        post = await self._hub.prepare(self._engine, told, on_behalf_of=speaking)
        said = e.MessagePassed(
            actor=by or place.speaker or "engine",
            provenance=e.Provenance.ORCHESTRATOR_TO_WORKER,
            interaction_id=place.interaction_id or None,
            edge_id=place.edge_id or None,
            payload=e.Telling(spec.to, _shortened(spec.message), self._next_line(place)),
        )
        await self._logbook.record(Record(events=self._logbook.rows(said), post=post))

    def _next_line(self, place: Place) -> int:
        """The number of the next line in the log of an interaction; 0 where it has none."""
        if not place.logged:
            return 0
        self._lines[place.interaction_id] += 1
        return self._lines[place.interaction_id]

    def _limit_s(self, spec: TurnSpec) -> float | None:
        usual = self._limits_s.get(spec.to)
        return None if usual is None else usual * spec.patience

    def _envelope(self, spec: TurnSpec, attempt: _Attempt) -> Envelope:
        order = Order(
            message=spec.message,
            turn_id=spec.key,
            run_id=self._logbook.run_id,
            task_id=spec.task_id,
            role=spec.role,
            number=spec.number,
            revision=spec.revision,
            attempt=attempt.number,
            patience=spec.patience,
            access=spec.access,
            own_words=spec.own_words,
            streamed=spec.place.streamed,
            generation=UNSET if attempt.generation is None else attempt.generation,
            on=spec.on,
            # What was cut off may have left its session in pieces: a new one then (D18).
            session_id=spec.session if attempt.number == 1 else "",
            answer_schema=UNSET if spec.schema is None else freeze(spec.schema),
            rules=spec.rules,
            images=self._images if spec.access is Access.WORK or spec.number == 1 else (),
        )
        limit_s = self._limit_s(spec)
        return Envelope(
            id=attempt.message_id,
            kind=Kind.TASK_ASSIGN,
            time=self._clock.now(),
            sender=AgentRef(self._engine.id),
            recipient=AgentRef(spec.to),
            session=self._logbook.run_id,
            correlation_id=step_id(self._logbook.run_id, spec.task_id or spec.key, 0),
            timeout_ms=UNSET if limit_s is None else round((limit_s + _PATIENCE_S) * 1000),
            body=TaskAssign(
                task_id=_wire_id(spec, attempt.number),
                input=freeze(order),
                constraints=_constraints(spec),
                acceptance_criteria=spec.acceptance_criteria or UNSET,
                context=_context(spec),
            ),
        )


def _known(usage: Usage | UnsetType) -> Usage | None:
    return None if isinstance(usage, UnsetType) or usage == Usage() else usage


def _request(spec: TurnSpec) -> object:
    """What makes a turn the same; on which generation it ran is a matter of its time."""
    return msgspec.structs.replace(spec, generation=None)


def _wire_id(spec: TurnSpec, attempt: int) -> str:
    """Task ids are unique on the wire: revisions, retries and attempts have their own (C3)."""
    name = spec.task_id or spec.key
    name += f".r{spec.revision}" if spec.revision else ""
    name += ".again" if spec.again else ""
    name += f".c{spec.continuation}" if spec.continuation else ""
    return name + (f".a{attempt}" if attempt > 1 else "")


def _constraints(spec: TurnSpec) -> Any:
    if spec.access is not Access.WORK:
        return UNSET
    return TaskConstraints(scope=spec.scope or ("**",), testing_required=spec.testing_required)


def _context(spec: TurnSpec) -> Any:
    if not spec.previous_attempts:
        return UNSET
    return TaskContext(specs=(), reference_files=(), previous_attempts=spec.previous_attempts)


def _outcome_of(envelope: Envelope, elapsed_ms: int) -> TurnOutcome:
    body = envelope.body
    if isinstance(body, TaskResult):
        report = report_in(body)
        well = envelope.kind is Kind.TASK_COMPLETE
        failure = report.failure if isinstance(report.failure, FailureClass) else None
        return TurnOutcome(
            report=report,
            ok=well,
            reason="" if well else body.error_message or body.summary or "it failed",
            failure=None if well else failure or FailureClass.UNKNOWN,
            duration_ms=elapsed_ms,
        )
    if isinstance(body, TaskReject):
        said = f": {body.message}" if body.message else ""
        return _not_done(f"{envelope.sender.id} does not take it ({body.reason}){said}", elapsed_ms)
    assert isinstance(body, Error)
    return _not_done(body.error_message, elapsed_ms)


def _not_done(reason: str, elapsed_ms: int) -> TurnOutcome:
    return TurnOutcome(
        report=Report(),
        ok=False,
        reason=reason,
        failure=FailureClass.UNKNOWN,
        duration_ms=elapsed_ms,
    )


def _progressed(
    spec: TurnSpec, body: TaskProgress, *, part: int = 0, line: int = 0
) -> e.TurnProgressed:
    return e.TurnProgressed(
        actor=spec.to,
        provenance=e.Provenance.WORKER_PROPOSAL,
        interaction_id=spec.place.interaction_id or None,
        payload=e.Progress(
            turn_id=spec.key,
            step=_shortened(body.current_step or ""),
            files=body.files_modified_so_far or (),
            task_id=spec.task_id,
            part=part,
            line=line,
        ),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
