"""What a pattern is, and the verbs it may use.

A pattern is a short coroutine over ``Stage``. The Stage enforces ends, time, parallelism, budgets,
topology and the record, so that a pattern cannot forget them, and it is the only source of time,
chance and concurrency, so that a run can be replayed (D4). The engine's Stage is in ``runs``;
``patterns.scripted`` has its twin for tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from agentcanvas.protocol.plan import Dependency
from agentcanvas.protocol.records import ProposalRef

T = TypeVar("T")


class Role(msgspec.Struct, frozen=True):
    """A part in a pattern. ``writes``: what it does to files goes through sandbox and review."""

    name: str
    duty: str
    least: int = 1
    most: int | None = 1
    writes: bool = False
    system: bool = False


Cast = Mapping[str, tuple[str, ...]]
"""Which agents play which role."""


class Fate(StrEnum):
    """What became of an ask."""

    DONE = "done"
    REJECTED = "rejected"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    """Not asked: a task it depends on did not end well."""


class Work(msgspec.Struct, frozen=True):
    """What makes an ask a task: it has a work product and is judged."""

    task_id: str
    after: tuple[Dependency, ...] = ()
    scope: tuple[str, ...] | None = None
    acceptance_criteria: tuple[str, ...] = ()
    testing_required: bool = False


class Ask(msgspec.Struct, frozen=True):
    """One question to one agent."""

    to: str
    message: str
    work: Work | None = None


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """What came of an ask, when everything about it is settled (D6)."""

    agent: str
    text: str
    fate: Fate = Fate.DONE
    reason: str = ""
    value: T | None = None
    proposal: ProposalRef | None = None

    @property
    def done(self) -> bool:
        """Whether it ended well."""
        return self.fate is Fate.DONE


class Measure(msgspec.Struct, frozen=True):
    """A metric of the work as it stands, against the value a gate asks for."""

    metric: str
    value: float
    holds: bool
    detail: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """How an interaction ended: why, and with what. A limit keeps the partial result."""

    reason: str
    done: bool
    result: str = ""


class Stage(Protocol):
    """The verbs of a pattern."""

    async def ask(self, to: str, message: str, *, work: Work | None = None) -> Answer[None]:
        """Ask one agent; with ``work`` it returns when the proposal is settled."""
        ...

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Ask for a typed answer: its schema goes along, a breach is asked for once more."""
        ...

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask many at once, as far as their dependencies and ``max_parallel`` allow."""
        ...

    async def tell(self, to: str, message: str) -> None:
        """Say something that needs no answer."""
        ...

    async def check(self, metric: str) -> Measure:
        """Measure the work as it stands now."""
        ...

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put something on record for those who read later (D46)."""
        ...

    def rounds(self, most: int) -> AsyncIterator[Stage]:
        """At most so many rounds, fewer when the interaction's end comes first."""
        ...


class Pattern(Protocol):
    """One way of working together."""

    @property
    def id(self) -> str: ...

    @property
    def roles(self) -> tuple[Role, ...]: ...

    @property
    def options(self) -> type[msgspec.Struct]:
        """The options it takes, with their defaults."""
        ...

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        """Work on ``request`` until it is done or an end is reached."""
        ...
