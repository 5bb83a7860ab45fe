"""What the parts of one run share while it is carried out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agentcanvas.clock import Clock
from agentcanvas.flows.model import Flow
from agentcanvas.hub.broker import Unit
from agentcanvas.protocol.packet import Rule
from agentcanvas.runs import events as e
from agentcanvas.runs.attendance import Attendance
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.ground import Ground
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.lookout import Lookout
from agentcanvas.runs.noting import Noting
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.people import People
from agentcanvas.runs.turns import Turns
from agentcanvas.sandbox.confine import Confinement

R = TypeVar("R")


@dataclass(frozen=True)
class RunContext:
    """One run under way."""

    order: RunOrder
    flow: Flow
    clock: Clock
    logbook: Logbook
    journal: Journal
    meter: Meter
    turns: Turns
    people: People
    ground: Ground
    lookout: Lookout
    attendance: Attendance
    confinement: Confinement
    rules: dict[str, tuple[Rule, ...]]
    """By agent; read from the files of the run as soon as these are frozen."""
    recorded: Callable[[], Awaitable[list[e.Recorded]]]
    """The run's events as they stand."""
    audited: Callable[[], Awaitable[str]]
    """What is wrong with the audit trail; nothing if it is as it was written."""
    noting: Noting

    @property
    def run_id(self) -> str:
        return self.logbook.run_id

    def name_of(self, agent_id: str) -> str:
        """What people call an agent."""
        found = (agent.label for agent in self.flow.agents if agent.id == agent_id)
        return next(found, agent_id)

    async def once(
        self,
        step: str,
        request: object,
        kind: type[R],
        effect: Callable[[], Awaitable[tuple[R, Sequence[e.RunEvent]]]],
    ) -> R:
        """The recorded result of a part of a step, or the effect, recorded with its events."""
        known = self.journal.recall(step, request, kind)
        if known is not None:
            return known
        result, events = await effect()
        entry = self.journal.entry(step, request, result)

        def work(unit: Unit) -> None:
            self.journal.write(unit.transaction, entry)
            if events:
                self.logbook.note(unit.transaction, *events)

        self.logbook.queue(work)
        self.journal.remember(entry)
        return result
