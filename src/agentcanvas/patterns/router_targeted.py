"""router_targeted (P14): messages carry target tags, and reach those they are meant for.

After TarMAC (arXiv 1810.11187): a sender says for whom a message is by tags; the router delivers it
to the agents behind them, who acknowledge it and may answer with a message of their own. Nobody
else receives it. Without a router agent the request goes to everybody; how many messages a minute
pass is the flow's ``rate_limit_per_min``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive

ROUTER = "router"
AGENT = "agent"
MESSAGES = "messages"


class Letter(msgspec.Struct, frozen=True):
    """Whether you took it in; your answer, if you have one, and the tags of those it is for.

    The tag ``result`` says that the text is what the request asks for.
    """

    ack: bool
    tags: tuple[str, ...] = ()
    text: str = ""


class Routing(msgspec.Struct, frozen=True):
    """The tags of those who have to see the request."""

    tags: tuple[str, ...]


class Options(msgspec.Struct, frozen=True):
    """``tags`` are names for groups of agents; every agent's id is a tag of its own.

    After ``max_messages`` nothing more is delivered.
    """

    tags: dict[str, tuple[str, ...]] = {}
    max_messages: Positive = 20


class RouterTargeted:
    """Tag, deliver, acknowledge."""

    id = "router_targeted"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(ROUTER, "says who has to see the request; else all do", least=0, system=True),
        Role(AGENT, "takes in what is for it, and answers", most=None),
    )

    def most(self, size: Size, options: Options) -> Most:
        """The request goes to everybody, and every message to all but its sender."""
        agents = size.count(AGENT)
        heard = agents + (options.max_messages - 1) * (agents - 1)
        routed = size.typed if size.count(ROUTER) else 0
        return Most.of({ROUTER: routed, AGENT: heard * size.typed}, told=heard)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Deliver until nothing is under way."""
        agents = cast[AGENT]
        behind = {agent: (agent,) for agent in agents} | options.tags
        known = ", ".join(sorted({*behind, "result"}))
        waiting = deque([("", await _first(stage, cast, request, behind), request)])
        results: list[str] = []
        delivered = 0
        while True:
            while waiting and delivered < options.max_messages:
                delivered += 1
                sender, tags, text = waiting.popleft()
                to = [who for who in _targets(tags, behind, agents) if who != sender]
                await stage.post(MESSAGES, f"to {', '.join(to) or 'nobody'}: {text}", by=sender)
                receipts = await stage.route(to, text, by=sender)
                facts = {"request": request, "text": text, "tags": known}
                words = stage.words("router_targeted.acknowledge", **facts)
                await stage.hand_over([Ask(r.to, words) for r in receipts if r.delivered], Letter)
            came = await stage.collect()
            if not came:
                break
            for ask, answer in came:
                letter = answer.value or Letter(ack=False)
                if not letter.ack or not letter.text:
                    continue
                if "result" in letter.tags:
                    results.append(letter.text)
                    stage.keep("\n\n".join(results))
                if _targets(letter.tags, behind, agents):
                    waiting.append((ask.to, letter.tags, letter.text))
        reason = "delivered" if results else "no result"
        reason = f"max_messages: {delivered}" if waiting else reason
        done = bool(results) and not waiting
        return Outcome(reason, done=done, result="\n\n".join(results))


async def _first(
    stage: Stage, cast: Cast, request: str, behind: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Who has to see the request."""
    if not cast.get(ROUTER):
        return tuple(cast[AGENT])
    words = stage.words("router_targeted.route", request=request, tags=", ".join(behind))
    routing = (await stage.ask_for(Routing, cast[ROUTER][0], words)).value
    return routing.tags if routing is not None else ()


def _targets(
    tags: Sequence[str], behind: Mapping[str, Sequence[str]], agents: Sequence[str]
) -> list[str]:
    """The agents behind these tags, in the order of the cast."""
    meant = {agent for tag in tags for agent in behind.get(tag, ())}
    return [agent for agent in agents if agent in meant]
