"""Tries a user's pattern with simulated agents, in a process of its own.

``-m agentcanvas.app.pattern_trial FILE``, or ``--entry-point NAME MODULE:ATTRIBUTE``.

It is played twice with the same replies. Two different records would diverge on every resume, and
more turns than it declares would break every bound.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio

from agentcanvas.app.own_patterns import (
    ENTRY,
    GROUP,
    NO_PATTERN,
    load_module,
    misshapen,
    patterns_of,
)
from agentcanvas.pattern import Cast, Outcome, Pattern, Size
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.scripted import Said, ScriptedStage
from agentcanvas.runs.simulation import Crowd, Kind

_SEEDS = 3
_MOST_TURNS = 1_000


def wrong_with(pattern: Pattern) -> str:
    """What a trial shows to be wrong with a pattern; nothing if it may come in."""
    cast = {
        role.name: tuple(
            f"{role.name}_{number}" for number in range(1, (role.most or max(role.least, 2)) + 1)
        )
        for role in pattern.roles
    }
    options = pattern.options()
    players = {role: len(agents) for role, agents in cast.items()}
    most = pattern.most(Size(players=players), options).turns
    for seed in range(_SEEDS):
        one, other = (anyio.run(_played, pattern, cast, seed) for _ in range(2))
        if one != other:
            return f"it diverges on replay: {_difference(one[1], other[1])}"
        turns = sum(said.verb in ("ask", "task") for said in one[1])
        if one[0].reason == "budget: no more turns":
            return f"it never ends: it had asked {_MOST_TURNS:,} times"
        if turns > most:
            return f"it asked {turns} times and declares at most {most}; see Pattern.most"
    return ""


async def _played(pattern: Pattern, cast: Cast, seed: int) -> tuple[Outcome, tuple[Said, ...]]:
    kinds = {agent: Kind(0.7) for agents in cast.values() for agent in agents}
    writing = [role.name for role in pattern.roles if role.writes]
    crowd = Crowd(kinds, [agent for role in writing for agent in cast[role]], seed)
    stage = ScriptedStage(
        crowd.say, typed=crowd.fill, turns=_MOST_TURNS, patterns=(*PATTERNS, pattern)
    )
    outcome = await stage.perform(pattern, cast, "A trial", pattern.options())
    return outcome, tuple(stage.record)


def _difference(one: tuple[Said, ...], other: tuple[Said, ...]) -> str:
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False), 1):
        if mine != theirs:
            return f"step {number} was {mine.verb} {mine.to!r}, then {theirs.verb} {theirs.to!r}"
    return f"it took {len(one)} steps, then {len(other)}"


def _loaded(what: list[str]) -> Any:
    if what[0] == ENTRY:
        return EntryPoint(name=what[1], value=what[2], group=GROUP).load()
    return load_module(Path(what[0]))


def main() -> int:
    """Try every pattern of a file or an entry point."""
    found = patterns_of(_loaded(sys.argv[1:]))
    for wrong in [misshapen(each) or wrong_with(each) for each in found] or [NO_PATTERN]:
        if wrong:
            sys.stdout.write(f"{wrong}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
