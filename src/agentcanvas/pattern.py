"""What a pattern is, and the verbs it may use.

A pattern is a short coroutine over ``Stage``. The Stage enforces ends, time, parallelism, budgets,
topology and the record, so that a pattern cannot forget them, and it is the only source of time,
chance and concurrency, so that a run can be replayed (D4). The engine's Stage is in ``runs``;
``patterns.scripted`` has its twin for tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from agentcanvas.protocol.plan import Dependency
from agentcanvas.protocol.records import FailureClass, ProposalRef

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
    """What makes an ask a task: it has a work product and is judged.

    With ``optional`` a change is welcome and not demanded: with none, what it said is the answer.
    """

    task_id: str
    after: tuple[Dependency, ...] = ()
    scope: tuple[str, ...] | None = None
    acceptance_criteria: tuple[str, ...] = ()
    testing_required: bool = False
    optional: bool = False


class Ask(msgspec.Struct, frozen=True):
    """One question to one agent.

    With ``land=False`` its change is not judged: it comes back as a candidate (D6). ``on`` are
    candidates its sandbox starts from. ``role`` and ``number``, the how-manieth turn of this role
    in the interaction it is, are filled in by the Stage.
    """

    to: str
    message: str
    work: Work | None = None
    land: bool = True
    on: tuple[ProposalRef, ...] = ()
    role: str = ""
    number: int = 1


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """What came of an ask, when everything about it is settled (D6)."""

    agent: str
    text: str
    fate: Fate = Fate.DONE
    reason: str = ""
    value: T | None = None
    proposal: ProposalRef | None = None
    failure: FailureClass | None = None
    """Why the turn itself failed, where its runtime could say."""

    @property
    def done(self) -> bool:
        """Whether it ended well."""
        return self.fate is Fate.DONE


class Gate(msgspec.Struct, frozen=True):
    """A metric that ends an interaction when it is good enough; yes and no count 1 and 0."""

    metric: str
    op: Literal[">=", "<="] = ">="
    value: float = 1

    def holds(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.value if self.op == ">=" else value <= self.value

    def __str__(self) -> str:
        """The end's name, as the log has it."""
        return f"quality_gate: {self.metric} {self.op} {self.value:g}"


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """When an interaction ends (I1); the first that holds is its reason.

    The Stage keeps ``rounds`` and ``timeout_ms`` and holds what is measured against ``gates``. A
    judge's decision and a consensus are seen by the pattern alone, which asks here whether they
    are wanted.
    """

    rounds: int | None = None
    timeout_ms: int | None = None
    gates: tuple[Gate, ...] = ()
    judge: bool = False
    consensus: float | None = None


class Measure(msgspec.Struct, frozen=True):
    """A metric of the work as it stands, and whether it is as good as its gate asks."""

    metric: str
    value: float
    holds: bool
    detail: str = ""


class Entry(msgspec.Struct, frozen=True):
    """What was posted on the interaction's board; ``number`` counts all posts, from 1."""

    number: int
    topic: str
    text: str
    by: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """How an interaction ended: why, and with what. A limit keeps the partial result."""

    reason: str
    done: bool
    result: str = ""


class Choice(msgspec.Struct, frozen=True):
    """How a decision is answered."""

    choice: str
    reason: str = ""


def choice_schema(choices: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of an answer to ``decide``."""
    return {
        "type": "object",
        "properties": {
            "choice": {"enum": list(choices)},
            "reason": {"type": "string"},
        },
        "required": ["choice"],
    }


def read_choice(said: str | bytes | msgspec.Raw, choices: Sequence[str]) -> str | None:
    """The choice in an answer: the form that was asked for, or the bare word; None if neither."""
    try:
        word = msgspec.json.decode(said, type=Choice).choice
    except msgspec.MsgspecError:
        plain = said if isinstance(said, str) else bytes(said).decode()
        word = plain.strip(" \n\t.\"'")
    return next((each for each in choices if each.casefold() == word.casefold()), None)


class Stage(Protocol):
    """The verbs of a pattern.

    A limit ends whatever verb meets it with ``StageEnded``, whose sentence is the reason.
    """

    @property
    def ends(self) -> Ends:
        """When the flow wants the interaction to end."""
        ...

    def words(self, name: str, **facts: object) -> str:
        """The prompt ``<pattern>.<name>``, filled in; a user's own file goes before ours."""
        ...

    async def ask(
        self,
        to: str,
        message: str,
        *,
        work: Work | None = None,
        land: bool = True,
        on: Sequence[ProposalRef] = (),
    ) -> Answer[None]:
        """Ask one agent; with ``work`` it returns when the proposal is settled.

        With ``land=False`` that is when its evidence is there: the proposal is a candidate, which
        ``land`` may land. ``on`` are candidates the work builds on.
        """
        ...

    async def ask_for(self, form: type[T], to: str, message: str) -> Answer[T]:
        """Ask for a typed answer: its schema goes along, a breach is asked for once more."""
        ...

    async def ask_all(self, asks: Sequence[Ask]) -> tuple[Answer[None], ...]:
        """Ask many at once, as far as their dependencies and ``max_parallel`` allow."""
        ...

    async def decide(self, to: str, question: str, choices: Sequence[str]) -> Answer[str]:
        """Have one of the choices made; anything else is asked for once more."""
        ...

    async def confirm(self, form: type[T], proposal: T, title: str) -> Answer[T]:
        """Put a value before the person, if the run wants that; they may change or decline it."""
        ...

    async def land(self, candidate: ProposalRef) -> Answer[None]:
        """Have a candidate judged, and applied if the verdict says so."""
        ...

    async def tell(self, to: str, message: str) -> None:
        """Say something that needs no answer."""
        ...

    async def post(self, topic: str, text: str, *, by: str = "") -> Entry:
        """Put something on the board; the oldest of the topic goes when there are too many."""
        ...

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """What is on the board, the oldest first."""
        ...

    async def check(self, metric: str) -> Measure:
        """Measure the work as it stands now."""
        ...

    async def recall(self, query: str) -> tuple[str, ...]:
        """What the memory knows about something (D46)."""
        ...

    async def note(self, entry: str, sources: Sequence[str] = ()) -> None:
        """Put something on record for those who read later (D46)."""
        ...

    def rounds(self, most: int) -> AsyncIterator[Stage]:
        """At most so many rounds, and never more than the flow's ``max_rounds``.

        What follows the rounds, a judge or a summary, still runs (I4a).
        """
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
