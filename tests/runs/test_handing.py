"""What is handed over is collected as it comes, the same in every life of a run (I2, D4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import chain
from typing import Any

import anyio
import msgspec
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.flows.axes import MessageForm, Sync
from agentcanvas.pattern import Ask, Cast, Ends, Fate, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.protocol.plan import Dependency
from agentcanvas.runs.scene import Forms, Pace, Scene
from agentcanvas.runs.stage import RunStage, Settled
from agentcanvas.store import Store
from tests.runs.fake_desk import FakeDesk, Killed, stage

pytestmark = [pytest.mark.anyio, pytest.mark.req("I2", "D4")]

ASYNC = Pace(Sync.ASYNC)
SECONDS = {"slow": 30.0, "quick": 1.0, "middling": 10.0}
TEAM = tuple(SECONDS)


class Number(msgspec.Struct, frozen=True):
    """A number."""

    n: int


class Desk(FakeDesk):
    """Everybody takes their time; ``said`` is what an agent says the first time, and then."""

    def __init__(self, clock: VirtualClock, *, die_before: int | None = None, **said: list[str]):
        def reply(ask: Ask) -> Settled:
            left = said.get(ask.to, [f"{ask.to}: {ask.message.splitlines()[0]}"])
            text = left.pop(0) if len(left) > 1 else left[0]
            value = msgspec.Raw(text.encode()) if text.startswith("{") else msgspec.UNSET
            return Settled(text, value=value)

        takes = {"die_before": die_before, "clock": clock}
        super().__init__(reply, seconds=lambda ask: SECONDS[ask.to], **takes)  # type: ignore[arg-type]


class Pairs:
    """Hands over to everybody and notes who comes when; two of them get another question."""

    id = "pairs"
    options: type[msgspec.Struct] = Number
    roles = (Role("one", "answers", most=None),)

    def __init__(self) -> None:
        self.heard: list[list[str]] = []

    def most(self, size: Size, options: Any) -> Most:
        del options
        return Most(2 * size.players["one"])

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        del options
        await stage.hand_over([Ask(each, request) for each in cast["one"]])
        more = ["quick", "middling"]
        while came := await stage.collect():
            self.heard.append([answer.text for _, answer in came])
            stage.keep(str(self.heard))
            for ask, _ in came:
                if ask.to in more:
                    more.remove(ask.to)
                    await stage.hand_over([Ask(ask.to, "more")])
        return Outcome("heard", done=True, result=str(self.heard))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(clock: VirtualClock) -> AsyncIterator[Store]:
    async with await Store.in_memory(clock=clock) as opened:
        yield opened


async def performed(
    store: Store, clock: VirtualClock, pace: Pace, desk: Desk | None = None, **scene: Any
) -> tuple[Outcome, list[list[str]]]:
    pattern = Pairs()
    cast = {"one": TEAM}
    place = Scene("i1", pace=pace, cast=cast, roles=pattern.roles, **scene)
    here = await stage(store, desk or Desk(clock), scene=place, clock=clock)
    outcome = await here.perform(pattern, cast, "hi", Number(1))
    return outcome, pattern.heard


async def test_with_req_res_the_next_step_waits_for_all_in_their_order(
    store: Store, clock: VirtualClock
) -> None:
    _, heard = await performed(store, clock, Pace())
    assert heard == [["slow: hi", "quick: hi", "middling: hi"], ["quick: more", "middling: more"]]
    assert clock.monotonic() == 30 + 10


async def test_async_goes_on_with_whoever_came_while_the_others_are_at_work(
    store: Store, clock: VirtualClock
) -> None:
    _, heard = await performed(store, clock, ASYNC)
    assert heard == [
        ["quick: hi"],
        ["quick: more"],
        ["middling: hi"],
        ["middling: more"],
        ["slow: hi"],
    ]
    assert clock.monotonic() == 30, "nobody waited for the slow one"


async def test_an_edge_may_be_async_where_the_interaction_is_not(
    store: Store, clock: VirtualClock
) -> None:
    _, heard = await performed(store, clock, Pace(Sync.REQ_RES, {"slow": Sync.ASYNC}))
    assert heard == [
        ["quick: hi", "middling: hi"],
        ["quick: more", "middling: more"],
        ["slow: hi"],
    ]


async def test_turns_that_follow_one_another_are_never_at_once(
    store: Store, clock: VirtualClock
) -> None:
    desk = Desk(clock)
    await performed(store, clock, Pace(Sync.TURN_BASED), desk)
    assert desk.most_at_once == 1


@pytest.mark.parametrize("moment", range(5))
async def test_a_crash_at_any_step_and_a_resume_hear_the_same_in_the_same_order(
    moment: int, clock: VirtualClock
) -> None:
    async with await Store.in_memory(clock=clock) as whole:
        expected = await performed(whole, clock, ASYNC)
    async with await Store.in_memory(clock=clock) as store:
        with pytest.raises(Killed):
            await performed(store, clock, ASYNC, Desk(clock, die_before=moment))
        replayed = await performed(store, clock, ASYNC, Desk(clock))
        assert sorted(chain(*replayed[1])) == sorted(chain(*expected[1]))
        assert await performed(store, clock, ASYNC, Desk(clock, die_before=0)) == replayed, (
            "a replay asks nobody, and hears everything at the same places"
        )


async def test_whoever_breaks_the_form_is_asked_once_more_and_told_once(
    store: Store, clock: VirtualClock
) -> None:
    desk = Desk(clock, quick=["no number", '{"n": 2}'], slow=["no", "no"], middling=['{"n": 1}'])

    class Numbers(Pairs):
        async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
            del options
            await stage.hand_over([Ask(each, request) for each in cast["one"]], Number)
            told: list[object] = []
            while came := await stage.collect():
                told += [(ask.message, answer.value, answer.fate) for ask, answer in came]
            return Outcome(repr(told), done=True)

    place = Scene("i1", pace=ASYNC, cast={"one": TEAM})
    here = await stage(store, desk, scene=place, clock=clock)
    outcome = await here.perform(Numbers(), {"one": TEAM}, "hi", Number(1))
    told = [("hi", Number(2), Fate.DONE), ("hi", Number(1), Fate.DONE), ("hi", None, Fate.FAILED)]
    assert outcome.reason == repr(told)
    assert len(desk.asks) == 5


async def test_the_message_form_of_the_flow_is_asked_for_here_too(
    store: Store, clock: VirtualClock
) -> None:
    desk = Desk(clock, quick=["words", '{"n": 2}'], slow=['{"n": 3}'], middling=['{"n": 1}'])
    forms = Forms(MessageForm.STRUCTURED_JSON)
    _, heard = await performed(store, clock, ASYNC, desk, forms=forms)
    assert [text for texts in heard for text in texts].count("words") == 0
    again = [ask for ask in desk.asks if "not in the form structured_json" in ask.message]
    assert [ask.to for ask in again] == ["quick"]


async def test_time_that_is_over_ends_it_with_what_came(store: Store, clock: VirtualClock) -> None:
    outcome, heard = await performed(store, clock, ASYNC, ends=Ends(timeout_ms=5_000))
    assert (outcome.reason, outcome.done) == ("timeout_ms: 5000", False)
    assert heard[:2] == [["quick: hi"], ["quick: more"]]
    assert "quick: more" in outcome.result
    assert clock.monotonic() == 5


async def test_what_nobody_collects_is_waited_for_before_the_end(
    store: Store, clock: VirtualClock
) -> None:
    class Hasty(Pairs):
        async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
            del options
            await stage.hand_over([Ask(each, request) for each in cast["one"]])
            return Outcome("handed over", done=True)

    here = await stage(store, Desk(clock), scene=Scene("i1", pace=ASYNC), clock=clock)
    outcome = await here.perform(Hasty(), {"one": TEAM}, "hi", Number(1))
    assert outcome.reason == "handed over"
    assert clock.monotonic() == 30
    ends = Ends(timeout_ms=5_000)
    here = await stage(store, Desk(clock), scene=Scene("i2", pace=ASYNC, ends=ends), clock=clock)
    outcome = await here.perform(Hasty(), {"one": TEAM}, "hi", Number(1))
    assert (outcome.reason, outcome.done) == ("timeout_ms: 5000", False), "a limit is the reason"
    assert clock.monotonic() == 35


async def test_a_task_waits_for_those_it_depends_on_also_when_it_is_handed_over(
    store: Store, clock: VirtualClock
) -> None:
    desk = Desk(clock)
    order: list[str] = []

    class Tasks(Pairs):
        async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
            del cast, request, options
            after = Work("b", after=(Dependency("a"),))
            await stage.hand_over([Ask("slow", "a", Work("a")), Ask("quick", "b", after)])
            while came := await stage.collect():
                order.extend(ask.message for ask, _ in came)
            return Outcome("done", done=True)

    here: RunStage = await stage(store, desk, scene=Scene("i1", pace=ASYNC), clock=clock)
    with anyio.fail_after(5):
        await here.perform(Tasks(), {"one": TEAM}, "hi", Number(1))
    assert order == ["a", "b"]
