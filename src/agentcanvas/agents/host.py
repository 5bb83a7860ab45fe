"""A member at work: takes tasks from its mailbox, runs turns, hands in what changed (D40).

It speaks to the hub like any other agent, over a connection, and knows nothing of the engine. Every
task ends with a message (H8), whatever its runtime does. One agent has one head: its turns run one
after the other; a newer attempt of a turn ends the older one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from msgspec import UNSET

from agentcanvas.agents.handing_in import HandedIn, hand_in
from agentcanvas.agents.limited import Limited, Progress
from agentcanvas.agents.orders import Member, order_of_a_stranger, packet_in, turn_of
from agentcanvas.agents.outbound import Outbound
from agentcanvas.agents.parts import in_parts
from agentcanvas.agents.place import Place, keep_attempt, place_for
from agentcanvas.agents.recorded import Recorded
from agentcanvas.agents.results import task_result
from agentcanvas.agents.runtime import Emit, Image, Outcome, Runtime, Turn, TurnResult, failed
from agentcanvas.agents.stoppable import Stoppable
from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentCanvasError,
    Disconnected,
    StoreBusy,
    StoreError,
    StoreFull,
)
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.images import unchanged_image
from agentcanvas.proposals.apply import STATE_FOLDER
from agentcanvas.protocol import kinds
from agentcanvas.protocol.envelope import AgentRef, Envelope
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
from agentcanvas.protocol.packet import Packet
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.turns import PARTIAL, Order, order_in
from agentcanvas.sandbox.confine import Confinement
from agentcanvas.sandbox.disk import in_words, sandbox_size

_log = logging.getLogger(__name__)

_LIMITS = frozenset({FailureClass.RATE_LIMIT, FailureClass.QUOTA, FailureClass.HANDED_OFF})
_AGAIN_AFTER_S = 5.0
"""How long to wait for a hub that could not keep an answer."""

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


class _GivenUp(Exception):
    """A turn that was stopped before it began."""


class _Asked:
    """A task in hand; that it was taken over is said before its end if it takes its time."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.envelope = delivery.envelope
        self.is_taken = False
        self.is_over = False
        self.accepting = asyncio.Lock()


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
        self._tasks: anyio.abc.TaskGroup | None = None
        self._asked: dict[str, _Asked] = {}
        self._given_up: dict[str, str] = {}
        """Why a task is not to be done, by the id of its message."""

    async def serve(self) -> None:
        """Work until the connection ends or the task is cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
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
            order = order_in(body) or order_of_a_stranger(delivery.envelope, body)
            before = self._asked.get(order.turn_id)
            if before is not None and before.envelope.id == delivery.envelope.id:
                tasks.start_soon(
                    self._accept, before
                )  # it came again: nobody knows that we have it
                return
            if before is not None:
                await self._give_up(order.turn_id, "a newer attempt has begun")
            asked = self._asked[order.turn_id] = _Asked(delivery)
            tasks.start_soon(self._answer, asked, body, order, tasks)
            return
        if isinstance(body, TaskCancel) and body.target_id is not UNSET:
            for turn_id, asked in list(self._asked.items()):
                if body.target_id in (asked.envelope.id, asked.envelope.task_id):
                    await self._give_up(turn_id, body.reason or "cancelled")
        with suppress(StoreError):  # it comes again
            await delivery.ack()

    async def _give_up(self, turn_id: str, reason: str) -> None:
        """End a turn; one that waits for its place will not begin."""
        self._given_up[self._asked[turn_id].envelope.id] = reason
        await self._stoppable.stop(turn_id, reason)

    async def _answer(
        self, asked: _Asked, assign: TaskAssign, order: Order, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Run one turn and send its result; taking the task over goes with it if it is quick."""
        started, message_id = self._clock.monotonic(), asked.envelope.id
        slow = ring_at(
            self._clock,
            started + _ACCEPT_AFTER_S,
            lambda: tasks.start_soon(self._accept, asked),
        )
        try:
            async with self._head:
                result = await self._turn(order, assign, message_id)
        finally:
            slow.cancel()
            self._given_up.pop(message_id, None)
        async with asked.accepting:
            asked.is_over = True
        result = msgspec.structs.replace(
            result, duration_ms=round((self._clock.monotonic() - started) * 1000)
        )
        reply = self._reply(asked.envelope, result)
        await self._send(reply, None if asked.is_taken else asked.delivery)
        if self._asked.get(order.turn_id) is asked:
            del self._asked[order.turn_id]

    async def _send(self, reply: Envelope, asked: Delivery | None) -> None:
        """Send the end of a task; what cannot be sent must not end the agent with it."""
        try:
            await self._send_when_it_can_be_kept(reply, asked)
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

    async def _send_when_it_can_be_kept(self, reply: Envelope, asked: Delivery | None) -> None:
        """What a turn came to may have cost much; it waits for a full disk to have room."""
        is_told = False
        while True:
            try:
                await (self._connection.send(reply) if asked is None else asked.answer(reply))
            except (StoreFull, StoreBusy) as refusal:
                if isinstance(refusal, StoreFull) and not is_told:
                    is_told = True
                    # Not an event: there is no room to record one.
                    _log.warning("%s", await self._what_it_waits_for(reply))
                await self._clock.sleep(_AGAIN_AFTER_S)
            else:
                return

    async def _what_it_waits_for(self, reply: Envelope) -> str:
        holds = ""
        with suppress(AgentCanvasError, OSError):
            run_id = reply.session or ""
            if size := await sandbox_size(self._workspace, run_id, self._member.id):
                holds = f" Its sandbox holds {in_words(size)}: agentcanvas sandbox list."
        return (
            f"The disk is full, so what {self._member.id} did cannot be recorded; it waits for "
            f"room.{holds} Ctrl-C, or agentcanvas stop, ends the run, and the turn is done again "
            "by agentcanvas resume."
        )

    async def _accept(self, asked: _Asked) -> None:
        """Take a task over; where that fails it comes again, or its end does it."""
        accept = kinds.TaskAccept(task_id=asked.envelope.task_id or UNSET)
        message = self._message(asked.envelope, Kind.TASK_ACCEPT, accept)
        with anyio.CancelScope(shield=True), suppress(AgentCanvasError):
            async with asked.accepting:
                if not (asked.is_taken or asked.is_over):
                    await asked.delivery.answer(message)
                    asked.is_taken = True

    async def _turn(self, order: Order, assign: TaskAssign, message_id: str) -> TaskResult:
        task = assign.task_id
        try:
            self._refuse_given_up(message_id)
            place = await place_for(order, self._member.id, self._workspace, self._confinement)
            packet = packet_in(assign, order)
            turn = turn_of(self._member, order, packet, place)
            if order.images:
                images = await anyio.to_thread.run_sync(self._images_of, order)
                turn = msgspec.structs.replace(turn, images=images)
            self._refuse_given_up(message_id)
            result = await self._run(turn, streamed=order.streamed)
            handed_in = await self._hand_in(place, order, packet, result)
            partial = await self._partial(place, order, result)
            return task_result(task, result, handed_in, partial)
        except _GivenUp as given_up:
            return task_result(task, failed(str(given_up), FailureClass.CANCELLED), None)
        except AgentCanvasError as error:
            sentence = str(error)
        except OSError as error:  # a full disk, or a sandbox that somebody took away
            sentence = f"The work of {self._member.id} cannot be read: {error.strerror or error}."
        except UnicodeError as error:
            sentence = f"{self._member.id} answered with text that is not valid Unicode: {error}."
        return task_result(task, failed(sentence, FailureClass.CRASH), None)

    async def _run(self, turn: Turn, *, streamed: bool) -> TurnResult:
        """Run a turn; what is said before its end goes out as it comes, where that is wanted."""
        if not streamed:
            return await self._runtime.run(turn, lambda _: None)

        async def send(said: str) -> None:
            message = self._on_the_way(turn.turn_id, said, status=PARTIAL)
            if message is not None:
                await self._say(message)

        async with in_parts(send, self._clock) as emit:
            return await self._runtime.run(turn, emit)

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
            await self._say(
                Envelope(
                    id=new_id(),
                    kind=Kind.HEARTBEAT,
                    time=self._clock.now(),
                    sender=AgentRef(self._member.id),
                    body=beat,
                )
            )

    def _progress(self, progress: Progress) -> None:
        message = self._on_the_way(progress.turn_id, progress.current_step, files=progress.files)
        if message is not None and self._tasks is not None:
            self._tasks.start_soon(self._say, message)

    def _on_the_way(
        self, turn_id: str, step: str, *, status: str = "in_progress", files: tuple[str, ...] = ()
    ) -> Envelope | None:
        """What is told of a turn before its end; nothing when it is over."""
        asked = self._asked.get(turn_id)
        if asked is None:
            return None
        body = TaskProgress(
            task_id=asked.envelope.task_id or UNSET,
            status=status,
            current_step=step or UNSET,
            files_modified_so_far=files,
        )
        return self._message(asked.envelope, Kind.TASK_PROGRESS, body)

    async def _say(self, message: Envelope) -> None:
        """Send what is worth saying and not worth ending a turn for."""
        with suppress(AgentCanvasError):
            await self._connection.send(message)

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
