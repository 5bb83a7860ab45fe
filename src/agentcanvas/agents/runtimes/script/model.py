"""What a script says: turns by their address, and the steps of each."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from agentcanvas.agents.runtime import Turn
from agentcanvas.flows.part import SHORT, Id, Part
from agentcanvas.protocol.records import FailureClass

_Text = Annotated[str, Meta(min_length=1)]


class Edit(Part, frozen=True, kw_only=True):
    """A change of one file below the work folder: exactly one of write, replace and delete."""

    file: _Text
    write: Annotated[str | None, Meta(description="The whole new content.")] = None
    replace: Annotated[_Text | None, Meta(description="A text that occurs exactly once.")] = None
    with_: Annotated[str | None, Meta(description="What stands there instead.")] = field(
        name="with", default=None
    )
    delete: bool = False


class Run(Part, frozen=True, kw_only=True):
    """A shell command, run confined; its failure is the turn's, unless it may fail."""

    command: _Text
    may_fail: bool = False


class Fail(Part, frozen=True, kw_only=True, rename={"error_class": "class"}):
    """The turn ends as failed."""

    message: _Text
    error_class: FailureClass = FailureClass.UNKNOWN


class Question(Part, frozen=True, kw_only=True):
    """Another member is asked, and answers before the script goes on."""

    to: Id
    text: _Text


class Step(Part, frozen=True, kw_only=True):
    """One thing a scripted agent does: exactly one of these."""

    say: Annotated[Any, Meta(description="Text, or data that is said as JSON.")] = None
    edit: Edit | None = None
    run: Annotated[Run | None, Meta(extra={SHORT: "command"})] = None
    wait: Annotated[float, Meta(gt=0, le=604_800, description="Seconds.")] | None = None
    fail: Annotated[Fail | None, Meta(extra={SHORT: "message"})] = None
    ask: Question | None = None

    @property
    def verbs(self) -> tuple[str, ...]:
        """Which of them are there; one, in a script that was read."""
        return tuple(name for name in VERBS if getattr(self, name) is not None)


VERBS = ("say", "edit", "run", "wait", "fail", "ask")


class Address(Struct, frozen=True, kw_only=True):
    """Which turn is meant; an ``attempt`` of 0 is any of them."""

    task: str = ""
    revision: int = 0
    role: str = ""
    turn: int = 0
    attempt: int = 0

    def __str__(self) -> str:
        if self.task:
            words = f"task {self.task}"
            words += f", revision {self.revision}" if self.revision else ""
        else:
            words = f"turn {self.turn}" + (f" of role {self.role}" if self.role else "")
        return f"{words}, attempt {self.attempt}" if self.attempt else words


class ScriptedTurn(Part, frozen=True, kw_only=True):
    """The steps for one turn: of a task and its revision, or the n-th turn of a role."""

    task: Annotated[Id | None, Meta(description="The id of the task.")] = None
    revision: Annotated[int, Meta(ge=0, description="How often it was sent back; 0 at first.")] = 0
    role: Annotated[Id | None, Meta(description="The role; any if not said.")] = None
    turn: Annotated[int, Meta(ge=1)] | None = None
    attempt: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="After an interruption the turn comes again; any if not said."),
    ] = None
    steps: tuple[Step, ...]

    @property
    def address(self) -> Address:
        return Address(
            task=self.task or "",
            revision=self.revision,
            role=self.role or "",
            turn=self.turn or 0,
            attempt=self.attempt or 0,
        )


class Script(Part, frozen=True, kw_only=True):
    """All that a scripted agent will ever do."""

    turns: tuple[ScriptedTurn, ...]


def addresses_of(turn: Turn) -> tuple[Address, ...]:
    """Where a script may have the steps of a turn, the most particular address first."""
    places = [Address(role=role, turn=turn.number) for role in dict.fromkeys((turn.role, ""))]
    if turn.task_id:
        places.insert(0, Address(task=turn.task_id, revision=turn.revision))
    return tuple(
        Address(
            task=place.task,
            revision=place.revision,
            role=place.role,
            turn=place.turn,
            attempt=attempt,
        )
        for place in places
        for attempt in (turn.attempt, 0)
    )
