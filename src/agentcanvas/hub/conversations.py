"""Speaking to other agents in calls: request, send, broadcast, pipeline, gather, status, cancel.

A ``Client`` speaks over a ``Connection`` as one agent. It writes the messages and reads the
answers; what to do about a bad one is left to ``recovery``, whose wrappers it may ask through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import (
    AgentCanvasError,
    DeadlineExceeded,
    TaskFailed,
    TaskRejected,
)
from agentcanvas.hub.alarm import ring_at
from agentcanvas.hub.broker import Receipt
from agentcanvas.hub.client import INTERIM, Connection
from agentcanvas.hub.failures import failure_in
from agentcanvas.hub.recovery import Asking
from agentcanvas.protocol.envelope import BROADCAST, AgentRef, Envelope, Security
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import (
    Action,
    Artifact,
    Body,
    Broadcast,
    CancelScope,
    Kind,
    Outcome,
    StatusQuery,
    StatusResponse,
    TaskAssign,
    TaskCancel,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.limits import Limits
from agentcanvas.protocol.values import freeze, thaw

_DEFAULTS = Limits()


class Call(Struct, frozen=True, kw_only=True):
    """A task for somebody; without a timeout it has that of ``limits`` (D32)."""

    to: str
    task_type: str
    input: Any = None
    action: Action | UnsetType = UNSET
    requirements: Mapping[str, Any] | UnsetType = UNSET
    timeout_s: float | None = None
    priority: int | UnsetType = UNSET
    permissions: tuple[str, ...] | UnsetType = UNSET
    require_approval: bool | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    correlation_id: str | UnsetType = UNSET
    callback_url: str | UnsetType = UNSET
    """Called by the hub when the task has ended, where its settings permit that (C10)."""

    parent: Envelope | UnsetType = UNSET
    """The command before it, whose work this one goes on with (H3)."""


class Answer(Struct, frozen=True, kw_only=True):
    """A good end of a task; ``partial`` says that not all of it was done."""

    output: Any = None
    summary: str = ""
    artifacts: tuple[Artifact, ...] = ()
    partial: bool = False
    envelope: Envelope


class Pipeline(Struct, frozen=True):
    """How far a pipeline came; ``error`` is what stopped it, if anything did."""

    answers: tuple[Answer, ...]
    error: AgentCanvasError | None = None

    @property
    def output(self) -> Any:
        """What came out at its end; raises what stopped it."""
        if self.error is not None:
            raise self.error
        return self.answers[-1].output if self.answers else None


class Gathered(Struct, frozen=True):
    """What many calls came to, in their order: an answer or an error each."""

    results: tuple[Answer | AgentCanvasError, ...]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The good ones."""
        return tuple(each for each in self.results if isinstance(each, Answer))

    @property
    def errors(self) -> tuple[AgentCanvasError, ...]:
        """The others."""
        return tuple(each for each in self.results if isinstance(each, AgentCanvasError))


class Survey(Struct, frozen=True):
    """What a broadcast was answered, as far as it was in time; ``asked`` is how many got it."""

    asked: int
    answers: tuple[Envelope, ...]


class Client:
    """One agent's voice on a connection."""

    def __init__(
        self,
        connection: Connection,
        agent: str,
        clock: Clock,
        *,
        session: str | UnsetType = UNSET,
        asking: Asking | None = None,
        limits: Limits = _DEFAULTS,
    ) -> None:
        """Ask through ``asking``, if it is given, instead of the connection itself."""
        self.connection = connection
        self.agent = agent
        self.limits = limits
        self._clock = clock
        self._session = session
        self._asking: Asking = asking or connection

    # -- one call --------------------------------------------------------------------------------

    async def request(
        self,
        to: str,
        task_type: str,
        input: Any = None,  # noqa: A002 - the protocol's own name for it
        **more: Any,
    ) -> Answer:
        """Give somebody a task and return its result; raise how it failed.

        ``more`` are the other fields of a ``Call``.
        """
        return await self.call(Call(to=to, task_type=task_type, input=input, **more))

    async def call(self, call: Call) -> Answer:
        """Do the same for a call that is made already."""
        envelope = self.message(call)
        assert envelope.timeout_ms is not UNSET
        delivery = await self._asking.request(envelope, timeout_s=envelope.timeout_ms / 1000)
        await delivery.ack()
        return read_answer(delivery.envelope, envelope)

    async def send(
        self,
        to: str,
        task_type: str,
        input: Any = None,  # noqa: A002 - the protocol's own name for it
        **more: Any,
    ) -> Receipt:
        """Give somebody a task and go on; its answers come as mail."""
        call = Call(to=to, task_type=task_type, input=input, **more)
        return await self.connection.send(self.message(call))

    async def status(
        self, of: str, *, task_id: str | None = None, timeout_s: float | None = None
    ) -> StatusResponse:
        """Ask an agent how it is, or how a task of it is."""
        query = StatusQuery(
            query_type="TASK_STATUS" if task_id else "AGENT_STATUS",
            task_id=task_id or UNSET,
            agent_id=UNSET if task_id else of,
        )
        asked = self._envelope(Kind.STATUS_QUERY, of, query, priority=4)
        wait_s = timeout_s or self.limits.acp.timeouts.default_ms / 1000
        delivery = await self._asking.request(asked, timeout_s=wait_s)
        await delivery.ack()
        body = delivery.envelope.body
        if isinstance(body, StatusResponse):
            return body
        _raise_failure(delivery.envelope, asked)
        raise TaskFailed(f"{of} did not say how it is.")

    async def cancel(
        self, to: str, task_id: str, reason: str = "", *, cleanup_required: bool = False
    ) -> Receipt:
        """Stop a task; it still ends with a message, and keeps what it has so far (H10)."""
        return await self._abort(to, CancelScope.TASK, task_id, reason, cleanup_required)

    async def abort(
        self, session: str, reason: str = "", *, cleanup_required: bool = False
    ) -> Receipt:
        """Stop every task of a session, whoever is at it (H10)."""
        return await self._abort(
            BROADCAST, CancelScope.SESSION, session, reason, cleanup_required, session=session
        )

    # -- many ------------------------------------------------------------------------------------

    async def broadcast(self, event: str, message: str = "", data: Any = None) -> Receipt:
        """Tell everybody in the session."""
        return await self.connection.send(self._news(event, message, data))

    async def survey(
        self, event: str, message: str = "", data: Any = None, *, timeout_s: float
    ) -> Survey:
        """Ask everybody, and gather what they answer until all have or the time is over (H3)."""
        news = self._news(event, message, data)
        answers: list[Envelope] = []
        async with self.connection.converse(news, timeout_s=timeout_s, send=False) as conversation:
            receipt = await self.connection.send(news)
            asked = len(receipt.numbers) - 1  # one is the broadcast itself
            try:
                while len(answers) < asked:
                    delivery = await anext(conversation)
                    await delivery.ack()
                    if delivery.envelope.kind not in INTERIM:
                        answers.append(delivery.envelope)
            except DeadlineExceeded:
                pass
        return Survey(asked, tuple(answers))

    async def pipeline(self, calls: Sequence[Call], input: Any = None) -> Pipeline:  # noqa: A002
        """Give each the output of the one before: one conversation, each the parent of the next."""
        thread = new_id()
        answers: list[Answer] = []
        before: Envelope | UnsetType = UNSET
        for call in calls:
            staged = msgspec.structs.replace(
                call, input=input, correlation_id=thread, parent=before, task_id=new_id()
            )
            envelope = self.message(staged)
            assert envelope.timeout_ms is not UNSET
            try:
                delivery = await self._asking.request(
                    envelope, timeout_s=envelope.timeout_ms / 1000
                )
                await delivery.ack()
                answer = read_answer(delivery.envelope, envelope)
            except AgentCanvasError as error:
                return Pipeline(tuple(answers), error)
            answers.append(answer)
            before, input = envelope, answer.output  # noqa: A001 - the next one's input
        return Pipeline(tuple(answers))

    async def gather(
        self,
        calls: Sequence[Call],
        *,
        max_parallel: int | None = None,
        timeout_s: float | None = None,
    ) -> Gathered:
        """Make many calls, some at a time; what fails or is late does not spoil the rest."""
        late = DeadlineExceeded("Not answered before the time for all of them was over.")
        results: list[Answer | AgentCanvasError] = [late] * len(calls)
        room = anyio.CapacityLimiter(max_parallel or self.limits.acp.performance.max_parallel)

        async def make(place: int, call: Call) -> None:
            async with room:
                try:
                    results[place] = await self.call(call)
                except AgentCanvasError as error:
                    results[place] = error

        async with anyio.create_task_group() as group:
            limit = None
            if timeout_s is not None:
                deadline = self._clock.monotonic() + timeout_s
                limit = ring_at(self._clock, deadline, group.cancel_scope.cancel)
            for place, call in enumerate(calls):
                group.start_soon(make, place, call)
        if limit is not None:
            limit.cancel()
        return Gathered(tuple(results))

    # -- messages --------------------------------------------------------------------------------

    def message(self, call: Call) -> Envelope:
        """Write the message of a call."""
        timeout_s = call.timeout_s or float(self.limits.task.timeout_s)
        parent = call.parent
        fields: dict[str, Any] = {}
        if parent is not UNSET:
            fields = {"reply_to": parent.id, "parent_task_id": parent.task_id or parent.id}
        if call.permissions is not UNSET or call.require_approval is not UNSET:
            fields["security"] = Security(
                permissions=call.permissions or (), require_approval=call.require_approval
            )
        body = TaskAssign(
            task_id=call.task_id or new_id(),
            task_type=call.task_type,
            input=freeze(call.input) if call.input is not None else UNSET,
            requirements=freeze(call.requirements) if call.requirements is not UNSET else UNSET,
            action=call.action,
            callback_url=call.callback_url,
        )
        return self._envelope(
            Kind.TASK_ASSIGN,
            call.to,
            body,
            session=call.session or self._session,
            priority=call.priority,
            correlation_id=call.correlation_id,
            timeout_ms=round(timeout_s * 1000),
            **fields,
        )

    def _news(self, event: str, message: str, data: Any) -> Envelope:
        body = Broadcast(
            event=event,
            message=message or UNSET,
            data=freeze(data) if data is not None else UNSET,
        )
        return self._envelope(Kind.BROADCAST, BROADCAST, body)

    async def _abort(
        self,
        to: str,
        scope: CancelScope,
        target: str,
        reason: str,
        cleanup: bool,
        **fields: Any,
    ) -> Receipt:
        body = TaskCancel(
            scope=scope, target_id=target, reason=reason or UNSET, cleanup_required=cleanup
        )
        return await self.connection.send(
            self._envelope(Kind.TASK_CANCEL, to, body, priority=9, **fields)
        )

    def _envelope(self, kind: Kind, to: str, body: Body, **fields: Any) -> Envelope:
        fields.setdefault("session", self._session)
        return Envelope(
            id=new_id(),
            kind=kind,
            time=self._clock.now(),
            sender=AgentRef(self.agent),
            recipient=AgentRef(to),
            body=body,
            **fields,
        )


def read_answer(envelope: Envelope, asked: Envelope) -> Answer:
    """Read the final answer to a task; raise how it failed."""
    _raise_failure(envelope, asked)
    body = envelope.body
    if not isinstance(body, TaskResult):
        raise TaskFailed(f"{envelope.sender.id} answered a task with {envelope.kind}.")
    return Answer(
        output=None if body.output is UNSET else thaw(body.output),
        summary=body.summary or "",
        artifacts=body.artifacts or (),
        partial=body.status is Outcome.PARTIAL,
        envelope=envelope,
    )


def _raise_failure(envelope: Envelope, asked: Envelope) -> None:
    failure = failure_in(envelope, asked)
    if failure is None:
        return
    who = asked.recipient.id if asked.recipient is not UNSET else "somebody"
    if isinstance(envelope.body, TaskReject):
        raise TaskRejected(
            f"{who} did not take the task: {failure.error_message}",
            reason=failure.code,
            suggested_agents=failure.suggested_agents,
        )
    raise TaskFailed(
        f"{who} did not do the task: {failure.error_message}",
        error_code=failure.code,
        retry_possible=failure.recoverable,
    )
