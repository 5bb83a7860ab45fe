"""Reading what came of an ask: the form that was asked for, a breach of it, or how it failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import UNSET

from agentcanvas.pattern import Answer, Fate
from agentcanvas.runs.offstage import Settled

T = TypeVar("T")


async def twice(put: Callable[[str, str], Awaitable[Answer[T]]], step: str, text: str) -> Answer[T]:
    """Put something; an answer without the right form is asked for once more, then it fails."""
    first = await put(f"{step}/try:1", text)
    if first.value is not None or not first.done:
        return first
    second = await put(f"{step}/try:2", f"{text}\n\n{first.reason}")
    if second.value is not None or not second.done:
        return second
    return msgspec.structs.replace(second, fate=Fate.FAILED)


def read(form: type[T], to: str, settled: Settled) -> Answer[T]:
    """The answer in its form; without a value, its reason is what was wrong with it."""
    if settled.value is UNSET:
        breach = "Your answer holds no JSON; answer with the form that was asked for."
        return typed(to, settled, None, breach)
    try:
        value = msgspec.json.decode(settled.value, type=form)
    except msgspec.MsgspecError as error:
        breach = f"Your answer does not have the form that was asked for: {error}"
        return typed(to, settled, None, breach)
    return typed(to, settled, value, "")


def typed(to: str, settled: Settled, value: T | None, breach: str) -> Answer[T]:
    """The answer with its value; a turn that went wrong says so itself."""
    if settled.fate is not Fate.DONE:
        return Answer(to, settled.text, settled.fate, settled.reason, failure=settled.failure)
    return Answer(to, settled.text, reason=breach if value is None else "", value=value)


def plain(to: str, settled: Settled) -> Answer[None]:
    """The answer as it was given."""
    return Answer(
        to,
        settled.text,
        settled.fate,
        settled.reason,
        proposal=settled.proposal,
        failure=settled.failure,
    )
