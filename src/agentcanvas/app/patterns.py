"""The patterns that run here, with what a flow has to know of each (D19)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import msgspec

from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.pattern_info import Case, Cost, Patterns
from agentcanvas.patterns import PATTERNS as RUNNABLE
from agentcanvas.patterns import manager_worker
from agentcanvas.runs.budget import most_turns_a_task

_DEFAULT_ROUNDS = 2


def _manager_worker(case: Case) -> Cost:
    turns = manager_worker.most_turns(
        managed=bool(case.players.get(manager_worker.MANAGER)),
        rounds=case.rounds or _DEFAULT_ROUNDS,
        tasks=case.tasks,
        turns_a_task=most_turns_a_task(case.iterations),
        max_tasks=int(case.params.get("max_tasks", 20)),
    )
    return Cost(turns, 2 * turns)


_WORST: dict[str, Callable[[Case], Cost]] = {"manager_worker": _manager_worker}

KNOWN: Final[Patterns] = MappingProxyType(
    {
        name: msgspec.structs.replace(info, worst_case=_WORST.get(name))
        for name, info in CATALOGUE.items()
    }
)
"""Every pattern of the specification; those that run here with their worst case."""

assert set(_WORST) == {pattern.id for pattern in RUNNABLE}, "every pattern declares its worst case"
