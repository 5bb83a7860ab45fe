"""What was handed over in one interaction: it goes on beside the pattern until it is collected.

In which order it came is on record, so that a replay collects the same at the same places. A limit
that strikes meanwhile is kept until then too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import msgspec

from agentcanvas.errors import StageEnded
from agentcanvas.flows.axes import Sync
from agentcanvas.pattern import Answer, Ask, Fate
from agentcanvas.runs import forms
from agentcanvas.runs.answers import plain, read
from agentcanvas.runs.asking import Asking, Read
from agentcanvas.runs.batch import Batch
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.steps import first_of


class Lot(msgspec.Struct, frozen=True):
    """Asks that are handed over together, and how their answers are read and told.

    ``formed``: an answer without a value lacks its form, and is asked for once more.
    """

    asks: tuple[Ask, ...]
    read: Read
    schema: dict[str, Any] | None = None
    formed: bool = False
    last: bool = False
    """Whether it was asked for once more already."""
    as_told: Callable[[Answer[Any]], Answer[Any]] = lambda answer: answer


def lot_of(scene: Scene, asks: Sequence[Ask], form: type[Any] | None) -> Lot:
    """How these are put, and how their answers are read: in this form, or in the flow's."""
    if form is not None:
        schema = msgspec.json.schema(form)
        return Lot(tuple(asks), partial(read, form), schema, formed=True)
    if forms.is_free(scene, list(asks)):
        return Lot(tuple(asks), plain)
    put = tuple(forms.in_form(scene, ask) for ask in asks)
    return Lot(put, forms.reader(scene, asks), formed=True, as_told=forms.as_answer)


class _Handed(msgspec.Struct):
    """One ask under way: as the pattern made it, as it is put, and the how-manieth it is."""

    told: Ask
    put: Ask
    number: int
    key: str
    batch: Batch
    lot: Lot


class Handing:
    """The asks of one interaction that nobody has collected yet."""

    def __init__(self, asking: Asking, scene: Scene, journal: Journal) -> None:
        self._asking = asking
        self._scene = scene
        self._journal = journal
        self._group: anyio.abc.TaskGroup | None = None
        self._open: dict[str, _Handed] = {}
        self._count = 0
        self._came: list[str] = []
        self._news = anyio.Event()

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Where it goes on; on leaving, all that is still under way is waited for."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                yield
        except BaseExceptionGroup as several:
            raise first_of(several) from None

    @property
    def ended(self) -> StageEnded | None:
        """The limit that struck something that nobody has collected."""
        struck = (handed.batch.ended for handed in self._open.values())
        return next((ended for ended in struck if ended is not None), None)

    async def hand_over(self, step: str, asks: Sequence[Ask], lot: Lot) -> None:
        """Set them going; those that were settled in an earlier life have come already."""
        numbers = range(self._count + 1, self._count + len(asks) + 1)
        self._count += len(asks)
        await self._set_going(step, asks, lot, numbers)

    async def _set_going(
        self, step: str, asks: Sequence[Ask], lot: Lot, numbers: Sequence[int]
    ) -> None:
        assert self._group is not None, "an interaction is performed before it hands anything over"
        batch = Batch([self._scene.numbered(ask) for ask in lot.asks])
        for (key, _), told, put, number in zip(batch, asks, lot.asks, numbers, strict=True):
            self._open[f"{step}/{key}"] = _Handed(told, put, number, key, batch, lot)
        await self._asking.recall_all(step, batch, lot.read, lot.schema)
        left = dict(batch.open())
        for key, ask in batch:
            if key not in left:
                self._arrive(f"{step}/{key}")
            else:
                self._group.start_soon(self._carry_out, step, key, ask, batch, lot)

    async def _carry_out(self, step: str, key: str, ask: Ask, batch: Batch, lot: Lot) -> None:
        await self._asking.one_of(batch, step, key, ask, read=lot.read, schema=lot.schema)
        self._arrive(f"{step}/{key}")

    def _arrive(self, name: str) -> None:
        self._came.append(name)
        self._news.set()
        self._news = anyio.Event()

    async def collect(self, step: str) -> tuple[tuple[Ask, Answer[Any]], ...]:
        """What has come; whoever broke the form is asked once more before it is told."""
        came: list[tuple[int, Ask, Answer[Any]]] = []
        first_come, look = self._first_come, 0
        while self._open and (not came or not all(map(self._is_async, self._open))):
            look += 1
            for index, name in enumerate(await self._names(f"{step}/{look}"), 1):
                handed = self._open.pop(name)
                self._came.remove(name)
                answer = handed.batch.answer(handed.key)
                self._scene.ended = self._scene.ended or handed.batch.ended
                broken = handed.lot.formed and answer.done and answer.value is None
                if broken and not handed.lot.last and self._scene.ended is None:
                    await self._ask_again(f"{step}/{look}/again:{index}", handed, answer.reason)
                    continue
                if broken:
                    answer = msgspec.structs.replace(answer, fate=Fate.FAILED)
                came.append((handed.number, handed.told, handed.lot.as_told(answer)))
        if self._scene.ended is not None and not any(answer.done for _, _, answer in came):
            raise self._scene.ended
        if not first_come:
            came.sort(key=lambda each: each[0])
        return tuple((ask, answer) for _, ask, answer in came)

    async def _ask_again(self, step: str, handed: _Handed, breach: str) -> None:
        put = msgspec.structs.replace(handed.put, message=f"{handed.put.message}\n\n{breach}")
        lot = msgspec.structs.replace(handed.lot, asks=(put,), last=True)
        await self._set_going(step, [handed.told], lot, [handed.number])

    @property
    def _first_come(self) -> bool:
        """Whether anything under way is told as soon as it comes."""
        return any(self._is_async(name) for name in self._open)

    def _is_async(self, name: str) -> bool:
        return self._scene.sync_of(self._open[name].put.to) is Sync.ASYNC

    async def _names(self, step: str) -> list[str]:
        """What is collected here: in an earlier life, or now."""
        if not self._first_come:
            await self._wait_for(list(self._open))
            return list(self._open)
        known = self._journal.recall(step, None, list[str])
        if known is not None:
            await self._wait_for(known)
            return known
        await self._wait_for([name for name in self._open if not self._is_async(name)])
        while not self._came:
            await self._news.wait()
        names = list(self._came)
        await self._journal.settle(step, None, names)
        return names

    async def _wait_for(self, names: Sequence[str]) -> None:
        while not set(names) <= set(self._came):
            await self._news.wait()
