"""When an interaction ends: what its flow says, what its pattern's options say, and I4a's defaults.

Some options of a pattern are nothing but an end by a shorter name, such as ``max_rounds``; here
they become the end they stand for, so that the two never say different things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from agentcanvas.flows.axes import (
    HARD_ENDS,
    ConsensusThreshold,
    MaxRounds,
    QualityGate,
    Termination,
    TimeoutMs,
    Topology,
)
from agentcanvas.flows.pattern_info import ROUND_MS, PatternInfo

_AS_END: Final[Mapping[str, tuple[type[Termination], str]]] = {
    "max_rounds": (MaxRounds, "rounds"),
    "threshold": (ConsensusThreshold, "threshold"),
    "pass_at": (QualityGate, "value"),
    "citations": (QualityGate, "value"),
    "gate": (QualityGate, "metric"),
}
"""Which end an option stands for, and which part of it the option says."""


def settled_ends(
    given: tuple[Termination, ...], info: PatternInfo | None, params: Mapping[str, Any]
) -> tuple[Termination, ...]:
    """The ends that hold: those given, or the pattern's, and a hard one among them (I4a)."""
    defaults = own_ends(info, params) if info else ()
    ends = given or defaults
    if not any(isinstance(end, HARD_ENDS) for end in ends):
        ends += tuple(end for end in defaults if isinstance(end, HARD_ENDS))
    timed = any(isinstance(end, TimeoutMs) for end in ends)
    has_default = any(isinstance(end, TimeoutMs) for end in defaults)
    if info and not timed and has_default and needs_timeout(info):
        ends += (TimeoutMs(ROUND_MS * (_rounds(ends) or 1)),)
    return ends


def own_ends(info: PatternInfo, params: Mapping[str, Any]) -> tuple[Termination, ...]:
    """The ends of a pattern where the flow gives none, as its options have them."""
    ends = tuple(_as_said(end, info, params) for end in info.termination)
    before, rounds = _rounds(info.termination), _rounds(ends)
    if rounds is None or rounds == before:
        return ends
    # Its time follows from its rounds.
    timed = TimeoutMs(ROUND_MS * rounds)
    return tuple(timed if isinstance(end, TimeoutMs) else end for end in ends)


def overruled(
    given: tuple[Termination, ...], info: PatternInfo, params: Mapping[str, Any]
) -> Iterator[tuple[str, Termination]]:
    """Options that have no effect, each with the end the flow gives in its place."""
    metrics = {end.metric for end in info.termination if isinstance(end, QualityGate)}
    for name in sorted(info.ends_as & params.keys()):
        kind, part = _AS_END[name]
        for end in given:
            of_another = part == "value" and getattr(end, "metric", None) not in metrics
            if isinstance(end, kind) and not of_another and getattr(end, part) != params[name]:
                yield name, end


def already_said(ends: tuple[Termination, ...], info: PatternInfo) -> frozenset[str]:
    """Options that need not be said where these ends are."""
    kinds = {type(end) for end in ends}
    return frozenset(name for name in info.ends_as if _AS_END[name][0] in kinds)


def needs_timeout(info: PatternInfo) -> bool:
    """Whether I5 asks it for a timeout_ms: debate, critic and negotiation."""
    return info.needs_timeout or Topology.DEBATE_JUDGE in info.topologies


def _as_said(end: Termination, info: PatternInfo, params: Mapping[str, Any]) -> Termination:
    for name in sorted(info.ends_as & params.keys()):
        kind, part = _AS_END[name]
        if not isinstance(end, kind):
            continue
        try:
            return msgspec.convert({**msgspec.to_builtins(end), part: params[name]}, kind)
        except msgspec.ValidationError:
            return end  # what the pattern cannot take is said by ``check``
    return end


def _rounds(ends: tuple[Termination, ...]) -> int | None:
    return min((end.rounds for end in ends if isinstance(end, MaxRounds)), default=None)
