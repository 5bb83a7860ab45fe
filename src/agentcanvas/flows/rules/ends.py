"""Every interaction ends (I5): what is still missing after the pattern's defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentcanvas.flows.axes import HARD_ENDS, TimeoutMs, Topology
from agentcanvas.flows.model import Interaction
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.problem import Problem, Rule, at, shown
from agentcanvas.flows.rules.agents import unit_slip
from agentcanvas.flows.settle import (
    RATE_LIMIT,
    RATED,
    RETENTION,
    needs_timeout,
    params_needed,
    said_of,
    settled_ends,
)


def ends(pointer: str, each: Interaction, info: PatternInfo) -> Iterator[Problem]:
    """What I5 asks for and neither the flow nor the pattern gives."""
    said = said_of(each)
    holding = settled_ends(said.termination, info)
    if not any(isinstance(end, HARD_ENDS) for end in holding):
        sentence = (
            f"what ends {each.id} may never come about" if holding else f"{each.id} has no end"
        )
        advice = "add termination: {type: max_rounds, rounds: 3} or {type: timeout_ms, ms: 300000}"
        yield Problem(Rule.NO_END, sentence, advice, pointer)
    elif needs_timeout(info) and not any(isinstance(end, TimeoutMs) for end in holding):
        advice = "add {type: timeout_ms, ms: 300000} to termination"
        sentence = f"{info.id} never runs without a timeout"
        yield Problem(Rule.NO_TIMEOUT, sentence, advice, pointer)
    yield from _units(pointer, each)
    topology = said.topology or info.topologies[0]
    params = info.params | params_needed(topology, said.params) | said.params
    if topology is Topology.BLACKBOARD and not any(_counts(params.get(n)) for n in RETENTION):
        sentence = f"{each.id} never forgets anything"
        advice = "set params.keep_last_n or params.keep_last_days to 1 or more"
        yield Problem(Rule.NO_RETENTION, sentence, advice, pointer)
    if topology in RATED:
        yield from _rates(pointer, each, params)


def _rates(pointer: str, each: Interaction, params: dict[str, Any]) -> Iterator[Problem]:
    given = [(pointer, params[RATE_LIMIT])]
    given += [
        (at(pointer, "edges", index, "data", "params", RATE_LIMIT), edge.data.params[RATE_LIMIT])
        for index, edge in enumerate(each.edges)
        if RATE_LIMIT in edge.data.params
    ]
    for place, value in given[1:] or given:
        if not _counts(value):
            sentence = f"{each.id} has no rate limit: {shown(value)} is not a number of messages"
            advice = f"set params.{RATE_LIMIT} to 1 or more"
            yield Problem(Rule.NO_RATE_LIMIT, sentence, advice, place)


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _units(pointer: str, each: Interaction) -> Iterator[Problem]:
    sayings = [(at(pointer, "data"), each.data)] if each.data else []
    sayings += [(at(pointer, "edges", i, "data"), e.data) for i, e in enumerate(each.edges)]
    for place, data in sayings:
        for end in data.termination:
            if isinstance(end, TimeoutMs):
                yield from unit_slip(end.ms, at(place, "termination"))
