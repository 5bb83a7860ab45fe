"""The forms of typed answers that several patterns ask for: vote, score, verdict, steps.

A form is what an agent reads as a JSON Schema, so its descriptions speak to the agent. A form that
one pattern alone asks for stands in that pattern's file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Answer, Choice, Stage

T = TypeVar("T")

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Vote(msgspec.Struct, frozen=True):
    """One choice, and why."""

    choice: str
    reason: str = ""


class Score(msgspec.Struct, frozen=True):
    """How good it is, from 0 (useless) to 1 (nothing to add), and why."""

    score: Share
    reason: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """Whether it is right as it stands, and if not, why."""

    accept: bool
    reason: str = ""


class Steps(msgspec.Struct, frozen=True):
    """Steps in their order, each complete in itself."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1)]


async def put(stage: Stage, form: type[T], to: str, prompt: str, **facts: object) -> Answer[T]:
    """Ask one agent for a form, in the words of a prompt."""
    return await stage.ask_for(form, to, stage.words(prompt, **facts))


async def judged(stage: Stage, by: str, prompt: str, **facts: object) -> Verdict:
    """Ask one agent for its verdict."""
    return verdict_in(await put(stage, Verdict, by, prompt, **facts))


def verdict_in(answer: Answer[Verdict]) -> Verdict:
    """What an answer says; whoever gives no verdict does not accept."""
    return answer.value or Verdict(accept=False, reason=answer.reason)


async def picked(stage: Stage, by: Sequence[str], question: str, among: Sequence[str]) -> str:
    """Whom of several whoever decides names; the first, where nobody decides or none is named."""
    if not by or len(among) == 1:
        return among[0]
    return (await stage.decide(by[0], question, among)).value or among[0]


def why(decision: Answer[str]) -> str:
    """The reason given with a decision; all that was said, if it was said in other words."""
    try:
        return msgspec.json.decode(decision.text, type=Choice).reason
    except msgspec.MsgspecError:
        return decision.text


def vote_among(choices: Sequence[str]) -> type[Vote]:
    """A vote for one of these choices; anything else breaks the form."""
    fields = [("choice", Literal.__getitem__(tuple(choices)))]
    return msgspec.defstruct("Vote", fields, bases=(Vote,), frozen=True)  # type: ignore[return-value]
