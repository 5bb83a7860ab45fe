"""Retries, fallbacks and suggestions, alone and together: decisions, pauses and ids."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import permutations

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    AgentCanvasError,
    CircuitOpen,
    DeadlineExceeded,
    Overloaded,
    Unauthenticated,
    ValidationError,
)
from agentcanvas.hub.breakers import Breakers
from agentcanvas.hub.events import EventKind
from agentcanvas.hub.failures import (
    failure_in,
)
from agentcanvas.hub.journal import Choice, Decision, ListJournal, StoreJournal
from agentcanvas.hub.recovery import Asking, Breaking, Retrying, WithFallback, WithSuggestions
from agentcanvas.protocol.envelope import RetryPolicy
from agentcanvas.protocol.kinds import (
    Kind,
)
from agentcanvas.protocol.limits import AcpRetry, BreakerLimits
from agentcanvas.store import Store
from tests.hub.helpers import assign, events
from tests.hub.scripted import (
    NOT_THE_AGENTS,
    Reply,
    Script,
    error,
    failing,
    late,
    rejecting,
    well,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("H4", "D31")]


@pytest.mark.req("C1", "H11")
async def test_what_was_not_taken_is_sent_again_under_its_id_after_growing_pauses(
    clock: VirtualClock,
) -> None:
    script, journal = Script(Overloaded("full"), Overloaded("full"), well), ListJournal()
    asked = assign("a", "b", "t1")
    answer = await Retrying(script, clock, journal=journal).request(asked)
    assert answer.envelope.kind is Kind.TASK_COMPLETE
    assert script.ids == [asked.id] * 3
    assert clock.monotonic() == pytest.approx(1 + 2)
    assert [(each.choice, each.code, each.pause_ms) for each in journal.decisions] == [
        (Choice.RETRIED, "OVERLOADED", 1000),
        (Choice.RETRIED, "OVERLOADED", 2000),
    ]
    assert script.acks == []  # the good one is the caller's to acknowledge


@pytest.mark.req("C1")
async def test_three_attempts_are_all_a_command_has(clock: VirtualClock) -> None:
    script, journal = Script(Overloaded("full")), ListJournal()
    with pytest.raises(Overloaded):
        await Retrying(script, clock, journal=journal).request(assign("a", "b", "t1"))
    assert len(script.asked) == 3
    assert journal.choices == [Choice.RETRIED, Choice.RETRIED, Choice.GAVE_UP]


@pytest.mark.req("C1", "H11")
async def test_silence_is_waited_out_twice_as_long_under_the_same_id(clock: VirtualClock) -> None:
    script = Script(DeadlineExceeded("nothing"), DeadlineExceeded("nothing"), well)
    asked = assign("a", "b", "t1", timeout_ms=30_000)
    await Retrying(script, clock).request(asked, timeout_s=30)
    assert [timeout for _, timeout in script.asked] == [30, 60, 120]
    assert [each for each, _ in script.asked] == [asked] * 3


@pytest.mark.req("C1", "C3")
async def test_a_task_that_its_agent_ended_for_lack_of_time_is_a_new_one_with_twice_the_time(
    clock: VirtualClock,
) -> None:
    script = Script(late, late, well)
    asked = assign("a", "b", "t1", timeout_ms=30_000)
    await Retrying(script, clock).request(asked, timeout_s=30)
    sent = [each for each, _ in script.asked]
    assert [each.task_id for each in sent] == ["t1", "t1.r1", "t1.r2"]
    assert [each.timeout_ms for each in sent] == [30_000, 60_000, 120_000]
    assert len({each.id for each in sent}) == 3
    assert [each.correlation_id for each in sent[1:]] == [asked.id] * 2
    assert len(script.acks) == 2  # the bad answers were taken over


@pytest.mark.req("C1")
async def test_an_exception_is_retried_once(clock: VirtualClock) -> None:
    script = Script(failing())
    answer = await Retrying(script, clock).request(assign("a", "b", "t1"))
    assert answer.envelope.kind is Kind.TASK_FAIL
    assert len(script.asked) == 2
    assert len(script.acks) == 1


@pytest.mark.req("H11")
@pytest.mark.parametrize(
    "said",
    [
        failing(retry_possible=False),
        failing("CANCELLED"),
        failing("SCOPE_VIOLATION"),
        rejecting(),
        ValidationError("wrong"),
        Unauthenticated("who?"),
        CircuitOpen("not now"),
        error("UNDELIVERABLE", "RESOURCE_ERROR"),
        error("INVALID_MESSAGE_FORMAT", "PROTOCOL_ERROR"),
    ],
)
async def test_what_cannot_be_recovered_is_never_retried(clock: VirtualClock, said: Reply) -> None:
    script = Script(said)
    with suppress(AgentCanvasError):
        await Retrying(script, clock).request(assign("a", "b", "t1"))
    assert len(script.asked) == 1
    assert clock.monotonic() == 0


async def test_a_command_may_bring_its_own_policy(clock: VirtualClock) -> None:
    script = Script(Overloaded("full"))
    asked = assign("a", "b", "t1", retry=RetryPolicy(max_attempts=5, backoff_ms=100))
    with pytest.raises(Overloaded):
        await Retrying(script, clock).request(asked)
    assert len(script.asked) == 5
    assert clock.monotonic() == pytest.approx(0.1 + 0.2 + 0.4 + 0.8)


@given(
    said=st.lists(st.sampled_from(["full", "late", "exception", "fatal", "well"]), min_size=1),
    most=st.integers(1, 6),
)
def test_whatever_happens_attempts_are_bounded_and_ids_are_told_apart(
    said: list[str], most: int
) -> None:
    reactions: dict[str, Reply] = {
        "full": Overloaded("full"),
        "late": late,
        "exception": failing(),
        "fatal": failing(retry_possible=False),
        "well": well,
    }
    script = Script(*(reactions[each] for each in said))
    clock = VirtualClock()

    async def ask() -> None:
        retrying = Retrying(script, clock, policy=AcpRetry(max_attempts=most))
        with suppress(Overloaded):
            await retrying.request(assign("a", "b", "t1", timeout_ms=1000), timeout_s=1)

    anyio.run(ask)
    used = (said + [said[-1]] * most)[: len(script.asked)]
    assert len(script.asked) <= most
    assert not {"well", "fatal"} & set(used[:-1])  # neither is tried again
    for (before, _), (after, _), how in zip(script.asked, script.asked[1:], used, strict=False):
        assert (before.id == after.id) == (how == "full")  # same id: nobody has ended it
        if before.id != after.id:
            assert before.task_id != after.task_id
    assert len(script.acks) == sum(how != "full" for how in used[:-1])


@pytest.mark.req("H11")
async def test_a_fallback_is_another_message_and_another_task(clock: VirtualClock) -> None:
    script, journal = Script(failing(retry_possible=False), Overloaded("full"), well), ListJournal()
    asked = assign("a", "b", "t1")
    answer = await WithFallback(script, ["b", "c", "d"], journal=journal).request(asked)
    assert answer.envelope.sender.id == "d"
    assert script.recipients == ["b", "c", "d"]
    assert [each.task_id for each, _ in script.asked] == ["t1", "t1@c", "t1@d"]
    assert len(set(script.ids)) == 3
    assert journal.choices == [Choice.FELL_BACK, Choice.FELL_BACK]
    again = Script(failing(), well)
    await WithFallback(again, ["c"]).request(asked)
    assert again.ids[1] == script.ids[1]  # the same after a crash: a repeat is known


async def test_what_is_wrong_for_everybody_goes_to_nobody_else(clock: VirtualClock) -> None:
    for said in NOT_THE_AGENTS:
        script = Script(said)
        with suppress(ValidationError):
            await WithFallback(script, ["c"]).request(assign("a", "b", "t1"))
        assert script.recipients == ["b"]


async def test_suggestions_are_followed_in_order_and_nobody_is_asked_twice(
    clock: VirtualClock,
) -> None:
    script = Script(rejecting("c", "d"), rejecting("b", "e"), rejecting(), well)
    journal = ListJournal()
    answer = await WithSuggestions(script, journal=journal).request(assign("a", "b", "t1"))
    assert answer.envelope.kind is Kind.TASK_COMPLETE
    assert script.recipients == ["b", "c", "d", "e"]
    assert [each.next_recipient for each in journal.decisions] == ["c", "d", "e"]


async def test_suggestions_that_lead_in_circles_end(clock: VirtualClock) -> None:
    script = Script(rejecting(*[f"agent-{n}" for n in range(50)]))
    await WithSuggestions(script, most=3).request(assign("a", "b", "t1"))
    assert len(script.asked) == 4


def _wrapped(order: Sequence[str], script: Script, clock: VirtualClock) -> Asking:
    asking: Asking = script
    breakers = Breakers(BreakerLimits())
    for name in order:
        if name == "retry":
            asking = Retrying(asking, clock)
        elif name == "fallback":
            asking = WithFallback(asking, ["c"])
        elif name == "suggest":
            asking = WithSuggestions(asking)
        else:
            asking = Breaking(asking, breakers, clock)
    return asking


@pytest.mark.parametrize("order", list(permutations(["retry", "fallback", "suggest", "break"])))
async def test_in_any_order_a_request_that_can_be_answered_is(
    clock: VirtualClock, order: tuple[str, ...]
) -> None:
    for said in (
        [well],
        [Overloaded("full"), well],
        [failing(), failing(), well],
        [rejecting("c"), well],
        [late, late, late, well],
    ):
        script = Script(*said)
        answer = await _wrapped(order, script, clock).request(assign("a", "b", "t1"), timeout_s=1)
        assert answer.envelope.kind is Kind.TASK_COMPLETE
        assert failure_in(answer.envelope, script.asked[-1][0]) is None
        pairs = {(each.id, each.task_id) for each, _ in script.asked}
        assert len({id_ for id_, _ in pairs}) == len({task for _, task in pairs}) == len(pairs)


async def test_decisions_are_events_of_the_session(store: Store, clock: VirtualClock) -> None:
    journal = StoreJournal(store)
    script = Script(Overloaded("full"), well)
    await Retrying(script, clock, journal=journal).request(assign("a", "b", "t1", session="s"))
    (event,) = await events(store, EventKind.RECOVERY, "s")
    assert msgspec.convert(event, Decision).choice is Choice.RETRIED
