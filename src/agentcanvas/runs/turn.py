"""One turn of one agent as values: what it is about, which attempt at it, what came of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from agentcanvas.protocol.kinds import AttemptSummary
from agentcanvas.protocol.packet import Rule
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.turns import Access, Report


class Place(Struct, frozen=True):
    """Where in the flow a turn belongs, for the record (D22)."""

    interaction_id: str = ""
    edge_id: str = ""
    speaker: str = ""
    logged: bool = True
    """Whether the interaction's log has a line for it."""
    streamed: bool = False
    """Whether what is said before the end is passed on as it comes, to ``listeners``."""
    listeners: tuple[str, ...] = ()


class TurnSpec(Struct, frozen=True, kw_only=True):
    """What a turn is about; ``key`` is its step in the run, and its name on record."""

    key: str
    place: Place = Place()
    to: str
    message: str
    role: str = ""
    number: int = 1
    task_id: str = ""
    revision: int = 0
    again: bool = False
    """Whether the same was tried before and failed (C1)."""
    continuation: int = 0
    """How often it was taken up again after a limit of its service."""
    patience: int = 1
    """How many times its usual time it may take."""
    access: Access = Access.NONE
    own_words: bool = False
    generation: int | None = None
    on: tuple[str, ...] = ()
    session: str = ""
    """The agent's own session of an earlier turn, to go on with."""
    schema: dict[str, Any] | None = None
    scope: tuple[str, ...] | None = None
    testing_required: bool = False
    acceptance_criteria: tuple[str, ...] = ()
    previous_attempts: tuple[AttemptSummary, ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def identity(self) -> TurnSpec:
        """What makes a turn the same; on which generation it ran is a matter of its time."""
        return structs.replace(self, generation=None)


class TurnOutcome(Struct, frozen=True, kw_only=True):
    """What came of it; ``reason`` is the sentence of a turn that did not end well."""

    report: Report
    ok: bool
    reason: str = ""
    failure: FailureClass | None = None
    duration_ms: int = 0
    by: str = ""
    """Who did it, where it was handed over."""


class Attempt(Struct, frozen=True):
    """One try at a turn: a turn that was cut off is sent again as another (D18)."""

    number: int
    message_id: str
    generation: int | None
