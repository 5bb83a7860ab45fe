"""publish_subscribe: said once, heard by all who subscribed, in order."""

from __future__ import annotations

import pytest

from agentcanvas.patterns.publish_subscribe import Options, Publication, Wish
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P12")]

NEWS, NOTHING = Wish(("news",)), Wish()


def says(*texts: str, topic: str = "news") -> list[Publication]:
    return [*(Publication(topic, text) for text in texts), Publication()]


async def published(
    publishers: Part, subscribers: Part, options: Options | None = None, **stage: Part
) -> Log:
    cast = {"publisher": list(publishers), "subscriber": list(subscribers)}
    log = await play("publish_subscribe", cast, publishers | subscribers, options, **stage)
    assert breaches(log, "publish_subscribe") == []
    return log


def heard(log: Log, who: str) -> list[str]:
    return [each.text for each in log.verbs("notify") if each.to == who]


async def test_whoever_subscribed_hears_everything_in_the_order_of_each_publisher() -> None:
    log = await published(
        {"pia": says("p1", "p2"), "paul": says("q1", "q2")}, {"sue": [NEWS, NOTHING]}
    )
    assert heard(log, "sue") == ["p1", "q1", "p2", "q2"]
    assert (log.outcome.reason, log.outcome.done) == ("nothing to publish", True)
    assert log.outcome.result.splitlines()[0] == "news: p1"


async def test_others_hear_nothing() -> None:
    options = Options(topics=("news", "weather"))
    log = await published({"pia": says("rain", topic="weather")}, {"sue": [NEWS, NOTHING]}, options)
    assert heard(log, "sue") == []


@pytest.mark.parametrize(("replay", "missed"), [(0, []), (1, ["p2"]), (9, ["p1", "p2"])])
async def test_a_late_subscriber_hears_the_declared_replay_first(
    replay: int, missed: list[str]
) -> None:
    log = await published(
        {"pia": says("p1", "p2", "p3")},
        {"sue": [NEWS, NOTHING], "late": [NOTHING, NOTHING, NEWS, NOTHING]},
        Options(replay=replay),
    )
    assert heard(log, "late") == [*missed, "p3"]


async def test_whoever_unsubscribed_hears_no_more_and_without_listeners_it_ends() -> None:
    log = await published(
        {"pia": says("p1", "p2", "p3")}, {"sue": [NEWS, Wish((), ("news",)), NOTHING]}
    )
    assert heard(log, "sue") == ["p1"]
    assert (log.outcome.reason, log.outcome.done) == ("nobody listens", True)


async def test_nobody_subscribes_and_nothing_is_published() -> None:
    log = await published({"pia": says("p1")}, {"sue": "no thanks"})
    assert log.outcome.reason == "nobody listens"
    assert not log.asked("pia")


async def test_a_topic_that_does_not_exist_is_neither_published_nor_heard() -> None:
    log = await published({"pia": says("p1", topic="gossip")}, {"sue": [Wish(("news", "gossip"))]})
    assert log.outcome.reason == "nothing to publish"
    assert [each.text for each in log.verbs("subscribe")] == ["news"]


@pytest.mark.parametrize(
    ("filed", "hears"),
    [('{"choice": "weather"}', ["rain"]), ("nobody", []), ("no idea", [])],
    ids=["another topic", "nobody", "no decision"],
)
async def test_an_agent_that_plays_the_broker_says_who_hears_it(
    filed: str, hears: list[str]
) -> None:
    cast = {"publisher": ["pia"], "subscriber": ["sue"], "broker": ["bea"]}
    parts = {"pia": says("rain"), "sue": Wish(("weather",)), "bea": filed}
    options = Options(topics=("news", "weather"), max_rounds=1)
    log = await play("publish_subscribe", cast, parts, options)
    assert breaches(log, "publish_subscribe") == []
    assert heard(log, "sue") == hears


async def test_without_a_decision_of_the_broker_the_publishers_topic_holds() -> None:
    cast = {"publisher": ["pia"], "subscriber": ["sue"], "broker": ["bea"]}
    parts = {"pia": says("rain"), "sue": NEWS, "bea": "no idea"}
    log = await play("publish_subscribe", cast, parts, Options(max_rounds=1))
    assert heard(log, "sue") == ["rain"]
    assert len(log.asked("bea")) == 2


async def test_subscribing_twice_is_subscribing_once() -> None:
    log = await published({"pia": says("p1")}, {"sue": [Wish(("news", "news")), NEWS]})
    assert heard(log, "sue") == ["p1"]


async def test_the_rounds_are_bounded_and_what_was_published_is_the_result() -> None:
    log = await published(
        {"pia": [Publication("news", "again")]}, {"sue": NEWS}, Options(max_rounds=2)
    )
    assert (log.outcome.reason, log.outcome.result) == ("max_rounds: 2", "news: again\nnews: again")


async def test_one_may_unsubscribe_while_another_listens_on() -> None:
    log = await published(
        {"pia": says("p1", "p2")},
        {"sue": [NEWS, Wish((), ("news",)), NOTHING], "sid": [NEWS, NOTHING]},
    )
    assert (heard(log, "sue"), heard(log, "sid")) == (["p1"], ["p1", "p2"])
