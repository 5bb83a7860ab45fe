"""router_targeted: for those behind the tags and nobody else, and everything acknowledged."""

from __future__ import annotations

import pytest

from agentcanvas.patterns.router_targeted import Letter, Options, Routing
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P14")]

ACK = Letter(ack=True)


def letter(text: str, *tags: str) -> Letter:
    return Letter(ack=True, tags=tags, text=text)


async def routed(
    router: Part = None, options: Options | None = None, stage: Part = None, **agents: Part
) -> Log:
    cast = {"router": ["rho"] if router else [], "agent": list(agents)}
    log = await play("router_targeted", cast, agents | {"rho": router}, options, **(stage or {}))
    assert breaches(log, "router_targeted") == []
    return log


async def test_a_message_reaches_those_behind_its_tags_and_nobody_else() -> None:
    log = await routed(
        Routing(("ann",)), ann=[letter("wash it", "bob")], bob=[letter("clean", "result")], cyd=ACK
    )
    assert [(each.by, each.to) for each in log.verbs("route")] == [("", "ann"), ("ann", "bob")]
    assert (log.outcome.reason, log.outcome.result) == ("delivered", "clean")
    assert not log.asked("cyd")


async def test_a_tag_may_stand_for_a_group_and_the_sender_is_left_out() -> None:
    options = Options(tags={"all": ("ann", "bob", "cyd")})
    log = await routed(Routing(("ann",)), options, ann=[letter("listen", "all")], bob=ACK, cyd=ACK)
    assert [each.to for each in log.verbs("route")] == ["ann", "bob", "cyd"]


async def test_without_a_router_everybody_sees_the_request() -> None:
    log = await routed(ann=ACK, bob=[letter("it is clean", "result")])
    assert [each.to for each in log.verbs("route")] == ["ann", "bob"]
    assert log.outcome.done


async def test_unknown_tags_reach_nobody() -> None:
    log = await routed(Routing(("eve", "nobody")), ann=ACK)
    assert (log.outcome.reason, log.outcome.done) == ("no result", False)
    assert not log.verbs("route")
    assert log.posted("messages")[0].text == "to nobody: Wash up"


@pytest.mark.parametrize(
    "reply", [Letter(ack=False, tags=("bob",), text="no"), "what?", fails("ann")]
)
async def test_what_was_not_acknowledged_is_not_answered_either(reply: Part) -> None:
    log = await routed(Routing(("ann",)), ann=reply, bob=ACK)
    assert not log.asked("bob")
    assert not log.outcome.done


async def test_a_conversation_without_end_is_bounded() -> None:
    log = await routed(
        Routing(("ann",)),
        Options(max_messages=5),
        ann=letter("you", "bob"),
        bob=[letter("no, you", "ann", "result")],
    )
    assert (log.outcome.reason, log.outcome.done) == ("max_messages: 5", False)
    assert len(log.posted("messages")) == 5
    assert log.outcome.result == "no, you\n\nno, you"


async def test_the_eleventh_message_in_a_minute_waits_or_is_refused_as_declared() -> None:
    options = Options(max_messages=24)
    team = {"ann": letter("you", "bob"), "bob": letter("no, you", "ann")}
    waited = await routed(Routing(("ann",)), options, {"rate_limit_per_min": 10}, **team)
    to_bob = [each.at_ms for each in waited.verbs("route") if each.to == "bob"]
    assert (to_bob[9], to_bob[10]) == (0, 60_000)
    refused = await routed(
        Routing(("ann",)), options, {"rate_limit_per_min": 10, "refuse": True}, **team
    )
    last = [each for each in refused.verbs("route") if each.to == "bob"][-1]
    assert last.reply == "rate limit: 10 a minute"
    assert len(refused.asked("bob")) == 10


async def test_a_router_that_breaks_its_form_routes_to_nobody() -> None:
    assert (await routed("to all", ann=ACK)).outcome.reason == "no result"
