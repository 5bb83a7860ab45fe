"""Tries a user's pattern with simulated agents, in a process of its own.

``-m agentcanvas.app.pattern_trial FILE``, or ``--entry-point NAME MODULE:ATTRIBUTE``. What was read
of the file comes over standard input, so that nothing else is tried.

It is played twice with the same replies. Two different records would diverge on every resume, and
more turns than it declares would break every bound. Its steps are written out, a line each, so that
whoever asked can hold them against those of another process.
"""

from __future__ import annotations

import hashlib
import resource
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio

from agentcanvas.app.own_patterns import (
    COMPUTING_S,
    DIVERGES,
    ENTRY,
    GROUP,
    NO_PATTERN,
    difference,
    misshapen,
    module_of,
    patterns_of,
)
from agentcanvas.pattern import Cast, Outcome, Pattern, Size
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.scripted import Said, ScriptedStage
from agentcanvas.runs.simulation import Crowd, Kind

_SEEDS = 3
_MOST_TURNS = 1_000


def tried(pattern: Pattern) -> tuple[str, list[str]]:
    """What a trial shows to be wrong with a pattern, or nothing; and all its steps."""
    cast = {
        role.name: tuple(
            f"{role.name}_{number}" for number in range(1, (role.most or max(role.least, 2)) + 1)
        )
        for role in pattern.roles
    }
    options = pattern.options()
    players = {role: len(agents) for role, agents in cast.items()}
    most = pattern.most(Size(players=players), options).turns
    steps: list[str] = []
    for seed in range(_SEEDS):
        one, other = (anyio.run(_played, pattern, cast, seed) for _ in range(2))
        lines = _lines(one)
        if one != other:
            return f"{DIVERGES}{difference(lines, _lines(other))}", []
        turns = sum(said.verb in ("ask", "task") for said in one[1])
        if one[0].reason == "budget: no more turns":
            return f"it never ends: it had asked {_MOST_TURNS:,} times", []
        if turns > most:
            return f"it asked {turns} times and declares at most {most}; see Pattern.most", []
        steps += lines
    return "", steps


async def _played(pattern: Pattern, cast: Cast, seed: int) -> tuple[Outcome, tuple[Said, ...]]:
    kinds = {agent: Kind(0.7) for agents in cast.values() for agent in agents}
    crowd = Crowd(pattern, cast, kinds, pattern.options(), seed)
    stage = ScriptedStage(
        crowd.say, typed=crowd.fill, turns=_MOST_TURNS, patterns=(*PATTERNS, pattern)
    )
    outcome = await stage.perform(pattern, cast, "A trial", pattern.options())
    return outcome, tuple(stage.record)


def _lines(played: tuple[Outcome, tuple[Said, ...]]) -> list[str]:
    """Each step: what was done to whom, and a digest of all that was said; then how it ended."""
    outcome, record = played
    lines = [f"{said.verb} {said.to!r} {_digest(said)}" for said in record]
    return [*lines, f"its end {_digest(outcome)}"]


def _digest(whole: Said | Outcome) -> str:
    return hashlib.sha256(repr(whole).encode()).hexdigest()[:16]


def _loaded(what: list[str]) -> Any:
    if what[0] == ENTRY:
        return EntryPoint(name=what[1], value=what[2], group=GROUP).load()
    return module_of(Path(what[0]), sys.stdin.buffer.read())


def _compute_no_longer_than(seconds: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def main() -> int:
    """Try every pattern of a file or an entry point."""
    _compute_no_longer_than(COMPUTING_S)
    found = patterns_of(_loaded(sys.argv[1:]))
    wrong = "" if found else NO_PATTERN
    for pattern in found:
        shape = misshapen(pattern)
        wrong, steps = (shape, []) if shape else tried(pattern)
        if wrong:
            break
        sys.stdout.writelines(f"{step}\n" for step in steps)
    if wrong:
        sys.stdout.write(f"{wrong}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
