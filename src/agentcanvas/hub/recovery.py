"""What to do about a request that failed: wrappers around whatever can ask, in any order (D31).

    asking = Retrying(WithFallback(Breaking(connection, breakers, clock), ["b2"]), clock)

Each adds one habit and passes the rest on. What is returned is the last answer, good or bad, still
to be acknowledged; what is raised is the last error. Answers in between are taken over here.

Ids (H11, M5): as long as a recipient has not ended a task, a retry is the same message under the
same id, and the hub delivers it once. What it has ended is asked again under a new id and a new
task id (``t1.r1``), in the same conversation; so is what goes to somebody else (``t1@b2``). New ids
follow from the old ones, so that a repeat after a crash is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError, CircuitOpen
from agentcanvas.hub.breakers import Breakers, Circuit, Permit
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.failures import (
    RETRIES,
    Strategy,
    TaskExecutionError,
    failure_in,
    failure_of,
)
from agentcanvas.hub.journal import Choice, Decision, Journal
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.kinds import TaskAssign
from agentcanvas.protocol.limits import AcpRetry

_ATTEMPTS = UUID("7a1e2d6b-0c7a-5b0d-8f55-2f3f2a6b9c10")
_DEFAULT_RETRY = AcpRetry()
_ONCE = 2
"""Attempts of a task that ended with an exception (C1)."""


class Asking(Protocol):
    """Whatever can ask: a connection, or one of the wrappers below."""

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Send a message and return the final answer, which has to be acknowledged."""
        ...


class Tried(msgspec.Struct, frozen=True):
    """How a request ended: with an answer or with an error, and what was wrong with it."""

    delivery: Delivery | None
    error: AgentCanvasError | None
    failure: TaskExecutionError | None

    def pass_on(self) -> Delivery:
        """Hand it to whoever asked."""
        if self.delivery is not None:
            return self.delivery
        assert self.error is not None
        raise self.error

    async def settle(self) -> None:
        """Take an answer over that nobody else will see."""
        if self.delivery is not None:
            await self.delivery.ack()


class Wrapper:
    """What the wrappers have in common."""

    def __init__(self, asking: Asking, *, journal: Journal | None = None) -> None:
        self._asking = asking
        self._journal = journal

    async def _try(
        self,
        envelope: Envelope,
        timeout_s: float | None,
        on_behalf_of: OnBehalfOf | UnsetType,
    ) -> Tried:
        try:
            delivery = await self._asking.request(
                envelope, timeout_s=timeout_s, on_behalf_of=on_behalf_of
            )
        except AgentCanvasError as error:
            return Tried(None, error, failure_of(error, envelope))
        return Tried(delivery, None, failure_in(delivery.envelope, envelope))

    async def _note(
        self,
        choice: Choice,
        envelope: Envelope,
        failure: TaskExecutionError | None = None,
        **more: Any,
    ) -> None:
        if self._journal is not None:
            await self._journal.note(
                Decision(
                    choice=choice,
                    message_id=envelope.id,
                    recipient=recipient_of(envelope),
                    session=envelope.session or "default",
                    code=failure.code if failure else "",
                    **more,
                )
            )


class Retrying(Wrapper):
    """Tries again, after growing pauses; what took too long gets twice the time (C1)."""

    def __init__(
        self,
        asking: Asking,
        clock: Clock,
        *,
        policy: AcpRetry = _DEFAULT_RETRY,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(asking, journal=journal)
        self._clock = clock
        self._policy = policy

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask until it goes well, cannot be mended, or was tried often enough."""
        policy = _policy_of(envelope, self._policy)
        message, attempt, patience = envelope, 1, 1
        while True:
            wait_s = None if timeout_s is None else timeout_s * patience
            tried = await self._try(message, wait_s, on_behalf_of)
            failure = tried.failure
            if failure is None:
                return tried.pass_on()
            if not may_retry(failure, attempt, policy.max_attempts):
                await self._note(Choice.GAVE_UP, message, failure, attempt=attempt)
                return tried.pass_on()
            await tried.settle()
            pause_ms = policy.pause_ms(attempt)
            await self._note(
                Choice.RETRIED, message, failure, attempt=attempt + 1, pause_ms=pause_ms
            )
            if failure.strategy is Strategy.RETRY_LONGER:
                patience *= 2
            if tried.delivery is not None:  # the recipient has ended it: this is another task
                message = _next_attempt(envelope, attempt, patience)
            await self._clock.sleep(pause_ms / 1000)
            attempt += 1


Choosing: TypeAlias = Callable[[Envelope], Iterable[str]]


class WithFallback(Wrapper):
    """Asks others in turn when the one that was asked cannot do it."""

    def __init__(
        self,
        asking: Asking,
        agents: Sequence[str] | Choosing,
        *,
        journal: Journal | None = None,
    ) -> None:
        """Name the others, or a function that chooses them for a message."""
        super().__init__(asking, journal=journal)
        self._agents = agents

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask the one that is named, then the others."""
        tried = await self._try(envelope, timeout_s, on_behalf_of)
        asked = {recipient_of(envelope)}
        others = self._agents(envelope) if callable(self._agents) else self._agents
        for other in others:
            if tried.failure is None or not tried.failure.may_be_reassigned:
                break
            if other in asked:
                continue
            asked.add(other)
            await tried.settle()
            await self._note(Choice.FELL_BACK, envelope, tried.failure, next_recipient=other)
            tried = await self._try(readdressed(envelope, other), timeout_s, on_behalf_of)
        return tried.pass_on()


class WithSuggestions(Wrapper):
    """Follows the suggestions of whoever rejects a task, in order, each agent once (H4)."""

    def __init__(self, asking: Asking, *, most: int = 5, journal: Journal | None = None) -> None:
        super().__init__(asking, journal=journal)
        self._most = most

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask the one that is named, then those that it and they suggest."""
        tried = await self._try(envelope, timeout_s, on_behalf_of)
        asked = [recipient_of(envelope)]
        waiting: list[str] = []
        while tried.failure is not None and len(asked) <= self._most:
            waiting += tried.failure.suggested_agents
            other = next((agent for agent in waiting if agent not in asked), None)
            if other is None or not tried.failure.may_be_reassigned:
                break
            asked.append(other)
            await tried.settle()
            await self._note(
                Choice.FOLLOWED_SUGGESTION, envelope, tried.failure, next_recipient=other
            )
            tried = await self._try(readdressed(envelope, other), timeout_s, on_behalf_of)
        return tried.pass_on()


class Breaking(Wrapper):
    """Leaves a recipient alone that failed too often, whoever asked it (D31)."""

    def __init__(
        self, asking: Asking, breakers: Breakers, clock: Clock, *, journal: Journal | None = None
    ) -> None:
        super().__init__(asking, journal=journal)
        self._breakers = breakers
        self._clock = clock

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask if the circuit lets it through, and note how it went."""
        try:
            permit = self._breakers.admit(recipient_of(envelope), self._clock.monotonic())
        except CircuitOpen as refusal:
            failure = failure_of(refusal, envelope)
            await self._note(Choice.REFUSED_BY_CIRCUIT, envelope, failure)
            raise
        if permit.is_trial:
            await self._note(Choice.CIRCUIT_HALF_OPENED, envelope)
        try:
            tried = await self._try(envelope, timeout_s, on_behalf_of)
        except BaseException:
            self._breakers.abandoned(permit)
            raise
        await self._judge(permit, tried.failure, envelope)
        return tried.pass_on()

    async def _judge(
        self, permit: Permit, failure: TaskExecutionError | None, envelope: Envelope
    ) -> None:
        before = self._breakers.circuit(permit.recipient)
        if failure is not None and failure.is_the_agents:
            after = self._breakers.failed(permit, self._clock.monotonic())
        else:  # also a refusal of what was asked: whoever refuses is there
            after = self._breakers.succeeded(permit)
        if after is not before:
            choice = Choice.CIRCUIT_OPENED if after is Circuit.OPEN else Choice.CIRCUIT_CLOSED
            await self._note(choice, envelope, failure)


# -- what the habits go by ---------------------------------------------------------------------


def may_retry(failure: TaskExecutionError, attempt: int, max_attempts: int) -> bool:
    """Tell whether a request that failed for the ``attempt``-th time is made again."""
    if not failure.recoverable or failure.strategy not in RETRIES:
        return False
    most = min(_ONCE, max_attempts) if failure.strategy is Strategy.RETRY_ONCE else max_attempts
    return attempt < most


def recipient_of(envelope: Envelope) -> str:
    """Tell who is asked."""
    return "" if envelope.recipient is UNSET else envelope.recipient.id


def readdressed(envelope: Envelope, to: str) -> Envelope:
    """Return the same request to somebody else: another message, and another task."""
    return _another(envelope, f"@{to}", recipient=AgentRef(to))


def _next_attempt(envelope: Envelope, failed: int, patience: int) -> Envelope:
    longer: dict[str, Any] = {}
    if envelope.timeout_ms is not UNSET:
        longer["timeout_ms"] = envelope.timeout_ms * patience
    return _another(envelope, f".r{failed}", **longer)


def _another(envelope: Envelope, suffix: str, **changes: Any) -> Envelope:
    if isinstance(envelope.body, TaskAssign) and envelope.body.task_id is not UNSET:
        task_id = envelope.body.task_id + suffix
        changes["body"] = msgspec.structs.replace(envelope.body, task_id=task_id)
    return msgspec.structs.replace(
        envelope,
        id=str(uuid5(_ATTEMPTS, envelope.id + suffix)),
        correlation_id=envelope.correlation_id or envelope.id,
        **changes,
    )


def _policy_of(envelope: Envelope, default: AcpRetry) -> AcpRetry:
    """Take what a command says of itself before what is usual."""
    if envelope.retry is UNSET:
        return default
    return AcpRetry(
        max_attempts=envelope.retry.max_attempts,
        backoff_ms=round(envelope.retry.backoff_ms),
        backoff_multiplier=default.backoff_multiplier,
    )
