"""Two of H4's strategies that take knowledge of the work: the right scope, and splitting.

They are wrappers like those of ``recovery``, and go with them in any order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from agentcanvas.errors import ScopeViolation
from agentcanvas.hub.client import Delivery
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.failures import Strategy
from agentcanvas.hub.journal import Choice, Journal
from agentcanvas.hub.recovery import Asking, Wrapper, recipient_of
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import TaskAssign


class WithScope(Wrapper):
    """Turns a scope violation into an error that gives the right scope (H4)."""

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask; who went out of scope is rejected and told what the scope was."""
        tried = await self._try(envelope, timeout_s, on_behalf_of)
        failure = tried.failure
        if failure is None or failure.strategy is not Strategy.GIVE_SCOPE:
            return tried.pass_on()
        await tried.settle()
        await self._note(Choice.GAVE_SCOPE, envelope, failure)
        constraints = envelope.body.constraints if isinstance(envelope.body, TaskAssign) else UNSET
        scope = ", ".join(constraints.scope) if constraints else "nothing"
        raise ScopeViolation(
            f"{recipient_of(envelope)} changed files outside the task's scope; it may change "
            f"{scope}. Widen the scope, or ask again within it."
        )


Splitting: TypeAlias = Callable[[Envelope], Awaitable[Sequence[Envelope]]]
Joining: TypeAlias = Callable[[Envelope, Sequence[Delivery]], Awaitable[Delivery]]


class WithSplit(Wrapper):
    """Splits a task that is too large for its recipient, and joins the answers (H4)."""

    def __init__(
        self,
        asking: Asking,
        split: Splitting,
        join: Joining,
        *,
        journal: Journal | None = None,
    ) -> None:
        """Say how to split: parts with ids of their own, or none if it cannot be split."""
        super().__init__(asking, journal=journal)
        self._split = split
        self._join = join

    async def request(
        self,
        envelope: Envelope,
        *,
        timeout_s: float | None = None,
        on_behalf_of: OnBehalfOf | UnsetType = UNSET,
    ) -> Delivery:
        """Ask; what meets a resource limit is asked in parts, until one goes wrong."""
        tried = await self._try(envelope, timeout_s, on_behalf_of)
        failure = tried.failure
        if failure is None or failure.strategy is not Strategy.SPLIT:
            return tried.pass_on()
        parts = await self._split(envelope)
        if not parts:
            return tried.pass_on()
        await tried.settle()
        await self._note(Choice.SPLIT, envelope, failure, attempt=len(parts))
        answers: list[Delivery] = []
        for part in parts:
            answer = await self._try(part, timeout_s, on_behalf_of)
            if answer.failure is not None:
                for before in answers:
                    await before.ack()
                return answer.pass_on()
            answers.append(answer.pass_on())
        return await self._join(envelope, answers)
