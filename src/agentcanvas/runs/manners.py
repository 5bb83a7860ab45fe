"""How simulated agents keep to the rules of a pattern: what they fill in beside their answer.

What is simulated is how often they are right, so they subscribe to what there is, name tags that
exist, and stop when what they see looks right to them. A form that has no manner here is filled by
its shape alone, as those of a user's own patterns are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from agentcanvas.pattern import Cast
from agentcanvas.patterns.blackboard_shared_state import Volunteer
from agentcanvas.patterns.broker_facilitator import Query, Registration
from agentcanvas.patterns.contract_net_auction import Bid
from agentcanvas.patterns.critic_refiner_curator import Flaw
from agentcanvas.patterns.factcheck_tool_verifier import Finding
from agentcanvas.patterns.hierarchical_tree_of_agents import Gathered
from agentcanvas.patterns.memory_sync_daily_summary import Insight, Summary
from agentcanvas.patterns.publish_subscribe import NOBODY, Publication, Wish
from agentcanvas.patterns.router_targeted import Letter, Routing

RIGHT: Final = "answer-right"
WRONG: Final = "answer-wrong"

_ANSWER = re.compile(rf"{RIGHT}|{WRONG}(-\d+)?")
_ENTRY = re.compile(rf"^\[(\d+)\] ({RIGHT}|{WRONG})", re.MULTILINE)
_LOGGED = re.compile(r"^(\S+:\d+): ", re.MULTILINE)
_SKILL = "answering"


class Seen(msgspec.Struct, frozen=True):
    """What one agent is shown, what it says itself, and what it makes of what it is shown."""

    message: str
    word: str
    ok: bool
    """Whether it is right this time."""
    options: Any
    cast: Cast
    chance: random.Random

    @property
    def sound(self) -> bool:
        """Whether what it is shown looks right to it."""
        return (WRONG not in self.message) is self.ok

    @property
    def shown(self) -> str:
        """The first answer that it is shown; none is its own word."""
        found = _ANSWER.search(self.message)
        return found[0] if found else self.word

    @property
    def content(self) -> bool:
        """Whether there is an answer that looks right to it."""
        return _ANSWER.search(self.message) is not None and self.sound


Manner = Callable[[Seen], object]


def _volunteers(seen: Seen) -> Volunteer:
    entry = _ENTRY.search(seen.message)
    if entry is None:
        return Volunteer(0.9, seen.word)
    # Whoever finds the entry wrong puts another in its place.
    return Volunteer(0) if seen.sound else Volunteer(0.9, seen.word, int(entry[1]))


def _summarises(seen: Seen) -> Summary:
    return Summary((Insight(seen.shown, tuple(_LOGGED.findall(seen.message))),))


FORMS: Final[Mapping[object, Manner]] = {
    Bid: lambda seen: Bid(propose=True, cost=seen.chance.randint(1, 9), plan=seen.word),
    Finding: lambda seen: Finding(
        "supported" if seen.sound else "refuted", "simulated", "so it is"
    ),
    Flaw: lambda seen: Flaw(0) if seen.sound else Flaw(1, seen.word),
    Gathered: lambda seen: Gathered(seen.shown, "" if seen.sound else "something is wrong"),
    Letter: lambda seen: Letter(ack=True, tags=("result",), text=seen.word),
    Publication: lambda seen: Publication(
        seen.options.topics[0], "" if seen.content else seen.word
    ),
    Query: lambda _: Query(_SKILL, "What is the answer?"),
    Registration: lambda _: Registration((_SKILL,)),
    Routing: lambda seen: Routing(tuple(seen.cast["agent"])),
    Summary: _summarises,
    Volunteer: _volunteers,
    Wish: lambda seen: Wish(tuple(seen.options.topics)),
}
"""What is said in a form that asks for more than an answer."""

WORDS: Final[Mapping[tuple[str, str], Callable[[Seen], str]]] = {
    ("role_play_pair", "user"): lambda seen: "TASK_DONE" if seen.content else "Instruction: do it",
    ("role_play_pair", "assistant"): lambda seen: f"Solution: {seen.word}",
}
"""What is said in plain text by a role of a pattern that listens for certain words."""


def right_among(choices: tuple[str, ...], message: str) -> str:
    """The right one of some choices: the answer itself, the one it stands beside, or the first.

    Where something may be kept from everybody, what is wrong has to be.
    """
    if NOBODY in choices and WRONG in message:
        return NOBODY
    beside = re.compile(rf"^- (\S+?):? .*{RIGHT}", re.MULTILINE).findall(message)
    return next((each for each in (RIGHT, *beside) if each in choices), choices[0])
