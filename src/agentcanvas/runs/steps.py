"""One step of a run: its effect at most once, within the time there is, and on record.

A step that was settled before is answered from the journal: it has no effect and is held to no
limit, since whatever it did was within them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import msgspec

from agentcanvas.errors import StageEnded
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.scene import Scene
from agentcanvas.store import Transaction

R = TypeVar("R")


class Done(msgspec.Struct, frozen=True):
    """A result, and what has to be recorded in the same transaction (an ack, D3)."""

    result: Any
    also: Callable[[Transaction], object] | None = None


Effect = Callable[[], Awaitable[Done]]

GiveUp = Callable[[str, str], Awaitable[None]]
"""Ends what is still done for a step, and says why."""


class Steps:
    """The steps of one interaction."""

    def __init__(self, journal: Journal, meter: Meter, scene: Scene, give_up: GiveUp) -> None:
        self._journal = journal
        self._give_up = give_up
        self._meter = meter
        self._scene = scene

    async def once(
        self, step: str, request: object, kind: type[R], effect: Effect, *, timed: bool = True
    ) -> R:
        """The recorded result of a step, or that of its effect, which is recorded now."""
        known = self._journal.recall(step, request, kind)
        if known is not None:
            return known
        result: R = await self.carry_out(step, request, effect, timed=timed)
        return result

    async def carry_out(
        self,
        step: str,
        request: object,
        effect: Effect,
        *,
        timed: bool = True,
        cut_short: Callable[[StageEnded], object] | None = None,
    ) -> Any:
        """The result of the effect, recorded.

        What was recorded before the effect began is on disk when this returns; its own record is
        only queued, and travels with whatever begins next. When time is over first, the effect is
        interrupted and the stage ends; ``cut_short`` makes the record of that.
        """
        before = self._journal.queued
        limit = await self._limit() if timed else None
        done = await (effect() if limit is None else self.within(step, *limit, effect))
        await self._journal.flush(before)
        if isinstance(done, StageEnded):
            if cut_short is not None:
                await self._journal.settle(step, request, cut_short(done))
            raise done
        await self._journal.settle(step, request, done.result, done.also)
        return done.result

    async def _limit(self) -> tuple[float, StageEnded] | None:
        """The second of the run's work at which time is over, and what ends then."""
        limits = []
        allowed = self._meter.seconds_allowed
        if allowed is not None:
            limits.append((allowed, self._meter.out_of_time()))
        for limit in self._scene.limits():
            over = await self._begun(limit.scene) + limit.seconds
            limits.append((over, StageEnded(limit.reason)))
        return min(limits, key=lambda limit: limit[0], default=None)

    async def _begun(self, scene: str) -> float:
        """When a scene began; on record, so that a resume goes on with the time left."""
        begun = self._scene.begun.get(scene)
        if begun is None:
            step = f"{scene}/begun"
            known = self._journal.recall(step, None, float)
            begun = self._scene.begun[scene] = self._meter.seconds if known is None else known
            if known is None:
                await self._journal.settle(step, None, begun)
        return begun

    async def within(
        self, step: str, second: float, end: StageEnded, effect: Effect
    ) -> Done | StageEnded:
        """What the effect gives; the end, when time is over before: then it is interrupted."""
        if self._meter.seconds >= second:
            return end
        done: Done | None = None
        try:
            async with anyio.create_task_group() as group:

                async def watch() -> None:
                    await self._meter.wait_until(second)
                    group.cancel_scope.cancel()

                group.start_soon(watch)
                done = await effect()
                group.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise first_of(several) from None
        if done is not None:
            return done
        await self._give_up(step, str(end))
        return end


def first_of(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """One reason is enough to end a run; the others are its consequences."""
    found: BaseException = several
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
