"""What is said in an interaction without an answer: told, routed, published, within ways and rates.

Each message is a step of its own, so that a run cut off between two of them says neither twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from agentcanvas.pattern import Entry, Receipt
from agentcanvas.runs.budget import Spent
from agentcanvas.runs.offstage import Scope
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.steps import Done, Steps

_REFUSED = -1


class Listening(msgspec.Struct, frozen=True):
    """Who hears of a topic from now on, or no longer does."""

    who: str
    topic: str
    begins: bool


class Speech:
    """The messages of one interaction that need no answer."""

    def __init__(self, scope: Scope, scene: Scene, steps: Steps) -> None:
        self._scope = scope
        self._scene = scene
        self._steps = steps

    async def tell(self, step: str, to: str, message: str, by: str = "") -> Receipt:
        """Say something to one agent."""
        if by:
            self._scene.ways.require(by, to)
        return await self.deliver(step, to, message, by)

    async def deliver(self, step: str, to: str, message: str, by: str = "") -> Receipt:
        """Say it without asking whether there is a way: the one in the middle passes it on."""
        if not await self.admitted(step, to, by):
            per_minute = self._scene.rates.limit((by, to))
            return Receipt(to, delivered=False, reason=f"rate limit: {per_minute} a minute")
        request = [to, message, by] if by else [to, message]
        spent = Spent()
        if self._scope.journal.recall(step, request, bool) is not None:
            self._scope.meter.count(messages=1, purses=self._scene.purses)
            return Receipt(to)
        with self._scope.meter.told_apart(spent, self._scene.purses):
            self._scope.meter.spend_message()
        desk = self._scope.desk
        await self._steps.carry_out(step, request, lambda: desk.tell(step, to, message, by))
        return Receipt(to)

    async def route(
        self, step: str, to: Sequence[str], message: str, by: str
    ) -> tuple[Receipt, ...]:
        """Say it to each of these, in their order."""
        return tuple(
            [
                await self.deliver(f"{step}/{index}", each, message, by)
                for index, each in enumerate(dict.fromkeys(to), 1)
            ]
        )

    async def subscribe(self, step: str, who: str, topic: str, replay: int) -> tuple[Entry, ...]:
        """Have somebody told from now on, and of the last entries at once."""
        await self._listen(step, Listening(who, topic, begins=True))
        self._scene.subscribers.setdefault(topic, {})[who] = None
        missed = self._scene.board.read(topic)[-replay:] if replay > 0 else ()
        for entry in missed:
            await self.deliver(f"{step}/{entry.number}", who, _notice(entry))
        return missed

    async def unsubscribe(self, step: str, who: str, topic: str) -> None:
        """Have somebody told no longer."""
        await self._listen(step, Listening(who, topic, begins=False))
        self._scene.subscribers.get(topic, {}).pop(who, None)

    async def _listen(self, step: str, listening: Listening) -> None:
        """Put it on record who hears what from here on."""

        async def effect() -> Done:
            return Done(listening)

        await self._steps.once(step, listening, Listening, effect)

    async def notify(self, step: str, entry: Entry) -> tuple[Receipt, ...]:
        """Tell all who subscribed, but not whoever said it."""
        there = [who for who in self._scene.subscribers.get(entry.topic, {}) if who != entry.by]
        return await self.route(step, there, _notice(entry), entry.by)

    async def admitted(self, step: str, to: str, by: str = "") -> bool:
        """Wait until the rate limit leaves room for one more; False if it is refused."""
        rates, lane = self._scene.rates, (by, to)
        if not rates.limited:
            return True

        async def effect() -> Done:
            now = self._scope.clock.now_ms()
            at_ms = rates.reserve(lane, now)
            if at_ms > now and rates.refuse:
                return Done(_REFUSED)
            await self._wait_ms(at_ms - now)
            return Done(at_ms)

        return await self._replayed(f"{step}/sent", list(lane), effect)

    async def _replayed(
        self, step: str, lane: list[str], effect: Callable[[], Awaitable[Done]]
    ) -> bool:
        known = self._scope.journal.recall(step, lane, int)
        if known is not None:
            if known != _REFUSED:
                self._scene.rates.note((lane[0], lane[1]), known)
            return known != _REFUSED
        result: int = await self._steps.carry_out(step, lane, effect)
        return result != _REFUSED

    async def _wait_ms(self, ms: int) -> None:
        if ms > 0:
            await self._scope.clock.sleep(ms / 1000)


def _notice(entry: Entry) -> str:
    """What a subscriber reads."""
    whose = f" by {entry.by}" if entry.by else ""
    return f"[{entry.topic} {entry.number}{whose}]\n{entry.text}"
