"""The shape of a tree of agents: who is below whom, and what all of it can need."""

from __future__ import annotations

from agentcanvas.pattern import Cast, Size

ROOT, MANAGER, WORKER = "root", "manager", "worker"


def below(cast: Cast, depth: int, width: int) -> list[Cast]:
    """The sub-trees of a node: a manager and its share of those below, or a worker alone."""
    managers, workers = cast.get(MANAGER, ()), cast[WORKER]
    step = min(len(managers), len(workers), width)
    if not step or depth == 1:
        return [{WORKER: (worker,)} for worker in workers]
    return [
        {ROOT: (head,), MANAGER: managers[step + i :: step], WORKER: workers[i::step]}
        for i, head in enumerate(managers[:step])
    ]


def most_turns(cast: Cast, depth: int, width: int, *, rounds: int, size: Size) -> int:
    """What a node and all below it need at most: a split and a gathering in every round."""
    teams = below(cast, depth, width)
    inner = [
        most_turns(team, depth - 1, width, rounds=rounds, size=size) if ROOT in team else size.task
        for team in teams
    ]
    return rounds * (2 * size.typed + sum(inner))


def cast_of(size: Size) -> Cast:
    """A cast of so many that nobody knows by name."""
    counts = {ROOT: 1, MANAGER: size.players.get(MANAGER, 0), WORKER: size.players.get(WORKER, 1)}
    return {role: ("",) * count for role, count in counts.items()}
