"""broker_facilitator: leases, capabilities, and those that did best so far first."""

from __future__ import annotations

import pytest

from agentcanvas.patterns.broker_facilitator import Options, Query, Registration
from agentcanvas.patterns.forms import Verdict
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P13")]

YES, NO = Verdict(accept=True), Verdict(accept=False)


def can(*capabilities: str, answer: Part = "an answer") -> Part:
    return lambda message: Registration(capabilities) if "Register with" in message else answer


def wants(capability: str, verdict: Part = YES) -> Part:
    left = [verdict] if not isinstance(verdict, list) else verdict

    def reply(message: str) -> Part:
        if "The broker knows" in message:
            return Query(capability, f"{capability}, please")
        return left.pop(0) if len(left) > 1 else left[0]

    return reply


async def brokered(
    requesters: Part, options: Options | None = None, stage: Part = None, **providers: Part
) -> Log:
    broker = ["bo"] if "bo" in providers else []
    names = [name for name in providers if name != "bo"]
    cast = {"requester": list(requesters), "provider": names, "broker": broker}
    log = await play("broker_facilitator", cast, requesters | providers, options, **(stage or {}))
    assert breaches(log, "broker_facilitator") == []
    return log


async def test_a_request_goes_to_whoever_can_do_it_and_nobody_else() -> None:
    log = await brokered({"rex": wants("Washing")}, ann=can("drying"), bob=can("washing"))
    assert [each.to for each in log.verbs("task")] == ["bob"]
    assert (log.outcome.reason, log.outcome.result) == ("answered", "rex: an answer")


async def test_an_answer_that_is_not_taken_goes_to_the_next_and_each_is_asked_once() -> None:
    log = await brokered({"rex": wants("washing", NO)}, ann=can("washing"), bob=can("washing"))
    assert [each.to for each in log.verbs("task")] == ["ann", "bob"]
    assert (log.outcome.reason, log.outcome.done) == ("not found: rex: washing", False)


async def test_a_search_asks_no_more_than_it_may() -> None:
    providers = {name: can("washing") for name in "abcde"}
    log = await brokered({"rex": wants("washing", NO)}, Options(tries=2), **providers)
    assert [each.to for each in log.verbs("task")] == ["a", "b"]


async def test_those_that_did_best_so_far_are_asked_first() -> None:
    log = await brokered(
        {"rex": wants("washing", [NO, YES]), "roy": wants("washing")},
        ann=can("washing"),
        bob=can("washing"),
    )
    assert [each.to for each in log.verbs("task")] == ["ann", "bob", "bob"]


async def test_an_expired_lease_is_not_routed_to() -> None:
    slow = {"seconds": lambda to, _: 40.0 if to == "rex" else 1.0}
    log = await brokered(
        {"rex": wants("washing", NO)},
        Options(lease_ms=60_000),
        slow,
        ann=can("washing"),
        bob=can("washing"),
    )
    assert [each.to for each in log.verbs("task")] == ["ann"]


async def test_a_lease_that_is_over_is_asked_to_be_renewed_and_may_be_changed_or_given_up() -> None:
    left = [Registration(("washing",)), "wet", Registration()]
    log = await brokered(
        {"rex": wants("washing"), "roy": wants("washing")},
        Options(lease_ms=1),
        {"seconds": lambda to, _: 1.0 if to == "rex" else 0.0},
        ann=lambda _: left.pop(0),
    )
    assert [each.text.partition(" until")[0] for each in log.posted("register")] == [
        "washing",
        "nothing",
    ]


async def test_a_provider_that_fails_is_passed_over() -> None:
    log = await brokered(
        {"rex": wants("washing")}, ann=can("washing", answer=fails("ann")), bob=can("washing")
    )
    assert log.outcome.result == "rex: an answer"


async def test_nobody_can_do_it_and_others_are_served_all_the_same() -> None:
    log = await brokered({"rex": wants("flying"), "roy": wants("washing")}, ann=can("washing"))
    assert log.outcome.reason == "not found: rex: flying"
    assert log.outcome.result == "roy: an answer"


async def test_a_requester_without_a_query_is_told_apart() -> None:
    log = await brokered({"rex": "hm"}, ann=can("washing"))
    assert log.outcome.reason == "not found: rex: no query"


async def test_a_broker_that_is_an_agent_chooses_among_the_able() -> None:
    log = await brokered(
        {"rex": wants("washing", NO)},
        ann=can("washing"),
        bob=can("washing"),
        cyd=can("drying"),
        bo=["bob", "cyd"],
    )
    assert [each.to for each in log.verbs("task")] == ["bob", "ann"]
    assert len(log.asked("bo")) == 1, "of one alone there is no choice"


async def test_an_empty_answer_that_is_taken_is_an_answer() -> None:
    log = await brokered({"rex": wants("washing")}, ann=can("washing", answer=""))
    assert log.outcome.reason == "answered"
