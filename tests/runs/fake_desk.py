"""A desk that has nobody behind it, and stages that use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio.lowlevel
import msgspec

from agentcanvas.clock import Clock, VirtualClock
from agentcanvas.pattern import Ask, Ends, Measure
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs.board import Retention
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.offstage import Drawn
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import Done, RunStage, Scope, Settled
from agentcanvas.store import Store

STREAM = "solo/run_20260219_100000"


class Killed(Exception):
    """The process dies here."""


class FakeDesk:
    """Answers after ``seconds`` of a clock, counts effects, and can die before the n-th."""

    def __init__(
        self,
        reply: Callable[[Ask], Settled] | None = None,
        *,
        die_before: int | None = None,
        clock: Clock | None = None,
        seconds: Callable[[Ask], float] | None = None,
        confirm: Callable[[str, bytes], Settled] | None = None,
        value: float = 1,
    ) -> None:
        self._reply = reply or echo
        self._die_before = die_before
        self._clock = clock
        self._seconds = seconds
        self._confirm = confirm
        self._value = value
        self.effects: list[str] = []
        self.asks: list[Ask] = []
        self.told: list[str] = []
        self.discarded: list[str] = []
        self.interrupted: list[str] = []
        self.given_up: list[str] = []
        self.at_work: list[str] = []
        self.most_at_once = 0

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        del schema
        self._effect(step)
        self.asks.append(ask)
        self.at_work.append(ask.to)
        self.most_at_once = max(self.most_at_once, len(self.at_work))
        try:
            if self._clock is not None and self._seconds is not None:
                await self._clock.sleep(self._seconds(ask))
            else:
                await anyio.lowlevel.checkpoint()
        except BaseException:
            self.interrupted.append(step)
            raise
        finally:
            self.at_work.remove(ask.to)
        return Done(self._reply(ask))

    async def land(self, step: str, candidate: ProposalRef) -> Done:
        self._effect(step)
        return Done(Settled("landed", proposal=candidate))

    async def confirm(
        self, step: str, title: str, value: msgspec.Raw, schema: dict[str, Any]
    ) -> Done:
        del schema
        self._effect(step)
        if self._confirm is None:
            return Done(Settled(title, value=value))
        return Done(self._confirm(title, bytes(value)))

    async def tell(self, step: str, to: str, message: str, by: str = "") -> Done:
        del by
        self._effect(step)
        self.told.append(f"{to}: {message}")
        return Done(result=True)

    async def measure(self, step: str, metric: str) -> Done:
        self._effect(step)
        return Done(Measure(metric, self._value, holds=True))

    async def recall(self, step: str, query: str) -> Done:
        self._effect(step)
        return Done((f"about {query}",))

    async def note(self, step: str, entry: str, sources: Sequence[str]) -> Done:
        del entry, sources
        self._effect(step)
        return Done(result=True)

    async def drawn(self, step: str, draw: Drawn) -> Done:
        self._effect(step)
        return Done(draw.choice)

    async def discard(self, step: str, candidates: Sequence[ProposalRef]) -> Done:
        self._effect(step)
        self.discarded += [each.proposal_id for each in candidates]
        return Done(result=True)

    async def give_up(self, step: str, reason: str) -> None:
        self.given_up.append(f"{step}: {reason}")

    def _effect(self, step: str) -> None:
        if self._die_before is not None and len(self.effects) >= self._die_before:
            raise Killed
        self.effects.append(step)


def echo(ask: Ask) -> Settled:
    return Settled(f"{ask.to} heard: {ask.message}")


def candidate(name: str, agent: str = "ann") -> ProposalRef:
    return ProposalRef(
        run_id="r", agent_id=agent, proposal_id=name, generation=0, patch=f"{name}.patch"
    )


async def stage(
    store: Store,
    desk: FakeDesk,
    *,
    budget: Budget | None = None,
    parallel: int = 5,
    clock: Clock | None = None,
    meter: Meter | None = None,
    ends: Ends | None = None,
    scene: Scene | None = None,
    retention: Retention | None = None,
) -> RunStage:
    """A stage in a new life of the one run there is in ``store``."""
    clock = clock or VirtualClock()
    meter = meter or Meter(budget or Budget(), clock)
    journal = await Journal.open(store, STREAM)
    scope = Scope(desk, journal, meter, Slots(parallel), clock)
    return RunStage(scope, scene or Scene("i1", ends=ends, retention=retention))
