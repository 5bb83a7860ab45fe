"""An agent at work on one connection: takes tasks, sees each to its end, and shows that it lives.

Who does which task is the ``Worker``'s to say; making and mending the connection is left to others.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec
from msgspec import UNSET

from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentCanvasError,
    Disconnected,
    PermissionDenied,
    ResourceError,
)
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.client import Connection, Delivery
from agentcanvas.hub.conversations import Client
from agentcanvas.hub.guard import is_agent
from agentcanvas.hub.tasks import Task
from agentcanvas.protocol.answers import error_answer
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import (
    AgentStatus,
    CancelScope,
    Heartbeat,
    Kind,
    Outcome,
    RejectReason,
    StatusQuery,
    StatusResponse,
    TaskAssign,
    TaskCancel,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.limits import Limits

Handler: TypeAlias = Callable[[Task], Awaitable[Any]]
Listener: TypeAlias = Callable[[Envelope], Awaitable[Any]]

ACCEPT_AFTER_S = 1.0
"""A task that ends sooner is accepted when it ends, and one that is rejected never."""

_CANCELS_KEPT = 1_000
_RESENT_AT_MOST_EVERY_S = 60.0
_GRACE_S = 10.0
"""How long an agent that is told to stop may take to say what it leaves undone."""

_log = logging.getLogger(__name__)


class Worker(Protocol):
    """Whose shift it is."""

    name: str
    limits: Limits
    max_parallel: int

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it says it can do."""
        ...

    def handler_for(self, assignment: TaskAssign) -> Handler | None:
        """Find who does a task."""
        ...

    def listener_for(self, kind: Kind) -> Listener | None:
        """Find who listens to a kind of message."""
        ...


class Shift:
    """An agent at work on one connection."""

    def __init__(self, agent: Worker, connection: Connection, clock: Clock) -> None:
        self.client = Client(connection, agent.name, clock, limits=agent.limits)
        self._agent = agent
        self._connection = connection
        self._clock = clock
        self._limits = agent.limits
        self._room = anyio.CapacityLimiter(agent.max_parallel)
        self._tasks: dict[tuple[str, str], Task] = {}
        """By sender and message, until each has ended."""
        self._stops: OrderedDict[tuple[str, str], TaskCancel] = OrderedDict()
        """Orders to stop what has not come yet: they may overtake it (D29)."""
        self._over = anyio.Event()
        self._reason: Disconnected | None = None

    async def over(self) -> None:
        """Return when there is nothing more to do; raise why."""
        await self._over.wait()
        if self._reason is not None:
            raise self._reason

    async def work(self) -> None:
        """Do what comes."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._beat)
                try:
                    async for delivery in self._connection.receive():
                        await self._take(delivery, group)
                except Disconnected as reason:
                    self._reason = reason
                    group.cancel_scope.cancel()
        finally:
            self._over.set()

    @property
    def running(self) -> int:
        """How many tasks are being done."""
        return self._room.borrowed_tokens

    @property
    def queued(self) -> int:
        """How many wait for their turn."""
        return len(self._tasks) - self.running

    # -- what comes ------------------------------------------------------------------------------

    async def _take(self, delivery: Delivery, group: anyio.abc.TaskGroup) -> None:
        envelope = delivery.envelope
        body = envelope.body
        if isinstance(body, TaskAssign):
            key = (envelope.sender.id, envelope.id)
            if key in self._tasks:  # it is being done: only the news of it was lost
                await delivery.ack()
                return
            task = Task(delivery, self._agent.name, self._clock, self._send, self.client)
            self._tasks[key] = task
            group.start_soon(self._do, task, key)
            return
        if isinstance(body, TaskCancel):
            await self._stop(envelope, body)
        elif isinstance(body, StatusQuery):
            await self._send(self._status(envelope, body))
        elif (listener := self._agent.listener_for(envelope.kind)) is not None:
            try:
                await listener(envelope)
            except Exception:  # noqa: BLE001 - a listener's fault must not end the agent
                _log.exception("%s: a listener to %s failed", self._agent.name, envelope.kind)
        await delivery.ack()

    async def _do(self, task: Task, key: tuple[str, str]) -> None:
        """See one task to its end, whatever happens on the way."""
        try:
            with task.scope:
                early = self._stops.pop((task.sender, task.id), None)
                if early is not None:
                    self._cancel(task, early)
                await anyio.lowlevel.checkpoint()
                handler = self._agent.handler_for(task.assignment)
                if handler is None:
                    self._refuse(task)
                else:
                    async with self._room:
                        await self._handle(task, handler)
        finally:
            if task.cancelled is not None:
                task.end_cancelled(task.cancelled.reason or "The task was cancelled.")
            task.end_cancelled(f"{self._agent.name} stopped working.", retry_possible=True)
            try:
                await self._finish(task)
            finally:
                del self._tasks[key]

    async def _finish(self, task: Task) -> None:
        """Say how a task ended; an agent that is told to go has a moment left for it."""
        try:
            await self._end(task)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True) as grace:
                limit = ring_at(self._clock, self._clock.monotonic() + _GRACE_S, grace.cancel)
                try:
                    await self._end(task)
                finally:
                    limit.cancel()
            raise

    async def _handle(self, task: Task, handler: Handler) -> None:
        timeout_s = (task.envelope.timeout_ms or self._limits.task.timeout_s * 1000) / 1000
        deadline = self._clock.monotonic() + timeout_s

        def be_late() -> None:
            task.end_late(timeout_s)
            task.scope.cancel()

        async with anyio.create_task_group() as beside:
            limit = ring_at(self._clock, deadline, be_late)
            beside.start_soon(self._report, task)
            try:
                task.end_well(await handler(task))
            except Exception as error:  # noqa: BLE001 - whatever it is, the task has to end
                if not isinstance(error, AgentCanvasError) and not task.ended:
                    _log.exception("%s failed at the task %s", self._agent.name, task.id)
                task.end_with(error)
            finally:
                limit.cancel()
                beside.cancel_scope.cancel()

    async def _report(self, task: Task) -> None:
        """Accept a task that takes a moment, and speak up for one that takes long (H8)."""
        await self._clock.sleep(ACCEPT_AFTER_S)
        await task.accept()
        limits = self._limits.task
        await self._clock.sleep(limits.progress_after_s - ACCEPT_AFTER_S)
        while True:
            due = task.reported_at + limits.progress_every_s
            if self._clock.monotonic() >= due:
                await task.progress()
            else:
                await self._clock.sleep_until(due)

    # -- stopping --------------------------------------------------------------------------------

    async def _stop(self, envelope: Envelope, order: TaskCancel) -> None:
        sender, target = envelope.sender.id, order.target_id or ""
        whole_session = order.scope is CancelScope.SESSION
        found = [
            task
            for task in self._tasks.values()
            if (task.session == target if whole_session else target in (task.id, task.envelope.id))
        ]
        # An agent stops what it asked for itself; the engine and people stop anything.
        theirs = [task for task in found if task.sender == sender or not is_agent(sender)]
        for task in theirs:
            self._cancel(task, order)
        if found and not theirs:
            refusal = PermissionDenied(f"{sender} cannot stop a task that it did not assign.")
            await self._send(
                error_answer(
                    refusal,
                    id=new_id(),
                    time=self._clock.now(),
                    sender=self._agent.name,
                    recipient=sender,
                    original_message_id=envelope.id,
                )
            )
        elif not found and not whole_session:
            self._stops[sender, target] = order
            while len(self._stops) > _CANCELS_KEPT:
                self._stops.popitem(last=False)

    def _cancel(self, task: Task, order: TaskCancel) -> None:
        """Stop a task; its handler may still set ``partial`` on its way out."""
        task.cancelled = order
        task.scope.cancel()

    def _refuse(self, task: Task) -> None:
        wanted = task.assignment.task_type or task.assignment.action or "any task"
        task.end(
            Kind.TASK_REJECT,
            TaskReject(
                task_id=task.id,
                reason=RejectReason.CAPABILITY_MISMATCH,
                message=f"{self._agent.name} has no handler for {wanted}.",
                suggested_agents=(),
            ),
        )

    # -- what goes out ---------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            beat = Heartbeat(
                status=self._state,
                load=min(1.0, len(self._tasks) / self._agent.max_parallel),
                tasks_running=self.running,
                tasks_queued=self.queued,
                capabilities=self._agent.capabilities,
            )
            await self._send(
                Envelope(
                    id=new_id(),
                    kind=Kind.HEARTBEAT,
                    time=self._clock.now(),
                    sender=AgentRef(self._agent.name),
                    body=beat,
                )
            )
            await self._clock.sleep(self._limits.heartbeat.interval_s)

    @property
    def _state(self) -> AgentStatus:
        if not self._tasks:
            return AgentStatus.IDLE
        return AgentStatus.BUSY if self.running >= self._agent.max_parallel else AgentStatus.ACTIVE

    def _status(self, asked: Envelope, query: StatusQuery) -> Envelope:
        found = [task for task in self._tasks.values() if query.task_id in (task.id, UNSET)]
        status: str = self._state.value
        progress: Any = UNSET
        if query.task_id is not UNSET:
            status = "RUNNING" if found else "UNKNOWN"
            if found and found[0].percent is not None:
                progress = found[0].percent
        body = StatusResponse(
            query_id=asked.id,
            task_id=query.task_id,
            agent_id=self._agent.name,
            status=status,
            progress=progress,
        )
        return Envelope(
            id=new_id(),
            kind=Kind.STATUS_RESPONSE,
            time=self._clock.now(),
            sender=AgentRef(self._agent.name),
            recipient=asked.sender,
            session=asked.session,
            body=body,
            reply_to=asked.id,
            correlation_id=asked.correlation_id or asked.id,
        )

    async def _send(self, envelope: Envelope, taking: Sequence[Delivery] = ()) -> None:
        """Send what is worth a try only: a refusal of it must not end the agent."""
        try:
            await self._connection.send(envelope, taking=taking)
        except AgentCanvasError as refusal:
            _log.warning("%s: %s was not sent: %s", self._agent.name, envelope.kind, refusal.code)

    async def _end(self, task: Task) -> None:
        """Say how a task ended, in one go with what is still to be said before."""
        opening, ending = task.last_words()
        async with anyio.create_task_group() as together:
            if opening is not None:
                together.start_soon(self._send, opening)
            together.start_soon(self._insist, task, ending)

    async def _insist(self, task: Task, ending: Envelope) -> None:
        """Send the end of a task, however long that takes; one that is refused is replaced."""
        pause_s = 1.0
        while True:
            try:
                await self._connection.send(ending, taking=task.untaken())
            except Disconnected:
                return  # the hub tells whoever asked that this agent is lost
            except ResourceError as full:
                task.taken = True
                if not full.recoverable:
                    return
                await self._clock.sleep(pause_s)
                pause_s = min(2 * pause_s, _RESENT_AT_MOST_EVERY_S)
            except AgentCanvasError as refusal:
                task.taken = True
                if ending.kind is Kind.TASK_FAIL:
                    _log.warning("%s: no end of a task was sent: %s", self._agent.name, refusal)
                    return
                ending = _replaced(ending, refusal)
            else:
                task.taken = True
                return


def _replaced(ending: Envelope, refusal: AgentCanvasError) -> Envelope:
    """Say, in place of an answer that cannot be sent, why not."""
    body = TaskResult(
        task_id=ending.task_id or UNSET,
        status=Outcome.FAILED,
        error_code=refusal.code,
        error_message=f"The answer could not be sent: {refusal}",
        retry_possible=False,
    )
    return msgspec.structs.replace(ending, id=new_id(), kind=Kind.TASK_FAIL, body=body)
