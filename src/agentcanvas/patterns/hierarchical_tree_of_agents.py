"""hierarchical_tree_of_agents (P15): split, hand down, gather up, and the same again below.

A root splits the request among its managers, each of whom is the root of a sub-tree of its own; one
without managers splits among its workers. Every sub-tree is an interaction within the interaction,
with ends of its own, so nobody speaks to a sibling, and it is nowhere deeper than ``max_depth``.
What is gathered goes up; what is still missing is split once more while there are rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Ask, Cast, Ends, Most, Outcome, Play, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive
from agentcanvas.patterns.subtrees import MANAGER, ROOT, WORKER, below, cast_of, most_turns


class Split(msgspec.Struct, frozen=True):
    """One part for each of those below you, in their order; they take turns if there are more."""

    parts: Annotated[tuple[str, ...], Meta(min_length=1)]


class Gathered(msgspec.Struct, frozen=True):
    """What the parts come to as a whole, and what is still missing: nothing if it is complete."""

    result: str
    missing: str = ""


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` holds for each sub-tree, ``max_depth`` for all: 1 is a root and its workers.

    A node has at most ``width`` managers; the others are shared out among those.
    """

    max_rounds: Positive = 2
    max_depth: Annotated[int, Meta(ge=1, le=8)] = 3
    width: Positive = 5


class HierarchicalTree:
    """Split and gather, recursively."""

    id = "hierarchical_tree_of_agents"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(ROOT, "splits the request and gathers the results"),
        Role(MANAGER, "does the same for a part of it", least=0, most=None),
        Role(WORKER, "carries out one part", most=None, writes=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every split and every part, in every round of all nodes above it."""
        rounds, depth = size.rounds or options.max_rounds, options.max_depth
        turns = most_turns(cast_of(size), depth, options.width, rounds=rounds, size=size)
        return Most(turns, by_role={ROOT: rounds * 2 * size.typed})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Rounds of splitting and gathering at one node of the tree."""
        root, teams = cast[ROOT][0], below(cast, options.max_depth, options.width)
        result, missing, number = "", request, 0
        most = stage.ends.rounds or options.max_rounds
        options = msgspec.structs.replace(options, max_rounds=most)
        async for round_ in stage.rounds(most):
            number += 1
            facts = {"request": missing, "result": result, "below": str(len(teams))}
            words = stage.words("hierarchical_tree_of_agents.split", **facts)
            split = await round_.ask_for(Split, root, words)
            if split.value is None:
                return Outcome(f"no split: {split.reason}", done=False, result=result)
            reports = await _hand_down(round_, split.value.parts, teams, options, number)
            stage.keep("\n\n".join(filter(None, [result, reports])))
            facts = {"request": request, "result": result, "reports": reports}
            words = stage.words("hierarchical_tree_of_agents.gather", **facts)
            gathered = await round_.ask_for(Gathered, root, words)
            if gathered.value is None:
                return Outcome(f"not gathered: {gathered.reason}", done=False, result=reports)
            result, missing = gathered.value.result, gathered.value.missing
            stage.keep(result)
            if not missing:
                return Outcome("gathered", done=True, result=result)
        return Outcome(f"max_rounds: {most}", done=False, result=result)


async def _hand_down(
    stage: Stage, parts: Sequence[str], teams: Sequence[Cast], options: Options, number: int
) -> str:
    """Have the parts done by those below, in turn, and say what came of each."""
    shares = ["\n\n".join(parts[index :: len(teams)]) for index in range(len(teams))]
    given = [(team, share) for team, share in zip(teams, shares, strict=True) if share]
    if ROOT not in teams[0]:
        asks = [
            Ask(team[WORKER][0], share, Work(f"part-{number}-{index}", optional=True), role=WORKER)
            for index, (team, share) in enumerate(given, 1)
        ]
        answers = await stage.ask_all(asks)
        return "\n\n".join(f"{a.agent} {a.fate}: {a.text or a.reason}" for a in answers)
    params = {**msgspec.structs.asdict(options), "max_depth": options.max_depth - 1}
    tree = HierarchicalTree.id
    ends = Ends(rounds=options.max_rounds)
    plays = [Play(tree, team, share, params, ends, name=team[ROOT][0]) for team, share in given]
    played = zip(plays, await stage.play_all(plays), strict=True)
    return "\n\n".join(f"{play.name} {came.reason}: {came.result}" for play, came in played)
