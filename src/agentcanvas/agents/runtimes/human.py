"""A person as an agent: a turn becomes an ask in their inbox, the answer is its reply (D24).

Waiting costs nothing and may be cut off; after a resume the same ask is found again by its id. An
answer that lacks the form asked for is asked for again, a few times, with what is wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from msgspec import UNSET, UnsetType, structs

from agentcanvas.agents.answers import JsonForm, asks_for
from agentcanvas.agents.runtime import (
    UNSTAMPED,
    Emit,
    Outcome,
    Turn,
    TurnResult,
    answered,
    failed,
)
from agentcanvas.clock import Clock
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.records import FailureClass, TextEvent

_TRIES = 3

AskPerson = Callable[[PersonAsk], Awaitable[PersonAnswer]]
"""Puts an ask into the inbox and returns with the answer to it."""


class HumanRuntime:
    """Asks one person; ``default`` is their answer when the turn's time is over."""

    def __init__(
        self, person: str, ask_person: AskPerson, clock: Clock, *, default: Any = UNSET
    ) -> None:
        self._person = person
        self._ask_person = ask_person
        self._clock = clock
        self._default = default

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Ask and wait."""
        ask = self._ask_of(turn)
        result: TurnResult | None = None
        raised: Exception | None = None
        async with anyio.create_task_group() as tasks:
            if turn.timeout_s is not None:
                tasks.start_soon(self._await_deadline, turn.timeout_s, tasks.cancel_scope)
            try:
                result = await self._answer_to(ask, turn, emit)
            except Exception as error:  # noqa: BLE001  # raised again below, outside the task group
                raised = error
            tasks.cancel_scope.cancel()
        if raised is not None:
            raise raised
        return result or self._unanswered(turn, emit)

    async def _await_deadline(self, limit_s: float, scope: anyio.CancelScope) -> None:
        await self._clock.sleep(limit_s)
        scope.cancel()

    async def _answer_to(self, ask: PersonAsk, turn: Turn, emit: Emit) -> TurnResult:
        for tried in range(1, _TRIES + 1):
            answer = await self._ask_person(ask)
            result = _result(turn, answer.content, emit)
            if not result.breach or tried == _TRIES:
                return result
            ask = structs.replace(ask, ask_id=f"{turn.turn_id}#{tried + 1}", problem=result.breach)
        raise AssertionError("the last try returns")

    def _unanswered(self, turn: Turn, emit: Emit) -> TurnResult:
        waited = f"{self._person} did not answer within {turn.timeout_s:g} s"
        if self._default is UNSET:
            return failed(
                f"{waited}; ask again, or give a default.",
                FailureClass.TIMEOUT,
                outcome=Outcome.TIMEOUT,
            )
        result = _result(turn, self._default, emit)
        return structs.replace(result, notes=(f"{waited}; the default was taken.",))

    def _ask_of(self, turn: Turn) -> PersonAsk:
        deadline: int | UnsetType = UNSET
        if turn.timeout_s is not None:
            deadline = self._clock.now_ms() + round(turn.timeout_s * 1000)
        form = turn.form
        return PersonAsk(
            ask_id=turn.turn_id,
            person=self._person,
            run_id=turn.run_id,
            agent_id=turn.agent_id,
            scope=f"task:{turn.task_id}" if turn.task_id else f"turn:{turn.turn_id}",
            text=turn.prompt,
            instruction="" if form is None else asks_for(form),
            schema=dict(form.schema) if isinstance(form, JsonForm) else UNSET,
            deadline_ms=deadline,
            default=self._default,
            images=tuple(str(image.path) for image in turn.images),
        )


def _result(turn: Turn, content: Any, emit: Emit) -> TurnResult:
    text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
    emit(TextEvent(text=text, **UNSTAMPED))
    return answered(turn, text, value=UNSET if isinstance(content, str) else content)
