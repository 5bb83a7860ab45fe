"""What the Stage for tests is made of: scripts, the record, time, limits, and reading replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Answer, Ask, Ends, Fate, Pattern, Share
from agentcanvas.protocol.plan import DependencyType

T = TypeVar("T")

Reply = str | Answer[None]
Script = Callable[[str, str], Reply]
"""Who is asked what, and the reply: text, or an answer with its fate."""

Person = Callable[[str, bytes], bytes | None]
"""What a person makes of a title and a value as JSON: the same, another one, or None: declined."""

Typed = Callable[[str, str, object], Reply]
"""The same for a question with a form: the form, or the choices there are."""

Seconds = Callable[[str, str], float]
"""How long somebody takes for a message."""

MINUTE_MS = 60_000


class Said(msgspec.Struct, frozen=True):
    """One verb as it was used, and what came back.

    ``by`` is the speaker where one is named; ``at_ms`` and ``until_ms`` are when it began and
    ended; ``within`` names the interaction within the first one, if it was said in one.
    """

    verb: str
    round: int
    to: str = ""
    text: str = ""
    reply: str = ""
    fate: Fate = Fate.DONE
    by: str = ""
    at_ms: int = 0
    until_ms: int = 0
    within: str = ""


class World:
    """What an interaction shares with those within it."""

    def __init__(self, script: Script, seconds: Seconds, patterns: Iterable[Pattern]) -> None:
        self.script = script
        self.typed: Typed | None = None
        self.form: object = None
        """What the answer to the question under way is to look like."""
        self.seconds = seconds
        self.patterns = {pattern.id: pattern for pattern in patterns}
        self.record: list[Said] = []
        self.now_ms = 0
        self.streams = False
        """Whether answers can be heard before they are complete."""
        self.candidates = 0
        self.draws = 0


class Limits:
    """When an interaction is over, and what it may spend, also of what those around it have."""

    def __init__(self, ends: Ends, share: Share, now_ms: int, around: Limits | None) -> None:
        self._share = share
        self._around = around
        self._turns = 0
        self._messages = 0
        self._over: list[tuple[float, StageEnded]] = []
        if ends.timeout_ms is not None:
            reason = f"timeout_ms: {ends.timeout_ms}"
            self._over.append((now_ms + ends.timeout_ms, StageEnded(reason)))
        if share.minutes is not None:
            reason = f"budget: {share.minutes:g} minutes"
            self._over.append((now_ms + share.minutes * MINUTE_MS, StageEnded(reason)))

    def due(self) -> tuple[float, StageEnded] | None:
        """When time is over."""
        outer = self._around.due() if self._around is not None else None
        found = [*self._over, *([outer] if outer else [])]
        return min(found, key=lambda each: each[0], default=None)

    def spend(self, *, turns: int = 0, messages: int = 0) -> None:
        """Count so much more, or end."""
        share = self._share
        if share.turns is not None and self._turns + turns > share.turns:
            raise StageEnded("budget: no more turns")
        if share.messages is not None and self._messages + messages > share.messages:
            raise StageEnded("budget: no more messages")
        if self._around is not None:
            self._around.spend(turns=turns, messages=messages)
        self._turns += turns
        self._messages += messages


def at_once(to: str, message: str) -> float:
    """Nobody takes any time."""
    del to, message
    return 0.0


async def twice(put: Callable[[str], Awaitable[Answer[T]]], text: str) -> Answer[T]:
    """Ask; an answer without its form once more."""
    first = await put(text)
    if first.value is not None or not first.done:
        return first
    second = await put(f"{text}\n\n{first.reason}")
    return failed_without_value(second)


def failed_without_value(answer: Answer[T]) -> Answer[T]:
    """An answer that ended well without its form has failed."""
    if answer.done and answer.value is None:
        return msgspec.structs.replace(answer, fate=Fate.FAILED)
    return answer


def read(form: type[T], answer: Answer[None]) -> Answer[T]:
    """The reply in its form, or what is wrong with it."""
    if not answer.done:
        return without_value(answer)
    try:
        value = msgspec.json.decode(answer.text, type=form)
    except msgspec.MsgspecError as error:
        breach = f"Your answer does not have the form that was asked for: {error}"
        return Answer(answer.agent, answer.text, reason=breach)
    return Answer(answer.agent, answer.text, value=value)


def without_value(answer: Answer[None]) -> Answer[T]:
    """A turn that did not end well, for whoever asked for a form."""
    return Answer(answer.agent, answer.text, answer.fate, answer.reason, failure=answer.failure)


def hard_ones(ask: Ask, asks: Sequence[Ask]) -> list[str]:
    """The tasks among these that it waits for."""
    known = {other.work.task_id for other in asks if other.work is not None}
    after = ask.work.after if ask.work is not None else ()
    hard = [other.task_id for other in after if other.type is DependencyType.HARD]
    return [other for other in hard if other in known]
