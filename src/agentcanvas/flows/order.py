"""What comes before what: the order of interactions and of tasks, and what may run side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

Graph = Mapping[str, Iterable[str]]
"""For each name those that come before it."""


def cycle_in(graph: Graph) -> list[str]:
    """One circle, beginning and ending with the same name; empty if there is none."""
    known = {
        name: [before for before in befores if before in graph] for name, befores in graph.items()
    }
    try:
        TopologicalSorter(known).prepare()
    except CycleError as wrong:
        return [str(name) for name in reversed(wrong.args[1])]
    return []


def befores(graph: Graph) -> dict[str, frozenset[str]]:
    """For each name all that come before it, near and far; the graph has no circle."""
    known = {
        name: [before for before in direct if before in graph] for name, direct in graph.items()
    }
    found: dict[str, frozenset[str]] = {}
    for name in TopologicalSorter(known).static_order():
        direct = known[name]
        found[name] = frozenset(direct).union(*(found[before] for before in direct))
    return found


def side_by_side(graph: Graph) -> list[tuple[str, str]]:
    """All pairs that may run at the same time, in the order of the graph."""
    before = befores(graph)
    names = list(graph)
    return [
        (one, other)
        for index, one in enumerate(names)
        for other in names[index + 1 :]
        if one not in before[other] and other not in before[one]
    ]
