"""What every run of a workspace is carried out with, and the flow of an order made ready for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentcanvas.clock import Clock
from agentcanvas.errors import FlowError
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.flows.model import Flow
from agentcanvas.hub.broker import Transacting
from agentcanvas.hub.hub import Hub
from agentcanvas.runs.crew import Crew
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.store import Store


@dataclass(frozen=True)
class Equipment:
    """What every run of a workspace is carried out with."""

    workspace: Path
    store: Store
    hub: Hub
    broker: Transacting
    clock: Clock
    crew: Crew
    repertoire: Repertoire
    advice: Callable[[Flow], Sequence[str]] = lambda _: ()
    """What the user should know before a flow runs here."""
    vet: Callable[[Flow, RunOrder], None] = lambda *_: None
    """Refuses a flow whose team cannot be brought together."""


def sound_flow(order: RunOrder, repertoire: Repertoire) -> Flow:
    """The flow of an order, or all that keeps it from running."""
    document = read_document(order.flow_text.encode(), f"{order.flow}.yaml")
    flow = check(document, repertoire.infos).sound()
    for each in flow.interactions:
        repertoire.pattern(each.pattern_id)
    if not flow.interactions:
        raise FlowError(f"The flow {order.flow} has no interaction; add one to run it.")
    return flow
