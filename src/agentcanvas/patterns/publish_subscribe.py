"""publish_subscribe (P12): publishers say it once, and whoever subscribed hears it in order.

Topics decouple the two sides: a publisher does not know who listens. Before each round everybody
may subscribe or unsubscribe; a late subscriber first hears the latest entries of its topic, as many
as ``replay`` says. Where the flow says ``async``, what one publishes goes out while others still
write. It ends when nobody listens any more, nobody has anything to say, or the time
is over.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive

PUBLISHER = "publisher"
SUBSCRIBER = "subscriber"
BROKER = "broker"


class Wish(msgspec.Struct, frozen=True):
    """The topics you want to hear of from now on, and those you do not any more."""

    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()


class Publication(msgspec.Struct, frozen=True):
    """What you publish, and under which topic; an empty text publishes nothing."""

    topic: str = ""
    text: str = ""


class Options(msgspec.Struct, frozen=True):
    """``topics`` there are, and how many entries a late subscriber hears afterwards."""

    topics: Annotated[tuple[str, ...], Meta(min_length=1)] = ("news",)
    replay: Annotated[int, Meta(ge=0)] = 0
    max_rounds: Positive = 5


class PublishSubscribe:
    """Subscribe, notify, unsubscribe."""

    id = "publish_subscribe"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(PUBLISHER, "publishes under a topic", most=None),
        Role(SUBSCRIBER, "hears of the topics it subscribed to", most=None),
        Role(BROKER, "keeps the subscriptions; built in", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every round all wish and all publish, and everybody hears everything."""
        rounds = size.rounds or options.max_rounds
        publishers = size.players.get(PUBLISHER, 1)
        subscribers = size.players.get(SUBSCRIBER, 1)
        heard = publishers + options.replay * len(options.topics)
        return Most(rounds * (publishers + subscribers) * size.typed, rounds * subscribers * heard)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Rounds of wishes and publications."""
        listening: dict[str, set[str]] = {who: set() for who in cast[SUBSCRIBER]}
        published: list[str] = []
        topics = ", ".join(options.topics)
        most = stage.ends.rounds or options.max_rounds
        async for round_ in stage.rounds(most):
            await _wishes(round_, request, listening, options)
            if not any(listening.values()):
                return Outcome("nobody listens", done=True, result="\n".join(published))
            facts = {"request": request, "topics": topics, "published": "\n".join(published)}
            words = stage.words("publish_subscribe.publish", **facts)
            await round_.hand_over([Ask(who, words) for who in cast[PUBLISHER]], Publication)
            before = len(published)
            while came := await round_.collect():
                for ask, answer in came:
                    said = answer.value or Publication()
                    if said.text and said.topic in options.topics:
                        await round_.publish(said.topic, said.text, by=ask.to)
                        published.append(f"{said.topic}: {said.text}")
                stage.keep("\n".join(published))
            if len(published) == before:
                return Outcome("nothing to publish", done=True, result="\n".join(published))
        return Outcome(f"max_rounds: {most}", done=True, result="\n".join(published))


async def _wishes(
    stage: Stage, request: str, listening: dict[str, set[str]], options: Options
) -> None:
    """Ask everybody what they want to hear, and see to it."""
    asks = []
    for who, topics in listening.items():
        facts = {"topics": ", ".join(options.topics), "heard": ", ".join(sorted(topics))}
        asks.append(Ask(who, stage.words("publish_subscribe.wish", request=request, **facts)))
    for answer in await stage.ask_all_for(Wish, asks):
        wish, topics = answer.value or Wish(), listening[answer.agent]
        for topic in options.topics:
            if topic in wish.subscribe and topic not in topics:
                topics.add(topic)
                await stage.subscribe(answer.agent, topic, replay=options.replay)
            elif topic in wish.unsubscribe and topic in topics:
                topics.remove(topic)
                await stage.unsubscribe(answer.agent, topic)
