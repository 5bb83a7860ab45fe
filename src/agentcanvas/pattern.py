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

    @property
    def heard(self) -> str:
        """What others hear of it: what was said, or why nothing was."""
        return self.text if self.done else f"{self.fate}: {self.reason}"


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

    def __str__(self) -> str:
        """What those who go on with the work hear of it."""
        holds = "holds" if self.holds else "does not hold"
        detail = f": {self.detail}" if self.detail else ""
        return f"The gate {self.metric} {holds} (it is {self.value:g}){detail}"


class Entry(msgspec.Struct, frozen=True):
    """What was posted on the interaction's board; ``number`` counts all posts, from 1.

    ``replaces`` is the entry that this one takes the place of. With ``conflict`` another one had
    taken it before: then nothing is replaced and both stand.
    """

    number: int
    topic: str
    text: str
    by: str = ""
    replaces: int = 0
    conflict: bool = False


class Receipt(msgspec.Struct, frozen=True):
    """What became of a message to one of several: delivered, or refused and why."""

    to: str
    delivered: bool = True
    reason: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """How an interaction ended: why, and with what. A limit keeps the partial result."""

    reason: str
    done: bool
    result: str = ""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What an interaction may spend of what the one around it has; None: no limit of its own."""

    turns: int | None = None
    messages: int | None = None
    minutes: float | None = None
    tokens: int | None = None
    cost: float | None = None


class Play(msgspec.Struct, frozen=True):
    """An interaction within an interaction: a pattern by its id, with a cast and ends of its own.

    ``params`` are the pattern's options where they differ from their defaults. Without ``ends`` it
    has the pattern's own. ``name`` is what the log calls it; siblings have different ones.
    """

    pattern: str
    cast: Cast
    request: str
    params: Mapping[str, Any] = {}
    ends: Ends | None = None
    share: Share = Share()
    name: str = ""


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

    A limit ends whatever verb meets it with ``StageEnded``, whose sentence is the reason. A pattern
    need not catch it: the outcome has that reason then, and what ``keep`` was given last. Verbs
    that ask several bring back what came before the limit, if anything did, the rest TIMED_OUT or
    SKIPPED with that reason; then the next verb ends.

    ``to`` may also be the id of an interaction that fills a role: it is played with the message as
    its request, and its result is the answer.
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

    async def ask_all_for(self, form: type[T], asks: Sequence[Ask]) -> tuple[Answer[T], ...]:
        """Ask many at once for typed answers, blind to each other, in the order of the asks.

        Whoever broke the form is asked once more when all have answered.
        """
        ...

    async def hand_over(self, asks: Sequence[Ask], form: type[Any] | None = None) -> None:
        """Ask many at once and go on; ``collect`` says what comes of it."""
        ...

    async def collect(self) -> tuple[tuple[Ask, Answer[Any]], ...]:
        """What has come of what was handed over, each told once; nothing if nothing is under way.

        Where the flow says ``sync: async`` that is as soon as something has come, in the order it
        came in; else all of it, in the order it was asked in. Whoever broke the form is asked once
        more. What nobody collects is waited for before the interaction ends.
        """
        ...

    async def bid(
        self, form: type[T], to: Sequence[str], call: str, *, within_ms: int
    ) -> tuple[Answer[T], ...]:
        """Call for bids: typed answers of many, each due ``within_ms`` after it was asked.

        A bid that is not there by then is TIMED_OUT with the reason ``late``, and counts no more
        when it comes. Bids bind, so a breach of the form is not asked for again: it FAILED.
        """
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

    async def play(self, play: Play) -> Outcome:
        """Play an interaction within this one; a limit of its own ends it alone."""
        ...

    async def play_all(self, plays: Sequence[Play]) -> tuple[Outcome, ...]:
        """Play several side by side; they share what this one may spend."""
        ...

    async def tell(self, to: str, message: str, *, by: str = "") -> Receipt:
        """Say something that needs no answer, for ``by`` if one is named.

        Where the topology has nobody of them speak to the other, that ends the run as a mistake of
        the pattern. Over the rate limit it waits, or is refused, as the flow says.
        """
        ...

    async def route(self, to: Sequence[str], message: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Deliver one message to those it is meant for and nobody else; a receipt for each."""
        ...

    async def subscribe(self, who: str, topic: str, *, replay: int = 0) -> tuple[Entry, ...]:
        """Have ``who`` told of what is published from now on; the last ``replay`` at once."""
        ...

    async def unsubscribe(self, who: str, topic: str) -> None:
        """Tell ``who`` of nothing more under this topic."""
        ...

    async def publish(self, topic: str, text: str, *, by: str = "") -> tuple[Receipt, ...]:
        """Post something and tell all who subscribed, in the order of publishing."""
        ...

    async def post(self, topic: str, text: str, *, by: str = "", replaces: int = 0) -> Entry:
        """Put something on the board; the oldest of the topic goes when there are too many.

        ``replaces`` is the number of the entry it was made from, which then goes. If somebody
        replaced that one meanwhile, both stay and this one is marked as a conflict.
        """
        ...

    async def read(self, topic: str) -> tuple[Entry, ...]:
        """What is on the board, the oldest first."""
        ...

    async def check(self, metric: str, *, value: float | None = None, detail: str = "") -> Measure:
        """Measure the work as it stands now: ``tests_passed``, or a check that the flow names.

        What only the pattern can know, such as ``score``, ``citations_count``, ``tool_check_pass``
        or ``converged``, it says itself as ``value``. It holds if the flow's gate says so; where
        there is no gate on it, if it is at least 1.
        """
        ...

    async def draw(self, among: Sequence[str], why: str) -> str:
        """One of these by the declared seed (``params.seed``), with the reason on record."""
        ...

    async def now(self) -> int:
        """Milliseconds since the epoch, the same in every life of the run."""
        ...

    def keep(self, result: str) -> None:
        """What it has come to so far: the result if a limit ends it."""
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


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """What a worst case depends on, beside the options.

    ``ask``, ``typed`` and ``task`` are the most turns that one use can take: a question, a question
    with a form (or a ``decide``), and a question with work, its reviews and revisions included.
    """

    players: Mapping[str, int]
    """How many play each role."""
    rounds: int | None = None
    """The flow's ``max_rounds``."""
    tasks: int = 0
    """Steps of the ready plan; 0 without one."""
    ask: int = 1
    typed: int = 2
    task: int = 1

    def count(self, role: str) -> int:
        """How many agents play a role; none where a built-in node does."""
        return self.players.get(role, 0)


class Most(msgspec.Struct, frozen=True):
    """The most that can be needed: turns, and messages that nobody answers.

    ``by_role`` divides the turns among the roles; what is left over is for those not named.
    """

    turns: int
    told: int = 0
    by_role: Mapping[str, int] = {}

    @classmethod
    def of(cls, by_role: Mapping[str, int], told: int = 0) -> Most:
        """The turns of every role, which together are all turns."""
        return cls(sum(by_role.values()), told, by_role)


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

    def most(self, size: Size, options: Any) -> Most:
        """The worst case, which no team can make it pass (D19)."""
        ...

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        """Work on ``request`` until it is done or an end is reached."""
        ...
