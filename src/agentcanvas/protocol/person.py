"""What a person is asked, and what they answer (D24): values for the one inbox.

The inbox itself, and who may answer what, is the engine's.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType


class PersonAsk(Struct, frozen=True, kw_only=True):
    """The body of a ``person.ask``.

    ``ask_id`` is the same after a resume, so that an open ask is found again. ``schema`` is the
    JSON Schema of the answer, absent for plain text; ``instruction`` says the same in words.
    ``deadline_ms`` is a moment of the wall clock; when it passes, ``default`` is taken, if there is
    one. ``problem`` says why it is asked again. ``scope`` says what it is about:
    ``review:<task>``, ``plan:<interaction>``, ``task:<task>`` or ``turn:<turn>``; in the hub's own
    also ``approval:<message>`` or ``error:<message>``. A review names
    the ``proposal`` that is judged, which may be a part of the task's latest one.
    """

    ask_id: str
    person: str
    run_id: str
    agent_id: str
    scope: str
    text: str
    instruction: str = ""
    schema: dict[str, Any] | UnsetType = UNSET
    deadline_ms: int | UnsetType = UNSET
    default: Any = UNSET
    images: tuple[str, ...] = ()
    problem: str = ""
    proposal: str | UnsetType = UNSET


class PersonAnswer(Struct, frozen=True):
    """What came back; ``content`` is text, or data where a form was filled in."""

    content: Any
    person: str = ""


def is_of_hub(ask: PersonAsk) -> bool:
    """Tell what the hub itself asks, about what agents tell each other, from what a run does."""
    return ask.scope.startswith(("approval:", "error:"))
