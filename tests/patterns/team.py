"""Teams that answer as they are told, and the log of what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from agentcanvas.pattern import Answer, Cast, Fate, Outcome, Pattern
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.scripted import Reply, Said, ScriptedStage

Part = Any
"""A reply: text, an answer with its fate, a form; a list of them in turn, the last one stays; or a
function of the message."""

BY_ID: Mapping[str, Pattern] = {pattern.id: pattern for pattern in PATTERNS}


class Log(msgspec.Struct, frozen=True):
    """What happened in an interaction: who played, every verb, and how it ended."""

    cast: Cast
    said: tuple[Said, ...]
    outcome: Outcome
    options: Any

    def verbs(self, *verbs: str) -> list[Said]:
        """What was said by these verbs."""
        return [each for each in self.said if each.verb in verbs]

    def asked(self, *agents: str) -> list[Said]:
        """What these agents were asked, work included; all of them without a name."""
        found = self.verbs("ask", "task")
        return [each for each in found if not agents or each.to in agents]

    def posted(self, topic: str) -> list[Said]:
        """What was put on the board, or published, under a topic."""
        return [each for each in self.verbs("post", "publish") if each.to == topic]

    def players(self, role: str) -> tuple[str, ...]:
        """Who plays a role."""
        return tuple(self.cast.get(role, ()))


def script(parts: Mapping[str, Part]) -> Callable[[str, str], Reply]:
    """A team as a script."""
    turns = {agent: list(part) for agent, part in parts.items() if isinstance(part, list)}

    def reply(to: str, message: str) -> Reply:
        part = parts[to]
        if isinstance(part, list):
            left = turns[to]
            part = left.pop(0) if len(left) > 1 else left[0]
        elif callable(part):
            part = part(message)
        return in_words(part)

    return reply


def in_words(part: Part) -> Reply:
    """A form as the JSON that an agent answers with."""
    if isinstance(part, str | Answer):
        return part
    return msgspec.json.encode(part).decode()


def fails(agent: str, reason: str = "no", fate: Fate = Fate.FAILED) -> Answer[None]:
    """A turn that did not end well."""
    return Answer(agent, "", fate, reason)


async def play(
    pattern: Pattern | str,
    cast: Mapping[str, Sequence[str]],
    parts: Mapping[str, Part],
    options: Any = None,
    *,
    request: str = "Wash up",
    **stage: Any,
) -> Log:
    """Have a pattern played by a team on the stage for tests."""
    playing = BY_ID[pattern] if isinstance(pattern, str) else pattern
    chosen = playing.options() if options is None else options
    players = {role: tuple(agents) for role, agents in cast.items()}
    on = ScriptedStage(script(parts), patterns=(*PATTERNS,), **stage)
    outcome = await on.perform(playing, players, request, chosen)
    return Log(players, tuple(on.record), outcome, chosen)
