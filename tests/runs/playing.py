"""The scenes of the patterns, played on the engine's Stage instead of the one for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import msgspec
from msgspec import UNSET

from agentcanvas.clock import VirtualClock
from agentcanvas.flows.axes import Sync
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.pattern import Answer, Ask, Ends, Measure, Outcome, Pattern, Size
from agentcanvas.patterns import PATTERNS
from agentcanvas.protocol.records import ProposalRef
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.offstage import Part, Scope
from agentcanvas.runs.scene import Pace, ends_of
from agentcanvas.runs.scene import Scene as Place
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import Done, RunStage, Settled
from agentcanvas.store import Store
from tests.patterns.scenes import Scene
from tests.patterns.team import BY_ID, script
from tests.runs.fake_desk import STREAM, FakeDesk

INTERACTION = "i1"


class SceneDesk(FakeDesk):
    """Answers as the scene says; ``fault`` may answer in its place, or raise."""

    def __init__(
        self,
        scene: Scene,
        clock: VirtualClock,
        *,
        fault: Callable[[Ask, Callable[[], Settled]], Any] | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self._say = script(scene.parts)
        self._takes = scene.stage.get("seconds")
        self._left = list(scene.stage.get("measures", ()))
        self._memory = tuple(scene.stage.get("memory", ()))
        self._verdicts = scene.stage.get("verdicts", {})
        self._fault = fault
        self._proposals = 0
        self._answers: dict[str, Any] = {}
        """By step: an agent that is asked the same again after a crash answers the same."""
        self.die_before: int | None = None
        self.messages: list[str] = []

    def _effect(self, step: str) -> None:
        self._die_before = self.die_before
        super()._effect(step)

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        del schema
        self._effect(step)
        self.asks.append(ask)
        if self._fault is not None:
            settled = await self._fault(ask, lambda: self._answered(ask))
            if settled is not None:
                return Done(settled)
        assert self._clock is not None
        if self._takes is not None:
            await self._clock.sleep(self._takes(ask.to, ask.message))
        else:
            await anyio.lowlevel.checkpoint()
        if step not in self._answers:
            self._answers[step] = self._answered(ask)
        return Done(self._answers[step])

    def _answered(self, ask: Ask) -> Settled:
        reply = self._say(ask.to, ask.message)
        answer: Answer[None] = Answer(ask.to, reply) if isinstance(reply, str) else reply
        settled = said(answer)
        if ask.land or ask.work is None or not answer.done or answer.proposal is not None:
            return settled
        self._proposals += 1
        ref = ProposalRef(
            run_id="run",
            agent_id=ask.to,
            proposal_id=f"c{self._proposals}",
            generation=0,
            patch="c.patch",
        )
        return msgspec.structs.replace(settled, proposal=ref)

    async def measure(self, step: str, metric: str) -> Done:
        self._effect(step)
        if step not in self._answers:
            green = Measure(metric, 1, holds=True)
            self._answers[step] = self._left.pop(0) if self._left else green
        return Done(self._answers[step])

    async def recall(self, step: str, query: str) -> Done:
        self._effect(step)
        return Done(tuple(each for each in self._memory if query.casefold() in each.casefold()))


def said(answer: Answer[None]) -> Settled:
    """What an agent's answer comes to when it is settled."""
    value: msgspec.Raw | msgspec.UnsetType = UNSET
    try:
        msgspec.json.decode(answer.text)
        value = msgspec.Raw(answer.text.encode())
    except msgspec.MsgspecError:
        pass
    return Settled(
        answer.text,
        answer.fate,
        answer.reason,
        value=value,
        proposal=answer.proposal,
        failure=answer.failure,
    )


class Known:
    """All twenty, with their own ends."""

    def pattern(self, name: str) -> Pattern:
        return BY_ID[name]

    def ends(self, name: str) -> Ends:
        return ends_of(CATALOGUE[name].termination)

    def part(self, name: str) -> Part | None:
        del name
        return None


def turns_at_most(name: str, scene: Scene, *, rounds: int | None = None) -> int:
    """What the pattern declares as its worst case for this cast."""
    pattern = BY_ID[name]
    players = {role: len(agents) for role, agents in scene.cast.items()}
    options = scene.options or pattern.options()
    return pattern.most(Size(players=players, rounds=rounds), options).turns


async def play_scene(
    store: Store,
    name: str,
    scene: Scene,
    desk: FakeDesk,
    clock: VirtualClock,
    *,
    ends: Ends | None = None,
    budget: Budget | None = None,
    meter: Meter | None = None,
    sync: Sync | None = None,
) -> Outcome:
    """Have a pattern play its scene in a new life of the one run there is in ``store``.

    Its turns follow each other as they do in a flow that does not say how.
    """
    pattern = BY_ID[name]
    journal = await Journal.open(store, STREAM)
    scope = Scope(
        desk, journal, meter or Meter(budget or Budget(), clock), Slots(5), clock, Known()
    )
    place = Place(
        INTERACTION,
        ends=ends or scene.stage.get("ends") or Ends(),
        cast=scene.cast,
        roles=pattern.roles,
        pace=Pace(sync or CATALOGUE[name].sync),
    )
    cast = {role: tuple(agents) for role, agents in scene.cast.items()}
    options = scene.options or pattern.options()
    return await RunStage(scope, place).perform(pattern, cast, "Wash up", options)


IDS = [pattern.id for pattern in PATTERNS]
