"""A member at work: takes tasks from its mailbox, runs turns, hands in what changed (D40).

It speaks to the hub like any other agent, over a connection, and knows nothing of the engine. Every
task ends with a message (H8), whatever its runtime does. One agent has one head: its turns run one
after the other; a newer attempt of a turn ends the older one.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from msgspec import UNSET, Struct

from agentcanvas.agents.answers import AnswerForm, JsonForm
from agentcanvas.agents.handing_in import HandedIn, hand_in
from agentcanvas.agents.limited import Limited, Progress
from agentcanvas.agents.outbound import Outbound
from agentcanvas.agents.place import Place, keep_attempt, place_for
from agentcanvas.agents.prompt import render
from agentcanvas.agents.recorded import Recorded
from agentcanvas.agents.runtime import Emit, Image, Outcome, Runtime, Turn, TurnResult, failed
from agentcanvas.agents.stoppable import Stoppable
from agentcanvas.agents.way_out import WayOut
from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, Disconnected
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.images import unchanged_image
from agentcanvas.proposals.apply import STATE_FOLDER
from agentcanvas.protocol import kinds
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import (
    AgentStatus,
    Heartbeat,
    Kind,
    TaskAssign,
    TaskCancel,
    TaskProgress,
    TaskResult,
)
from agentcanvas.protocol.limits import HeartbeatLimits, TaskLimits
from agentcanvas.protocol.packet import Packet, packet_of
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.turns import Access, Order, Report, order_in
from agentcanvas.protocol.values import freeze
from agentcanvas.sandbox.confine import Confinement

_LONGEST_TEXT = 100_000
_LIMITS = frozenset({FailureClass.RATE_LIMIT, FailureClass.QUOTA, FailureClass.HANDED_OFF})
_ACCEPT_AFTER_S = 1.0
"""A turn that ends sooner is taken over and answered in one go."""


class Mailroom(Protocol):
    """A host's end of a connection; several hosts of one agent may share what lies behind it."""

    def receive(self) -> AsyncIterator[Delivery]:
        """Iterate over the messages as they come."""
        ...

    async def send(self, envelope: Envelope) -> object:
        """Send a message; it is safe when this returns."""
        ...


class Member(Struct, frozen=True, kw_only=True):
    """What a host has to know of its agent; time limits in seconds."""

    id: str
    env: tuple[str, ...] = ()
    way_out: WayOut = WayOut()
    timeout_s: float | None = 1800.0
    silent_s: float | None = 300.0
    capabilities: tuple[str, ...] = ()


class _GivenUp(Exception):
    """A turn that was stopped before it began."""


class Host:
    """One member, on one connection."""

    def __init__(
        self,
        member: Member,
        runtime: Runtime,
        connection: Mailroom,
        *,
        workspace: Path,
        confinement: Confinement,
        clock: Clock,
        keep: Emit,
        next_seq: int = 0,
        beats: HeartbeatLimits = HeartbeatLimits(),  # noqa: B008  # frozen
        limits: TaskLimits = TaskLimits(),  # noqa: B008  # frozen
    ) -> None:
        self._member = member
        self._connection = connection
        self._workspace = workspace
        self._confinement = confinement
        self._clock = clock
        self._beats = beats
        self._stoppable = Stoppable(Limited(runtime, clock, self._progress, limits=limits))
        outbound = Outbound(self._stoppable, member.way_out)
        self._runtime = Recorded(outbound, clock, keep, next_seq=next_seq)
        self._head = anyio.Lock(fast_acquire=True)
        self._asked: dict[str, Delivery] = {}
        self._given_up: dict[str, str] = {}
        """Why a task is not to be done, by the id of its message."""

    async def serve(self) -> None:
        """Work until the connection ends or the task is cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._beat)
            try:
                async for delivery in self._connection.receive():
                    await self._take(delivery, tasks)
            except Disconnected:
                pass
            tasks.cancel_scope.cancel()

    async def _take(self, delivery: Delivery, tasks: anyio.abc.TaskGroup) -> None:
        body = delivery.envelope.body
        if isinstance(body, TaskAssign):
            order = order_in(body) or _order_of_a_stranger(delivery.envelope, body)
            if order.turn_id in self._asked:
                await self._give_up(order.turn_id, "a newer attempt has begun")
            self._asked[order.turn_id] = delivery
            tasks.start_soon(self._answer, delivery, body, order)
            return
        if isinstance(body, TaskCancel) and body.target_id is not UNSET:
            for turn_id, asked in list(self._asked.items()):
                if body.target_id in (asked.envelope.id, asked.envelope.task_id):
                    await self._give_up(turn_id, body.reason or "cancelled")
        await delivery.ack()

    async def _give_up(self, turn_id: str, reason: str) -> None:
        """End a turn; one that waits for its place will not begin."""
        self._given_up[self._asked[turn_id].envelope.id] = reason
        await self._stoppable.stop(turn_id, reason)

    async def _answer(self, delivery: Delivery, assign: TaskAssign, order: Order) -> None:
        """Run one turn and send its result; taking the task over goes with it if it is quick."""
        started = self._clock.monotonic()
        taken = anyio.Event()
        async with anyio.create_task_group() as tasks:
            slow = ring_at(
                self._clock,
                started + _ACCEPT_AFTER_S,
                lambda: tasks.start_soon(self._accept, delivery, taken),
            )
            try:
                async with self._head:
                    result = await self._turn(order, assign, delivery.envelope.id)
            finally:
                slow.cancel()
                self._given_up.pop(delivery.envelope.id, None)
        if self._asked.get(order.turn_id) is delivery:
            del self._asked[order.turn_id]
        result = msgspec.structs.replace(
            result, duration_ms=round((self._clock.monotonic() - started) * 1000)
        )
        reply = self._reply(delivery.envelope, result)
        await self._send(reply, None if taken.is_set() else delivery)

    async def _send(self, reply: Envelope, asked: Delivery | None) -> None:
        """Send the end of a task; what cannot be sent must not end the agent with it."""
        try:
            await (self._connection.send(reply) if asked is None else asked.answer(reply))
        except Disconnected:
            raise
        except AgentCanvasError as refusal:
            body = TaskResult(
                task_id=reply.task_id or UNSET,
                status=kinds.Outcome.FAILED,
                error_code=refusal.code,
                error_message=f"The answer could not be sent: {refusal}",
            )
            with suppress(AgentCanvasError):
                await self._connection.send(
                    msgspec.structs.replace(reply, id=new_id(), kind=Kind.TASK_FAIL, body=body)
                )

    async def _accept(self, delivery: Delivery, taken: anyio.Event) -> None:
        with anyio.CancelScope(shield=True):
            taken.set()
            await delivery.ack()
            accept = kinds.TaskAccept(task_id=delivery.envelope.task_id or UNSET)
            await self._connection.send(self._message(delivery.envelope, Kind.TASK_ACCEPT, accept))

    async def _turn(self, order: Order, assign: TaskAssign, message_id: str) -> TaskResult:
        task = assign.task_id
        try:
            self._refuse_given_up(message_id)
            place = await place_for(order, self._member.id, self._workspace, self._confinement)
            packet = _packet(assign, order)
            turn = self._turn_of(order, packet, place)
            if order.images:
                images = await anyio.to_thread.run_sync(self._images_of, order)
                turn = msgspec.structs.replace(turn, images=images)
            self._refuse_given_up(message_id)
            result = await self._runtime.run(turn, lambda _: None)
            handed_in = await self._hand_in(place, order, packet, result)
            partial = await self._partial(place, order, result)
            return _task_result(task, result, handed_in, partial)
        except _GivenUp as given_up:
            return _task_result(task, failed(str(given_up), FailureClass.CANCELLED), None)
        except AgentCanvasError as error:
            sentence = str(error)
        except OSError as error:  # a full disk, or a sandbox that somebody took away
            sentence = f"The work of {self._member.id} cannot be read: {error.strerror or error}."
        except UnicodeError as error:
            sentence = f"{self._member.id} answered with text that is not valid Unicode: {error}."
        return _task_result(task, failed(sentence, FailureClass.CRASH), None)

    def _refuse_given_up(self, message_id: str) -> None:
        if message_id in self._given_up:
            raise _GivenUp(f"{self._member.id} was stopped: {self._given_up[message_id]}")

    async def _hand_in(
        self, place: Place | None, order: Order, packet: Packet, result: TurnResult
    ) -> HandedIn | None:
        if place is None or place.sandbox is None:
            return None
        if result.outcome is Outcome.OK:
            return await hand_in(place.sandbox, order, packet, result, self._clock)
        await keep_attempt(place.sandbox, msgspec.structs.replace(order, attempt=order.attempt + 1))
        return None

    async def _partial(self, place: Place | None, order: Order, result: TurnResult) -> str:
        """What was changed before a limit of the service; whoever goes on begins with it."""
        if place is None or place.sandbox is None or result.error_class not in _LIMITS:
            return ""
        name = f"partial-{hashlib.sha256(order.turn_id.encode()).hexdigest()[:12]}.patch"
        path = await keep_attempt(place.sandbox, order, name=name)
        return path.relative_to(place.sandbox.base.workspace).as_posix() if path else ""

    def _turn_of(self, order: Order, packet: Packet, place: Place | None) -> Turn:
        form = _form(order)
        folder = place.view.tree if place else None
        prompt = render(packet, folder, form=form, images=bool(order.images))
        return Turn(
            turn_id=order.turn_id,
            run_id=order.run_id,
            agent_id=self._member.id,
            prompt=prompt,
            role=order.role,
            number=order.number,
            task_id=packet.task_id,
            revision=order.revision,
            attempt=order.attempt,
            form=form,
            place=place.view if place else None,
            env=self._member.env,
            timeout_s=_patient(self._member.timeout_s, order),
            silent_s=_patient(self._member.silent_s, order),
            session_id=order.session_id or None,
        )

    def _images_of(self, order: Order) -> tuple[Image, ...]:
        state = self._workspace / STATE_FOLDER
        return tuple(Image(unchanged_image(state, ref), ref.media) for ref in order.images)

    # -- signs of life ---------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await self._clock.sleep(self._beats.interval_s)
            busy = len(self._asked)
            status = AgentStatus.BUSY if busy else AgentStatus.IDLE
            beat = Heartbeat(
                status=status,
                load=min(1.0, float(busy)),
                tasks_running=min(1, busy),
                tasks_queued=max(0, busy - 1),
                capabilities=self._member.capabilities,
            )
            await self._connection.send(
                Envelope(
                    id=new_id(),
                    kind=Kind.HEARTBEAT,
                    time=self._clock.now(),
                    sender=AgentRef(self._member.id),
                    body=beat,
                )
            )

    async def _progress(self, progress: Progress) -> None:
        delivery = self._asked.get(progress.turn_id)
        if delivery is None:
            return
        body = TaskProgress(
            task_id=delivery.envelope.task_id or UNSET,
            status="in_progress",
            current_step=progress.current_step or UNSET,
            files_modified_so_far=progress.files,
        )
        await self._connection.send(self._message(delivery.envelope, Kind.TASK_PROGRESS, body))

    # -- messages --------------------------------------------------------------------------------

    def _reply(self, asked: Envelope, result: TaskResult) -> Envelope:
        well = result.status is kinds.Outcome.SUCCESS
        return self._message(asked, Kind.TASK_COMPLETE if well else Kind.TASK_FAIL, result)

    def _message(self, asked: Envelope, kind: Kind, body: Any) -> Envelope:
        return Envelope(
            id=new_id(),
            kind=kind,
            time=self._clock.now(),
            sender=AgentRef(self._member.id),
            recipient=asked.sender,
            session=asked.session,
            body=body,
            reply_to=asked.id,
            correlation_id=asked.correlation_id or asked.id,
            priority=asked.priority,
        )


def asker(connection: Connection, agent_id: str, clock: Clock) -> Callable[..., Awaitable[str]]:
    """How a turn asks another member: an ordinary task over the agent's own connection (D23)."""

    async def ask(turn: Turn, to: str, text: str) -> str:
        envelope = Envelope(
            id=new_id(),
            kind=Kind.TASK_ASSIGN,
            time=clock.now(),
            sender=AgentRef(agent_id),
            recipient=AgentRef(to),
            session=turn.run_id,
            body=TaskAssign(task_id=f"{turn.turn_id}/{new_id()[:8]}", input=freeze(text)),
            timeout_ms=round(turn.timeout_s * 1000) if turn.timeout_s else UNSET,
        )
        delivery = await connection.request(envelope, timeout_s=turn.timeout_s)
        await delivery.ack()
        body = delivery.envelope.body
        if not isinstance(body, TaskResult) or delivery.envelope.kind is not Kind.TASK_COMPLETE:
            said = getattr(body, "error_message", UNSET) or getattr(body, "message", UNSET)
            raise AgentCanvasError(f"{to} did not answer: {said or delivery.envelope.kind}")
        return body.summary or ""

    return ask


def _order_of_a_stranger(envelope: Envelope, assign: TaskAssign) -> Order:
    """A task from somebody who gives no orders: a plain question without files."""
    return Order(
        message=packet_of(assign).task,
        turn_id=envelope.id,
        run_id=envelope.session or "default",
    )


def _patient(limit_s: float | None, order: Order) -> float | None:
    return None if limit_s is None else limit_s * order.patience


def _packet(assign: TaskAssign, order: Order) -> Packet:
    plain = msgspec.structs.replace(assign, input=freeze(order.message), task_id=order.task_id)
    return packet_of(plain, rules=order.rules, skills=order.skills)


def _form(order: Order) -> AnswerForm | None:
    if order.answer_schema is not UNSET:
        return JsonForm(msgspec.json.decode(order.answer_schema, type=dict[str, Any]))
    reports = order.access is Access.WORK and not order.own_words
    return StandardResponse if reports else None


def _task_result(
    task: Any,
    result: TurnResult,
    handed_in: HandedIn | None,
    partial: str = "",
) -> TaskResult:
    well = result.outcome is Outcome.OK
    typed = well and not result.breach and not isinstance(result.value, StandardResponse)
    report = Report(
        text=_within_reason(result.text),
        value=freeze(result.value) if typed and result.value is not UNSET else UNSET,
        breach=result.breach,
        proposal=handed_in.ref if handed_in else UNSET,
        summary=handed_in.summary if handed_in else "",
        usage=result.usage,
        session_id=result.session_id or "",
        failure=result.error_class or UNSET,
        timed_out=result.outcome in (Outcome.TIMEOUT, Outcome.STALLED),
        retry_at_ms=UNSET if result.retry_at_ms is None else max(0, result.retry_at_ms),
        partial=partial,
        hand_to=result.hand_to,
        notes=(*result.notes, *(handed_in.notes if handed_in else ())),
    )
    return TaskResult(
        task_id=task,
        status=kinds.Outcome.SUCCESS if well else _unwell(result),
        output=freeze(report),
        summary=_within_reason((handed_in.summary if handed_in else result.text) or result.error),
        error_code=UNSET if well else (result.error_class or FailureClass.UNKNOWN).value.upper(),
        error_message=UNSET if well else _within_reason(result.error),
    )


def _within_reason(text: str) -> str:
    """What a message can carry; the whole of it is in the transcript."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _unwell(result: TurnResult) -> kinds.Outcome:
    timed_out = result.outcome in (Outcome.TIMEOUT, Outcome.STALLED)
    return kinds.Outcome.TIMEOUT if timed_out else kinds.Outcome.FAILED
