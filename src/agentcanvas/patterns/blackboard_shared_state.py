"""blackboard_shared_state (P11): everybody reads the board and volunteers, and a controller picks.

After Hearsay-II and blackboard agents for language models (arXiv 2510.01285): the request stands on
the board; in each cycle all agents read it and say how much they could contribute; the controller
has the most willing contribute, and what they say goes on the board when it comes. Where the flow
says ``async``, as it does by itself, the next cycle does not wait for it: whoever is still at work
is not asked. Nobody addresses anybody. It ends when nobody has anything to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Ask, Cast, Entry, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, Share

AGENT = "agent"
BLACKBOARD = "blackboard"
BOARD = "board"


class Volunteer(msgspec.Struct, frozen=True):
    """How much you could add now, from 0 (nothing) to 1 (the answer), and what it would be.

    If it takes the place of an entry of the board, ``replaces`` is its number, else 0.
    """

    willing: Share
    idea: str = ""
    replaces: Annotated[int, Meta(ge=0)] = 0


class Options(msgspec.Struct, frozen=True):
    """``picks`` agents contribute in a round, and there are at most ``max_rounds`` of them."""

    max_rounds: Positive = 10
    picks: Positive = 1


Bid = tuple[str, Volunteer]


class BlackboardSharedState:
    """Read, volunteer, contribute."""

    id = "blackboard_shared_state"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(AGENT, "reads the board and adds to it", most=None, writes=True),
        Role(BLACKBOARD, "picks who contributes; else the most willing do", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every cycle all volunteer, somebody picks, and the picked contribute."""
        agents = size.count(AGENT)
        picks = min(options.picks, agents)
        cycles = size.rounds or options.max_rounds
        chosen = cycles * picks * size.typed if size.count(BLACKBOARD) else 0
        added = cycles * (agents * size.typed + picks * size.task)
        return Most.of({AGENT: added, BLACKBOARD: chosen})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Cycle until the board is complete."""
        await stage.post(BOARD, request)
        at_work: dict[str, int] = {}
        number = 0
        most = stage.ends.rounds or options.max_rounds
        async for round_ in stage.rounds(most):
            board = _text(await round_.read(BOARD))
            stage.keep(board)
            words = stage.words("blackboard_shared_state.volunteer", request=request, board=board)
            free = [Ask(agent, words) for agent in cast[AGENT] if agent not in at_work]
            answers = await round_.ask_all_for(Volunteer, free)
            bids = [(each.agent, each.value) for each in answers if each.value is not None]
            picked = await _pick(round_, cast, board, bids, options.picks)
            if not picked and not at_work:
                return Outcome("nothing to add", done=True, result=board)
            for agent, bid in picked:
                number += 1
                at_work[agent] = bid.replaces
                facts = {"request": request, "board": board, "idea": bid.idea}
                words = stage.words("blackboard_shared_state.contribute", **facts)
                await round_.hand_over([Ask(agent, words, Work(f"entry-{number}", optional=True))])
            await _take_in(round_, at_work)
        while at_work:
            await _take_in(stage, at_work)
        board = _text(await stage.read(BOARD))
        return Outcome(f"max_rounds: {most}", done=False, result=board)


async def _take_in(stage: Stage, at_work: dict[str, int]) -> None:
    """Put on the board what has come; ``at_work`` is the entry that each one replaces."""
    for ask, added in await stage.collect():
        replaces = at_work.pop(ask.to)
        if added.done:
            await stage.post(BOARD, added.text, by=ask.to, replaces=replaces)


async def _pick(stage: Stage, cast: Cast, board: str, bids: Sequence[Bid], picks: int) -> list[Bid]:
    """Who contributes: the most willing, and of several as willing the one listed first."""
    willing = sorted((bid for bid in bids if bid[1].willing > 0), key=lambda bid: -bid[1].willing)
    if not cast.get(BLACKBOARD):
        return willing[:picks]
    picked: list[Bid] = []
    while willing and len(picked) < picks:
        told = "\n".join(f"- {who} ({bid.willing:g}): {bid.idea}" for who, bid in willing)
        words = stage.words("blackboard_shared_state.pick", board=board, volunteers=told)
        choice = await stage.decide(cast[BLACKBOARD][0], words, [who for who, _ in willing])
        best = next((bid for bid in willing if bid[0] == choice.value), willing[0])
        willing.remove(best)
        picked.append(best)
    return picked


def _text(entries: Sequence[Entry]) -> str:
    """The board as agents read it: entries by their numbers, and no names."""
    return "\n\n".join(f"[{entry.number}] {entry.text}" for entry in entries)
