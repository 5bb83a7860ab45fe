"""The forms of typed answers that several patterns ask for: vote, score, verdict.

A form is what an agent reads as a JSON Schema, so its descriptions speak to the agent. A form that
one pattern alone asks for stands in that pattern's file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Answer, Choice

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
