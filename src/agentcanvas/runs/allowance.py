"""What a flow allows its run: budgets, how long turns may take, and what is charged by estimate."""

from __future__ import annotations

from collections.abc import Sequence

from agentcanvas.clock import Clock
from agentcanvas.flows.bounds import TURN_MINUTES
from agentcanvas.flows.guards import Budgets
from agentcanvas.flows.model import Flow
from agentcanvas.runs import events as e
from agentcanvas.runs import history
from agentcanvas.runs.budget import Budget, Meter

_COSTLESS = frozenset({"script", "python", "human"})


def meter_of(flow: Flow, before: Sequence[e.Recorded], clock: Clock) -> Meter:
    """The budgets of a run, with what earlier lives of it have used."""
    said = flow.budgets or Budgets()
    budget = Budget(
        turns=said.turns,
        messages=said.messages,
        minutes=said.minutes,
        tokens=said.tokens,
        cost=said.cost,
    )
    tokens, cost = history.used(before)
    return Meter(
        budget,
        clock,
        used_seconds=history.worked_seconds(before),
        used_tokens=tokens,
        used_cost=cost,
    )


def time_limits(flow: Flow) -> dict[str, float | None]:
    """Seconds that a turn of each agent may take.

    The engine always names a timeout (D32), but people take the time they take.
    """
    limits: dict[str, float | None] = {}
    for agent in flow.agents:
        runtime = agent.runtime
        said = runtime.timeout_ms / 1000 if runtime and runtime.timeout_ms else None
        is_person = runtime is not None and runtime.kind == "human"
        limits[agent.id] = said if said or is_person else TURN_MINUTES * 60
    return limits


def behind_models(flow: Flow) -> frozenset[str]:
    """Agents whose turns cost something also when they do not say so (D19)."""
    return frozenset(
        agent.id
        for agent in flow.agents
        if agent.runtime is None or agent.runtime.kind not in _COSTLESS
    )
