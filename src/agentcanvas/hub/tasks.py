"""A task in an agent's hands: what its handler sees, and the one end it comes to (H8).

Whatever a handler does, the first end counts and there is always one: what it returns or completes,
a rejection, an error, a cancellation, or that its time is over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import msgspec
from msgspec import UNSET, Struct

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, DeadlineExceeded
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.failures import CANCELLED
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import (
    Body,
    Kind,
    Outcome,
    RejectReason,
    TaskAccept,
    TaskAssign,
    TaskCancel,
    TaskProgress,
    TaskReject,
    TaskResult,
)
from agentcanvas.protocol.values import freeze, thaw

if TYPE_CHECKING:
    from agentcanvas.hub.conversations import Client

Send = Callable[[Envelope, Sequence[Delivery]], Awaitable[object]]
"""Sends a message, and takes deliveries over with it."""


class _Rejection(Exception):
    """Raised in a handler by ``Task.reject``."""


class Ending(Struct, frozen=True):
    """How a task ended: the message that says so."""

    kind: Kind
    body: TaskResult | TaskReject


class Task:
    """One task, for its handler: ``async def review(task: Task) -> object``."""

    def __init__(self, delivery: Delivery, agent: str, clock: Clock, send: Send, client: Client):
        assert isinstance(delivery.envelope.body, TaskAssign)
        self.assignment: TaskAssign = delivery.envelope.body
        self.envelope = delivery.envelope
        self.session = delivery.session
        self.redelivered = delivery.redelivered
        """Whether an earlier life of this agent may have begun it."""
        self.client = client
        """A voice of this agent, to ask others with."""
        self.partial: Any = None
        """What there is so far; it is kept when the task is stopped (H10)."""
        self.cancelled: TaskCancel | None = None
        """The order to stop, once there is one; look at it when cleaning up."""
        self.percent: float | None = None
        self.step = ""
        self.reported_at = clock.monotonic()
        self.scope = anyio.CancelScope()
        self._began = clock.monotonic()
        self._delivery = delivery
        self._agent = agent
        self._clock = clock
        self._send = send
        self.taken = False
        self._accepted = False
        self._ending: Ending | None = None
        self._last_word: Envelope | None = None

    @property
    def id(self) -> str:
        """The task's id; a command's own id where it names none."""
        return self.envelope.task_id or self.envelope.id

    @property
    def input(self) -> Any:
        """What is to be worked on."""
        return None if self.assignment.input is UNSET else thaw(self.assignment.input)

    @property
    def sender(self) -> str:
        """Who asked."""
        return self.envelope.sender.id

    @property
    def ended(self) -> bool:
        """Whether its end is settled."""
        return self._ending is not None

    # -- what a handler may do -------------------------------------------------------------------

    async def progress(
        self,
        percent: float | None = None,
        step: str = "",
        *,
        files: Sequence[str] = (),
        blockers: Sequence[str] = (),
    ) -> None:
        """Say how far it is."""
        if self.ended:
            return
        if percent is not None:
            self.percent = min(100.0, max(0.0, percent))
        self.step = step or self.step
        self.reported_at = self._clock.monotonic()
        await self.accept()
        body = TaskProgress(
            task_id=self.id,
            status="in_progress",
            progress=self.percent if self.percent is not None else UNSET,
            current_step=self.step or UNSET,
            files_modified_so_far=tuple(files) or UNSET,
            blockers=tuple(blockers) or UNSET,
        )
        await self._send(self.answer(Kind.TASK_PROGRESS, body), ())

    def reject(
        self,
        reason: RejectReason | str,
        suggested_agents: Sequence[str] = (),
        *,
        message: str = "",
    ) -> NoReturn:
        """Do not take it, and say who would; the handler ends here."""
        self.end(
            Kind.TASK_REJECT,
            TaskReject(
                task_id=self.id,
                reason=RejectReason(reason),
                message=message or f"{self._agent} does not take the task.",
                suggested_agents=tuple(suggested_agents),
            ),
        )
        raise _Rejection

    async def complete(
        self, output: Any = None, *, summary: str = "", partial: bool = False
    ) -> bool:
        """End it before the handler returns; tell whether it had not ended before."""
        return self.end(Kind.TASK_COMPLETE, self._result(output, summary, partial=partial))

    # -- what its agent does ---------------------------------------------------------------------

    async def accept(self) -> None:
        """Take it over and say so, once."""
        if not self._accepted:
            self._accepted = True
            await self._send(self._acceptance(), self.untaken())
            self.taken = True

    def last_words(self) -> tuple[Envelope | None, Envelope]:
        """Return the message that ends it, and the one that accepts it if that is still to come."""
        assert self._ending is not None
        opening = None
        if self._ending.kind is not Kind.TASK_REJECT and not self._accepted:
            self._accepted = True
            opening = self._acceptance()
        if self._last_word is None:
            self._last_word = self.answer(self._ending.kind, self._ending.body)
        return opening, self._last_word

    def untaken(self) -> list[Delivery]:
        """Return what is still to be taken over."""
        return [] if self.taken else [self._delivery]

    def _acceptance(self) -> Envelope:
        accept = TaskAccept(task_id=self.id, accepted_at=self._clock.now())
        return self.answer(Kind.TASK_ACCEPT, accept)

    def end(self, kind: Kind, body: TaskResult | TaskReject) -> bool:
        """Settle how it ends, unless it is settled; tell whether it was not."""
        if self._ending is not None:
            return False
        self._ending = Ending(kind, body)
        return True

    def end_well(self, output: Any) -> None:
        """End it with what the handler returned."""
        try:
            self.end(Kind.TASK_COMPLETE, self._result(output, ""))
        except (TypeError, ValueError, msgspec.MsgspecError):
            self.end_badly("EXECUTION_ERROR", f"{self._agent} returned what is no JSON.")

    def end_with(self, error: Exception) -> None:
        """End it with what the handler raised; of an unforeseen error only its name is told."""
        if isinstance(error, _Rejection):
            return
        if isinstance(error, AgentCanvasError):
            self.end_badly(error.code, str(error), retry_possible=error.recoverable)
        else:
            name = type(error).__name__
            self.end_badly("EXECUTION_ERROR", f"{self._agent} failed at the task: {name}.")

    def end_cancelled(self, reason: str, *, retry_possible: bool = False) -> None:
        """End it because somebody said so; what there is so far is kept."""
        self.end_badly(CANCELLED, reason, retry_possible=retry_possible)

    def end_late(self, timeout_s: float) -> None:
        """End it because its time is over."""
        sentence = f"{self._agent} did not finish within {timeout_s:g} s."
        self.end_badly(DeadlineExceeded.code, sentence, status=Outcome.TIMEOUT)

    def end_badly(
        self,
        code: str,
        sentence: str,
        *,
        retry_possible: bool = True,
        status: Outcome = Outcome.FAILED,
    ) -> None:
        """End it with an error."""
        partial: Any = UNSET
        if self.partial is not None:
            try:
                partial = freeze(self.partial)
            except (TypeError, ValueError, msgspec.MsgspecError):
                partial = UNSET
        self.end(
            Kind.TASK_FAIL,
            TaskResult(
                task_id=self.id,
                status=status,
                output=partial,
                duration_ms=self._duration_ms,
                completed_at=self._clock.now(),
                error_code=code,
                error_message=sentence,
                retry_possible=retry_possible,
            ),
        )

    def answer(self, kind: Kind, body: Body) -> Envelope:
        """Write an answer to whoever asked."""
        asked = self.envelope
        return Envelope(
            id=new_id(),
            kind=kind,
            time=self._clock.now(),
            sender=AgentRef(self._agent),
            recipient=asked.sender,
            session=self.session,  # said outright: the hub need not look it up
            body=body,
            reply_to=asked.id,
            correlation_id=asked.correlation_id or asked.id,
            priority=asked.priority,
        )

    def _result(self, output: Any, summary: str, *, partial: bool = False) -> TaskResult:
        return TaskResult(
            task_id=self.id,
            status=Outcome.PARTIAL if partial else Outcome.SUCCESS,
            output=freeze(output) if output is not None else UNSET,
            summary=summary or UNSET,
            duration_ms=self._duration_ms,
            completed_at=self._clock.now(),
        )

    @property
    def _duration_ms(self) -> int:
        return round((self._clock.monotonic() - self._began) * 1000)
