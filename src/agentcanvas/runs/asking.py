"""One ask or many, each carried out at most once, in a place of its own and within its limits.

An ask that was settled before takes no slot; what it cost is counted again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Answer, Ask, Fate, Outcome
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs.batch import Batch
from agentcanvas.runs.budget import Spent
from agentcanvas.runs.offstage import Part, Scope, Settled
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.speech import Speech
from agentcanvas.runs.steps import Done, Effect, Steps, first_of

LATE = "late"

Read = Callable[[str, Settled], Answer[Any]]
"""Makes an answer of what came of an ask to somebody."""

Perform = Callable[[Part, str, str], Awaitable[Outcome]]
"""Plays the interaction that fills a role, at a step, with a request."""


class _Doer(msgspec.Struct, frozen=True):
    """Who carries something out, and how many others wait for it."""

    agent: str
    works: bool = True
    rank: int = 0


class Asking:
    """The asks of one interaction."""

    def __init__(self, scope: Scope, scene: Scene, steps: Steps, perform: Perform) -> None:
        self._scope = scope
        self._scene = scene
        self._steps = steps
        self._speech = Speech(scope, scene, steps)
        self._perform = perform

    async def settled(self, step: str, ask: Ask, schema: dict[str, Any] | None = None) -> Settled:
        """What comes of an ask, or came of it in an earlier life."""
        known = await self._known(step, ask, schema)
        return await self._turn(step, ask, schema) if known is None else known

    async def all_of(
        self,
        step: str,
        asks: Sequence[Ask],
        read: Read,
        schema: dict[str, Any] | None = None,
        *,
        within_ms: int | None = None,
    ) -> tuple[Answer[Any], ...]:
        """Ask many, each as soon as what it depends on is settled.

        A limit lets those that have begun come to their end, unless it is one of time.
        """
        batch = Batch(asks)
        await self.recall_all(step, batch, read, schema)

        async def one(key: str, ask: Ask) -> None:
            await self.one_of(batch, step, key, ask, read=read, schema=schema, within_ms=within_ms)

        if batch.ended is None:
            await _side_by_side(one, batch.open())
        answers = batch.answers()
        if batch.ended is not None:
            self._scene.ended = batch.ended
            if not any(answer.done for answer in answers):
                raise batch.ended
        return answers

    async def recall_all(
        self, step: str, batch: Batch, read: Read, schema: dict[str, Any] | None
    ) -> None:
        """Answer those of a batch that were settled in an earlier life."""
        for key, ask in batch:
            with batch.hearing(key):
                known = await self._known(f"{step}/{key}", ask, schema)
                if known is not None:
                    batch.settle(key, read(ask.to, known))

    async def one_of(
        self,
        batch: Batch,
        step: str,
        key: str,
        ask: Ask,
        *,
        read: Read,
        schema: dict[str, Any] | None,
        within_ms: int | None = None,
    ) -> None:
        """Carry out one of a batch, as soon as what it depends on is settled."""
        if await batch.ready(key):
            with batch.hearing(key):
                settled = await self._turn(
                    f"{step}/{key}", ask, schema, rank=batch.rank(key), within_ms=within_ms
                )
                batch.settle(key, read(ask.to, settled))

    async def land(self, step: str, candidate: ProposalRef) -> Settled:
        """Have a candidate judged, and applied if the verdict says so."""
        settled = self._recalled(step, candidate)
        if settled is None:
            desk = self._scope.desk
            settled = await self._settle(
                step, candidate, lambda: desk.land(step, candidate), _Doer(candidate.agent_id)
            )
        self._scene.candidates.pop(candidate.proposal_id, None)
        return settled

    # -- one turn --------------------------------------------------------------------------------

    async def _known(
        self, step: str, ask: Ask, schema: dict[str, Any] | None = None
    ) -> Settled | None:
        known = self._recalled(step, [ask, schema])
        if known is not None:
            if self._scene.rates.limited:
                await self._speech.admitted(step, ask.to)
            self._keep_candidate(ask, known)
        return known

    async def _turn(
        self,
        step: str,
        ask: Ask,
        schema: dict[str, Any] | None = None,
        *,
        rank: int = 0,
        within_ms: int | None = None,
    ) -> Settled:
        part = self._scope.parts.part(ask.to)
        if part is not None:
            return _result_of(await self._perform(part, step, ask.message))
        if not await self._speech.admitted(step, ask.to):
            return Settled("", Fate.FAILED, "refused: over the rate limit", turns=0, messages=0)

        async def effect() -> Done:
            self._scope.meter.spend_turn()
            if within_ms is None:
                return await self._scope.desk.ask(step, ask, schema)
            due = self._scope.meter.seconds + within_ms / 1000
            done = await self._steps.within(
                step, due, StageEnded(LATE), lambda: self._scope.desk.ask(step, ask, schema)
            )
            return Done(Settled("", Fate.TIMED_OUT, LATE)) if isinstance(done, StageEnded) else done

        doer = _Doer(ask.to, works=ask.work is not None, rank=rank)
        settled = await self._settle(step, [ask, schema], effect, doer)
        self._keep_candidate(ask, settled)
        return settled

    def _recalled(self, step: str, request: object) -> Settled | None:
        """What is on record, counted again; a time limit that struck then strikes again."""
        known = self._scope.journal.recall(step, request, Settled)
        if known is not None:
            self._scope.meter.count(
                turns=known.turns,
                messages=known.messages,
                tokens=known.tokens,
                cost=known.cost,
                purses=self._scene.purses,
            )
            if known.ended:
                raise StageEnded(known.ended)
        return known

    async def _settle(self, step: str, request: object, effect: Effect, doer: _Doer) -> Settled:
        """Carry something out as soon as there is a place, and record with it what it cost."""
        spent = Spent()

        def charged(settled: Settled) -> Settled:
            return msgspec.structs.replace(
                settled,
                turns=spent.turns,
                messages=spent.messages,
                tokens=spent.tokens,
                cost=spent.cost,
            )

        async def in_a_slot() -> Done:
            async with AsyncExitStack() as places:
                in_turn = self._scene.slots_of(doer.agent)
                if in_turn is not None:
                    await places.enter_async_context(in_turn.hold(rank=doer.rank))
                # Only work has a sandbox, which is the agent's until the ask is settled.
                sandbox = doer.agent if doer.works else None
                await places.enter_async_context(self._scope.slots.hold(sandbox, rank=doer.rank))
                with self._scope.meter.told_apart(spent, self._scene.purses):
                    done = await effect()
            return Done(charged(done.result), done.also)

        def cut_short(end: StageEnded) -> Settled:
            return charged(Settled("", Fate.TIMED_OUT, str(end), ended=str(end)))

        settled: Settled = await self._steps.carry_out(
            step, request, in_a_slot, cut_short=cut_short
        )
        return settled

    def _keep_candidate(self, ask: Ask, settled: Settled) -> None:
        if not ask.land and settled.proposal is not None:
            self._scene.candidates[settled.proposal.proposal_id] = settled.proposal


async def _side_by_side(
    one: Callable[[str, Ask], Coroutine[Any, Any, None]], asks: Sequence[tuple[str, Ask]]
) -> None:
    try:
        async with anyio.create_task_group() as group:
            for key, ask in asks:
                group.start_soon(one, key, ask)
    except BaseExceptionGroup as several:
        raise first_of(several) from None


def _result_of(outcome: Outcome) -> Settled:
    """What an interaction that fills a role has to say; its own steps were counted already."""
    fate = Fate.DONE if outcome.done else Fate.FAILED
    reason = "" if outcome.done else outcome.reason
    value: msgspec.Raw | UnsetType = UNSET
    try:
        msgspec.json.decode(outcome.result)
        value = msgspec.Raw(outcome.result.encode())
    except msgspec.MsgspecError:
        pass
    return Settled(outcome.result, fate, reason, value=value, turns=0, messages=0)
