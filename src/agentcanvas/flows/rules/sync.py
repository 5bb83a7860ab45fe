"""Whether a pattern can follow the ``sync`` that a flow asks of it (I2)."""

from __future__ import annotations

from collections.abc import Iterator

from agentcanvas.flows.axes import Sync
from agentcanvas.flows.model import Interaction
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.problem import Problem, Rule, at


def sync(pointer: str, each: Interaction, info: PatternInfo) -> Iterator[Problem]:
    """Every place that asks a pattern to go on which needs each answer before its next step."""
    if info.goes_on:
        return
    sayings = [(at(pointer, "data", "sync"), each.data)] if each.data else []
    sayings += [
        (at(pointer, "edges", index, "data", "sync"), edge.data)
        for index, edge in enumerate(each.edges)
    ]
    for place, data in sayings:
        if data.sync is Sync.ASYNC:
            sentence = f"{info.id} needs every answer before its next step and cannot run async"
            yield Problem(Rule.SYNC, sentence, "use req_res, turn_based or streaming", place)
