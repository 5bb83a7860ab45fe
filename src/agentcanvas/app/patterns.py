"""The patterns that run here, with what a flow has to know of each (D19)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import msgspec

from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.pattern_info import Case, Cost, Patterns
from agentcanvas.pattern import Pattern, Size
from agentcanvas.patterns import PATTERNS as RUNNABLE
from agentcanvas.runs.budget import most_turns_a_task

_MESSAGES_A_TURN = 2


def worst_case(pattern: Pattern) -> Callable[[Case], Cost]:
    """What a pattern declares as its worst case, in the words of a flow."""

    def worst(case: Case) -> Cost:
        size = Size(
            players=case.players,
            rounds=case.rounds,
            tasks=case.tasks,
            ask=case.turns_an_ask,
            task=most_turns_a_task(case.iterations),
        )
        most = pattern.most(size, _options(pattern, case.params))
        return Cost(most.turns, _MESSAGES_A_TURN * most.turns + most.told)

    return worst


def _options(pattern: Pattern, params: Any) -> msgspec.Struct:
    names = {field.name for field in msgspec.structs.fields(pattern.options)}
    given = {name: value for name, value in params.items() if name in names}
    return msgspec.convert(given, pattern.options)


_WORST: Final = {pattern.id: worst_case(pattern) for pattern in RUNNABLE}

KNOWN: Final[Patterns] = MappingProxyType(
    {
        name: msgspec.structs.replace(info, worst_case=_WORST.get(name))
        for name, info in CATALOGUE.items()
    }
)
"""Every pattern of the specification; those that run here with their worst case."""
