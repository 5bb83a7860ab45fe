"""publish_subscribe (P12): publishers say it once, and whoever subscribed hears it in order.

Topics decouple the two sides: a publisher does not know who listens. Before each round everybody
may subscribe or unsubscribe; a late subscriber first hears the latest entries of its topic, as many
as ``replay`` says. A broker agent says under which topic something belongs, or that nobody is to
hear it; else the publisher's own topic holds. Where the flow says ``async``, what one publishes
goes out while others still write. It ends when nobody listens any more, nobody has anything to say,
or the time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive

PUBLISHER = "publisher"
SUBSCRIBER = "subscriber"
BROKER = "broker"
NOBODY = "nobody"


class Wish(msgspec.Struct, frozen=True):
    """The topics you want to hear of from now on, and those you do not any more."""

    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()


class Publication(msgspec.Struct, frozen=True):
    """What you publish, and under which topic; an empty text publishes nothing."""

    topic: str = ""
    text: str = ""


class Options(msgspec.Struct, frozen=True):
    """``topics`` are all there are; ``replay`` is how many entries a late subscriber hears first.

    In each of ``max_rounds`` everybody may subscribe and publish.
    """

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
        Role(BROKER, "files what is published; else its publisher does", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every round all wish and publish, all of it is filed, and everybody hears everything."""
        rounds, publishers = size.rounds or options.max_rounds, size.count(PUBLISHER)
        heard = publishers + options.replay * len(options.topics)
        asked = {PUBLISHER: publishers, SUBSCRIBER: size.count(SUBSCRIBER)}
        asked[BROKER] = size.count(BROKER) * publishers
        told = rounds * size.count(SUBSCRIBER) * heard
        return Most.of({role: rounds * n * size.typed for role, n in asked.items()}, told)

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
                    topic = await _filed(round_, cast, said, options.topics) if said.text else ""
                    if topic in options.topics:
                        await round_.publish(topic, said.text, by=ask.to)
                        published.append(f"{topic}: {said.text}")
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


async def _filed(stage: Stage, cast: Cast, said: Publication, topics: Sequence[str]) -> str:
    """The topic that a publication comes under."""
    if not cast.get(BROKER):
        return said.topic
    facts = {"text": said.text, "topic": said.topic, "topics": ", ".join(topics)}
    words = stage.words("publish_subscribe.file", **facts)
    filed = await stage.decide(cast[BROKER][0], words, (*topics, NOBODY))
    return filed.value or said.topic
