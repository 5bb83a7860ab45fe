"""Every interaction ends (I5): what is still missing after the pattern's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from agentcanvas.flows.axes import HARD_ENDS, QualityGate, TimeoutMs, Topology
from agentcanvas.flows.ends import needs_timeout, settled_ends
from agentcanvas.flows.guards import Check
from agentcanvas.flows.model import Interaction
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.problem import Problem, Rule, at, did_you_mean, shown, warning
from agentcanvas.flows.rules.agents import unit_slip
from agentcanvas.flows.settle import (
    RATE_LIMIT,
    RATED,
    RETENTION,
    params_needed,
    said_of,
)

TESTS_PASSED: Final = "tests_passed"


def ends(
    pointer: str, each: Interaction, info: PatternInfo, checks: Iterable[Check] = ()
) -> Iterator[Problem]:
    """What I5 asks for and neither the flow nor the pattern gives."""
    said = said_of(each)
    holding = settled_ends(said.termination, info, said.params)
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
    yield from _gates(pointer, each, info, {check.name for check in checks})
    topology = said.topology or info.topologies[0]
    params = info.params | params_needed(topology, said.params) | said.params
    if topology is Topology.BLACKBOARD and not any(_counts(params.get(n)) for n in RETENTION):
        sentence = f"{each.id} never forgets anything"
        advice = "set params.keep_last_n or params.keep_last_days to 1 or more"
        yield Problem(Rule.NO_RETENTION, sentence, advice, pointer)
    if topology in RATED:
        yield from _rates(pointer, each, params)


def _gates(
    pointer: str, each: Interaction, info: PatternInfo, checks: set[str]
) -> Iterator[Problem]:
    """Gates that nobody will ever measure."""
    if info.metrics is None:
        return
    measured = {TESTS_PASSED, *checks}
    for end in said_of(each).termination:
        if not isinstance(end, QualityGate) or end.metric in info.metrics:
            continue
        if end.metric not in measured:
            advice = did_you_mean(end.metric, {*info.metrics, *measured})
            sentence = f"nothing in {each.id} measures {end.metric}, so that this gate never holds"
            yield warning(Rule.GATE, sentence, advice, pointer)
        elif not info.in_rounds:
            sentence = f"{info.id} has no rounds after which {end.metric} would be measured"
            advice = "use verification: [tool_based] with params.verify_metric"
            yield warning(Rule.GATE, sentence, advice, pointer)


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
