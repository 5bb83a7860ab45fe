"""What stands behind a stage: who carries its asks out, and what all stages of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from agentcanvas.clock import Clock
from agentcanvas.errors import NotFound
from agentcanvas.pattern import Ask, Cast, Ends, Fate, Pattern
from agentcanvas.protocol.records import FailureClass, ProposalRef
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.steps import Done


class Settled(msgspec.Struct, frozen=True):
    """What came of one ask; ``value`` is the typed part of the answer, unchecked.

    ``turns`` and ``messages`` are all it took, reviews and revisions included, so that a replay
    counts them again; the stage fills in what was charged meanwhile. ``ended`` is the limit of time
    that interrupted it.
    """

    text: str
    fate: Fate = Fate.DONE
    reason: str = ""
    value: msgspec.Raw | UnsetType = UNSET
    proposal: ProposalRef | None = None
    failure: FailureClass | None = None
    turns: int = 1
    messages: int = 2
    tokens: int = 0
    cost: float = 0.0
    ended: str = ""


class Drawn(msgspec.Struct, frozen=True):
    """One of several, taken by the seed."""

    choice: str
    among: tuple[str, ...]
    why: str
    seed: int


class Desk(Protocol):
    """Where asks are carried out.

    One turn and its two messages are charged before ``ask`` is called; what a step costs beyond
    that, the Desk charges to the run's ``Meter`` as it happens.
    """

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        """Carry out one ask until it is settled; the result is a ``Settled``."""
        ...

    async def land(self, step: str, candidate: ProposalRef) -> Done:
        """Have a candidate judged and maybe applied; the result is a ``Settled``.

        Nothing was charged before; its ``turns`` and ``messages`` are what the verdict cost.
        """
        ...

    async def confirm(
        self, step: str, title: str, value: msgspec.Raw, schema: dict[str, Any]
    ) -> Done:
        """Put a value before the person, if the run wants that.

        The result is a ``Settled`` with the value, changed or not; REJECTED when it was declined.
        """
        ...

    async def tell(self, step: str, to: str, message: str, by: str = "") -> Done:
        """Say something that needs no answer, on behalf of ``by``."""
        ...

    async def measure(self, step: str, metric: str) -> Done:
        """Measure the work as it stands; the result is a ``Measure``."""
        ...

    async def recall(self, step: str, query: str) -> Done:
        """Look something up in the memory; the result is a ``tuple[str, ...]``."""
        ...

    async def note(self, step: str, entry: str, sources: Sequence[str]) -> Done:
        """Put something on record."""
        ...

    async def drawn(self, step: str, draw: Drawn) -> Done:
        """Put on record what was drawn by the seed; the result is the choice."""
        ...

    async def discard(self, step: str, candidates: Sequence[ProposalRef]) -> Done:
        """Let go of candidates that were never landed, at the end of an interaction."""
        ...

    async def give_up(self, step: str, reason: str) -> None:
        """End what agents still do for a step whose time is over."""
        ...


class Parts(Protocol):
    """What an interaction within an interaction is played with."""

    def pattern(self, name: str) -> Pattern:
        """A pattern by its id."""
        ...

    def ends(self, name: str) -> Ends:
        """The ends a pattern has where nothing else is said."""
        ...

    def part(self, name: str) -> Part | None:
        """The interaction that fills a role under this name, if one does."""
        ...


class Part(msgspec.Struct, frozen=True):
    """An interaction that fills a role, and the desk that carries out its asks."""

    pattern: Pattern
    cast: Cast
    options: msgspec.Struct
    scene: Callable[[str, Scene], Scene]
    """The scene to play it in, by the name the log calls it and the scene around it."""
    desk: Desk


class _NoParts:
    def pattern(self, name: str) -> Pattern:
        raise NotFound(f"There is no pattern {name} here.")

    def ends(self, name: str) -> Ends:
        raise NotFound(f"There is no pattern {name} here.")

    def part(self, name: str) -> Part | None:
        del name
        return None


NO_PARTS: Final[Parts] = _NoParts()
"""Nothing but agents plays a role."""


class Scope(msgspec.Struct, frozen=True):
    """What all stages of one run share."""

    desk: Desk
    journal: Journal
    meter: Meter
    slots: Slots
    clock: Clock
    parts: Parts = NO_PARTS
