"""The seam to those who do the work: the engine says whom it needs, ``app`` brings them (D40)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentcanvas.flows.model import Flow
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.protocol.records import TranscriptEvent
from agentcanvas.runs.aside import Aside
from agentcanvas.sandbox.confine import Confinement


@dataclass(frozen=True)
class CrewCall:
    """Whom a run needs, and what they need.

    ``keep`` makes the writer of an agent's transcript, ``spoken`` tells where it goes on.
    ``aside`` is what they may do on their own during a turn.
    ``record`` and ``replay`` name the cassette that turns are kept on, or come from.
    """

    run_id: str
    flow: Flow
    workspace: Path
    confinement: Confinement
    ask_person: Callable[[PersonAsk], Awaitable[PersonAnswer]]
    keep: Callable[[str], Callable[[TranscriptEvent], None]]
    spoken: dict[str, int]
    aside: Aside
    record: str = ""
    replay: str = ""


class Crew(Protocol):
    """Brings the agents of a run to the hub, and sends them home at the end."""

    def __call__(self, call: CrewCall) -> AbstractAsyncContextManager[None]: ...
