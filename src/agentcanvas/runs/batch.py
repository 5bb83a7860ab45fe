"""Asks that are made together: which waits for which, which goes first, and what came of each.

A task begins when all it depends on has ended well, and is skipped when one of them has not (H7).
What the most others have to follow, one after the other, goes first, so that the longest chain does
not begin last. How an ask is carried out is the stage's work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from agentcanvas.errors import StageEnded, ValidationError
from agentcanvas.pattern import Answer, Ask, Fate
from agentcanvas.protocol.plan import DependencyType


class Batch:
    """The asks that are made together, each under its own key."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._asks = {_key(index, ask): ask for index, ask in enumerate(asks)}
        if len(self._asks) < len(asks):
            again = [key for key, n in Counter(_keys(asks)).items() if n > 1]
            raise ValidationError(f"Several tasks are called {again[0]}; every task has its own id")
        self._needs = {key: self._hard(ask) for key, ask in self._asks.items()}
        self._ranks = self._chains()
        self._over = {key: anyio.Event() for key in self._asks}
        self._answers: dict[str, Answer[Any]] = {}
        self.ended: StageEnded | None = None

    def __iter__(self) -> Iterator[tuple[str, Ask]]:
        return iter(self._asks.items())

    def rank(self, key: str) -> int:
        """How many at least follow one another from this ask on, itself included."""
        return self._ranks[key]

    def open(self) -> list[tuple[str, Ask]]:
        """Those of which it is not known yet what comes of them."""
        return [(key, ask) for key, ask in self if key not in self._answers]

    def settle(self, key: str, answer: Answer[Any]) -> None:
        """Note what came of it; those who wait for it may go on."""
        self._answers[key] = answer
        self._over[key].set()

    @contextmanager
    def hearing(self, key: str) -> Iterator[None]:
        """Note a limit that ends it inside, and with it whatever has not begun yet."""
        try:
            yield
        except StageEnded as ended:
            self.ended = self.ended or ended
            self._over[key].set()

    async def ready(self, key: str) -> bool:
        """Wait for what it depends on; False when it is not to be asked."""
        for other in self._needs[key]:
            await self._over[other].wait()
        if self.ended is not None:
            self._over[key].set()
            return False
        failed = [other for other in self._needs[key] if not self._answers[other].done]
        if failed:
            reason = f"{', '.join(failed)} did not end well"
            self.settle(key, Answer(self._asks[key].to, "", Fate.SKIPPED, reason))
        return not failed

    def answers(self) -> tuple[Answer[Any], ...]:
        """What came of all, in the order they were asked in; the limit, for those it struck."""
        return tuple(self.answer(key) for key in self._asks)

    def answer(self, key: str) -> Answer[Any]:
        """What came of one; the limit, if that struck it."""
        return self._answers[key] if key in self._answers else self._struck(self._asks[key])

    def _struck(self, ask: Ask) -> Answer[Any]:
        reason = str(self.ended)
        of_time = "timeout" in reason or "minutes" in reason
        return Answer(ask.to, "", Fate.TIMED_OUT if of_time else Fate.SKIPPED, reason)

    def _hard(self, ask: Ask) -> tuple[str, ...]:
        after = ask.work.after if ask.work is not None else ()
        hard = [other.task_id for other in after if other.type is DependencyType.HARD]
        return tuple(other for other in hard if other in self._asks)

    def _chains(self) -> dict[str, int]:
        """The rank of each; a circle, which would wait for ever, is refused."""
        followers: dict[str, list[str]] = {key: [] for key in self._asks}
        for key, needs in self._needs.items():
            for other in needs:
                followers[other].append(key)
        waited_for = {key: len(follow) for key, follow in followers.items()}
        free = [key for key, count in waited_for.items() if not count]
        ranks: dict[str, int] = {}
        while free:
            key = free.pop()
            ranks[key] = 1 + max((ranks[other] for other in followers[key]), default=0)
            for other in self._needs[key]:
                waited_for[other] -= 1
                if not waited_for[other]:
                    free.append(other)
        circle = [key for key in self._asks if key not in ranks]
        if circle:
            raise ValidationError(f"These tasks wait for each other: {', '.join(circle)}")
        return self._with_load(ranks)

    def _with_load(self, chains: dict[str, int]) -> dict[str, int]:
        """The ranks, with an agent's tasks as a chain too: it does them one after the other."""
        ranks = dict(chains)
        behind: Counter[str] = Counter()
        for key in sorted(chains, key=lambda key: chains[key]):
            ask = self._asks[key]
            if ask.work is not None:
                behind[ask.to] += 1
                ranks[key] = max(chains[key], behind[ask.to])
        return ranks


def _keys(asks: Sequence[Ask]) -> list[str]:
    return [_key(index, ask) for index, ask in enumerate(asks)]


def _key(index: int, ask: Ask) -> str:
    return ask.work.task_id if ask.work is not None else f"{index + 1}"
