"""The engine's Stage: the verbs of a pattern, with replay, limits and parallelism.

It decides when something is asked, how often and in which order, and remembers what came of it. How
an ask becomes messages, sandboxes and verdicts is the ``Desk``'s work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.pattern import Answer, Ask, Fate, Measure, Work
from agentcanvas.protocol.plan import DependencyType
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.store import Transaction

T = TypeVar("T")
R = TypeVar("R")


class Settled(msgspec.Struct, frozen=True):
    """What came of one ask; ``value`` is the typed part of the answer, unchecked."""

    text: str
    fate: Fate = Fate.DONE
    reason: str = ""
    value: msgspec.Raw | UnsetType = UNSET
    proposal: ProposalRef | None = None


class Done(msgspec.Struct, frozen=True):
    """A result, and what has to be recorded in the same transaction (an ack, D3)."""

    result: Any
    also: Callable[[Transaction], object] | None = None


class Desk(Protocol):
    """Where asks are carried out."""

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        """Carry out one ask until it is settled; the result is a ``Settled``."""
        ...

    async def tell(self, step: str, to: str, message: str) -> Done:
        """Say something that needs no answer."""
        ...

    async def measure(self, step: str, metric: str) -> Done:
        """Measure the work as it stands; the result is a ``Measure``."""
        ...

    async def note(self, step: str, entry: str, sources: Sequence[str]) -> Done:
        """Put something on record."""
        ...


class Scope(msgspec.Struct, frozen=True):
    """What all stages of one run share."""

    desk: Desk
    journal: Journal
    meter: Meter
    parallel: anyio.CapacityLimiter


class RunStage:
    """One place in a run; a round is a place below."""

    def __init__(self, scope: Scope, path: str) -> None:
        self._scope = scope
        self._path = path
        self._counts: dict[str, int] = {}

    async def ask(self, to: str, message: str, *, work: Work | None = None) -> Answer[None]:
        """Ask one agent, now or in an earlier life of this run."""
        ask = Ask(to, message, work)
        return _answer(to, await self._settle_ask(self._step("ask"), ask, None))

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Ask for a typed answer; a breach is asked for once more, then it is a failure."""
        step = self._step("ask_for")
        first = await self._ask_typed(f"{step}/try:1", form, to, message)
        if first.value is not None or not first.done:
            return first
        return _or_failed(
            await self._ask_typed(f"{step}/try:2", form, to, f"{message}\n\n{first.reason}")
        )

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask many, each as soon as what it depends on is settled."""
        step = self._step("ask_all")
        settled = {_key(index, ask): anyio.Event() for index, ask in enumerate(asks)}
        answers: dict[str, Answer[None]] = {}

        async def one(key: str, ask: Ask) -> None:
            hard = [other for other in _hard(ask) if other in settled]
            for other in hard:
                await settled[other].wait()
            failed = [other for other in hard if not answers[other].done]
            if failed:
                reason = f"{', '.join(failed)} did not end well"
                answers[key] = Answer(ask.to, "", Fate.SKIPPED, reason)
            else:
                result = await self._settle_ask(f"{step}/{key}", ask, None)
                answers[key] = _answer(ask.to, result)
            settled[key].set()

        try:
            async with anyio.create_task_group() as group:
                for index, ask in enumerate(asks):
                    group.start_soon(one, _key(index, ask), ask)
        except BaseExceptionGroup as several:
            raise _first(several) from None
        return tuple(answers[_key(index, ask)] for index, ask in enumerate(asks))

    async def tell(self, to: str, message: str) -> None:
        """Say something that needs no answer."""
        step = self._step("tell")
        self._scope.meter.spend_message()
        desk = self._scope.desk
        await self._once(step, [to, message], bool, lambda: desk.tell(step, to, message))

    async def check(self, metric: str) -> Measure:
        """Measure the work as it stands now."""
        step = self._step("check")
        self._scope.meter.check()
        desk = self._scope.desk
        return await self._once(step, metric, Measure, lambda: desk.measure(step, metric))

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put something on record for those who read later."""
        step = self._step("note")
        desk = self._scope.desk
        request = [entry, list(sources)]
        await self._once(step, request, bool, lambda: desk.note(step, entry, sources))

    async def rounds(self, most: int) -> AsyncIterator[RunStage]:
        """At most so many rounds; a limit of the run ends them earlier."""
        prefix = self._step("rounds")
        for number in range(1, most + 1):
            self._scope.meter.check()
            yield RunStage(self._scope, f"{prefix}/round:{number}")

    # ---------------------------------------------------------------------------------------------

    async def _ask_typed(self, step: str, form: type[T], to: str, message: str) -> Answer[T]:
        schema = msgspec.json.schema(form)
        settled = await self._settle_ask(step, Ask(to, message), schema)
        answer = _answer(to, settled)
        if settled.fate is not Fate.DONE:
            return Answer(to, answer.text, answer.fate, answer.reason)
        if settled.value is UNSET:
            reason = "Your answer holds no JSON; answer with the form that was asked for."
            return Answer(to, answer.text, reason=reason)
        try:
            value = msgspec.json.decode(settled.value, type=form)
        except msgspec.MsgspecError as error:
            reason = f"Your answer does not have the form that was asked for: {error}"
            return Answer(to, answer.text, reason=reason)
        return Answer(to, answer.text, value=value)

    async def _settle_ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Settled:
        async with self._scope.parallel:
            self._scope.meter.spend_turn()
            desk = self._scope.desk
            return await self._once(
                step, [ask, schema], Settled, lambda: desk.ask(step, ask, schema)
            )

    async def _once(
        self, step: str, request: object, kind: type[R], effect: Callable[[], Awaitable[Done]]
    ) -> R:
        """The recorded result of a step, or the effect and its record."""
        known = self._scope.journal.recall(step, request, kind)
        if known is not None:
            return known
        done = await effect()
        await self._scope.journal.settle(step, request, done.result, done.also)
        result: R = done.result
        return result

    def _step(self, verb: str) -> str:
        """The name of the next use of a verb here.

        A pattern is one coroutine and meets concurrency only inside ``ask_all``, so the count is
        the same in every life of the run.
        """
        count = self._counts[verb] = self._counts.get(verb, 0) + 1
        return f"{self._path}/{verb}:{count}"


def _answer(to: str, settled: Settled) -> Answer[None]:
    return Answer(to, settled.text, settled.fate, settled.reason, proposal=settled.proposal)


def _or_failed(answer: Answer[T]) -> Answer[T]:
    if answer.value is not None or not answer.done:
        return answer
    return Answer(answer.agent, answer.text, Fate.FAILED, answer.reason)


def _key(index: int, ask: Ask) -> str:
    return ask.work.task_id if ask.work is not None else f"{index + 1}"


def _hard(ask: Ask) -> list[str]:
    if ask.work is None:
        return []
    return [other.task_id for other in ask.work.after if other.type is DependencyType.HARD]


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """One reason is enough to end a run; the others are its consequences."""
    found: BaseException = several
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
