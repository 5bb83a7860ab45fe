"""A Stage for tests: answers are written down before, and every verb is on record.

It keeps the promises of the real one that a pattern can see: rounds end at their limit, a task
whose hard dependency failed is not asked, and a typed answer that breaks its form is asked for once
more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import msgspec

from agentcanvas.pattern import Answer, Ask, Fate, Measure, Work
from agentcanvas.protocol.plan import DependencyType

T = TypeVar("T")

Reply = str | Answer[None]
Script = Callable[[str, str], Reply]
"""Who is asked what, and the reply: text, or an answer with its fate."""


class Said(msgspec.Struct, frozen=True):
    """One verb as it was used."""

    verb: str
    round: int
    to: str = ""
    text: str = ""


class ScriptedStage:
    """Plays the script; ``measures`` are handed out in order."""

    def __init__(self, script: Script, *, measures: Sequence[Measure] = ()) -> None:
        self._script = script
        self._measures = list(measures)
        self._round = 0
        self.record: list[Said] = []

    async def ask(self, to: str, message: str, *, work: Work | None = None) -> Answer[None]:
        """Answer as the script says."""
        self._note("ask" if work is None else "task", to, message)
        reply = self._script(to, message)
        return Answer(to, reply) if isinstance(reply, str) else reply

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Read the reply as ``form``; a breach is asked for once more, then it is a failure."""
        first = await self._read(form, to, message)
        if first.done:
            return first
        return await self._read(form, to, f"{message}\n{first.reason}")

    async def _read(self, form: type[T], to: str, message: str) -> Answer[T]:
        answer = await self.ask(to, message)
        try:
            value = msgspec.json.decode(answer.text, type=form)
        except msgspec.MsgspecError as error:
            problem = f"Your answer does not have the form that was asked for: {error}"
            return Answer(to, answer.text, Fate.FAILED, problem)
        return Answer(to, answer.text, value=value)

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask in the order the dependencies allow."""
        fates: dict[str, Fate] = {}
        answers: dict[int, Answer[None]] = {}
        waiting = dict(enumerate(asks))
        while waiting:
            index, ask = next(
                (i, a) for i, a in waiting.items() if all(d in fates for d in _hard(a))
            )
            del waiting[index]
            failed = [other for other in _hard(ask) if fates[other] is not Fate.DONE]
            if failed:
                reason = f"{', '.join(failed)} did not end well"
                answers[index] = Answer(ask.to, "", Fate.SKIPPED, reason)
            else:
                answers[index] = await self.ask(ask.to, ask.message, work=ask.work)
            if ask.work is not None:
                fates[ask.work.task_id] = answers[index].fate
        return tuple(answers[index] for index in range(len(asks)))

    async def tell(self, to: str, message: str) -> None:
        """Put it on record."""
        self._note("tell", to, message)

    async def check(self, metric: str) -> Measure:
        """Hand out the next measure."""
        self._note("check", text=metric)
        return self._measures.pop(0)

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put it on record."""
        del sources
        self._note("note", text=entry)

    async def rounds(self, most: int) -> AsyncIterator[ScriptedStage]:
        """Count."""
        for number in range(1, most + 1):
            self._round = number
            yield self

    def _note(self, verb: str, to: str = "", text: str = "") -> None:
        self.record.append(Said(verb, self._round, to, text))


def _hard(ask: Ask) -> list[str]:
    if ask.work is None:
        return []
    return [other.task_id for other in ask.work.after if other.type is DependencyType.HARD]
