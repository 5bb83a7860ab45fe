"""The verbs beyond asking: every one of them is the same in each life of a run (D4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import PermissionDenied, StageEnded, ValidationError
from agentcanvas.flows.axes import MessageForm, Sync, Topology
from agentcanvas.pattern import (
    Ask,
    Cast,
    Ends,
    Fate,
    Gate,
    Most,
    Outcome,
    Pattern,
    Play,
    Role,
    Share,
    Size,
    Stage,
)
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.journal import Journal
from agentcanvas.runs.offstage import Scope
from agentcanvas.runs.rates import Rates
from agentcanvas.runs.scene import Forms, Pace, Scene
from agentcanvas.runs.slots import Slots
from agentcanvas.runs.stage import RunStage, Settled
from agentcanvas.store import Store
from tests.runs.fake_desk import STREAM, FakeDesk, stage

pytestmark = [pytest.mark.anyio, pytest.mark.req("D4", "I1")]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(clock: VirtualClock) -> AsyncIterator[Store]:
    async with await Store.in_memory(clock=clock) as store:
        yield store


class Vote(msgspec.Struct, frozen=True):
    choice: str


class Bid(msgspec.Struct, frozen=True):
    price: int


def says(**replies: str) -> Any:
    def reply(ask: Ask) -> Settled:
        said = replies.get(ask.to, "")
        return Settled(said, value=msgspec.Raw(said.encode() or b"null"))

    return reply


# -- asking many ----------------------------------------------------------------------------------


async def test_ballots_are_blind_typed_and_side_by_side(store: Store) -> None:
    desk = FakeDesk(says(ann='{"choice": "a"}', bob='{"choice": "b"}'))
    for life in (desk, FakeDesk()):
        here = await stage(store, life)
        ballots = await here.ask_all_for(Vote, [Ask("ann", "vote"), Ask("bob", "vote")])
        assert [each.value for each in ballots] == [Vote("a"), Vote("b")]
        await here.close()
        assert life.effects == (desk.effects if life is desk else [])
    assert desk.most_at_once == 2
    assert {ask.message for ask in desk.asks} == {"vote"}


async def test_a_ballot_without_its_form_is_asked_for_once_more_when_all_have_answered(
    store: Store,
) -> None:
    desk = FakeDesk(says(ann='"x"', bob='{"choice": "b"}'))
    here = await stage(store, desk)
    ballots = await here.ask_all_for(Vote, [Ask("ann", "vote"), Ask("bob", "vote")])
    assert [each.fate for each in ballots] == [Fate.FAILED, Fate.DONE]
    assert [ask.to for ask in desk.asks] == ["ann", "bob", "ann"]


async def test_a_bid_after_its_deadline_is_late_in_every_life(
    store: Store, clock: VirtualClock
) -> None:
    price = says(quick='{"price": 9}', slow='{"price": 1}', broken='"!"')
    desk = FakeDesk(price, clock=clock, seconds=lambda ask: 90 if ask.to == "slow" else 5)
    for life in (desk, FakeDesk()):
        here = await stage(store, life, clock=clock)
        bids = await here.bid(Bid, ["quick", "slow", "broken"], "who?", within_ms=60_000)
        assert [each.fate for each in bids] == [Fate.DONE, Fate.TIMED_OUT, Fate.FAILED]
        assert bids[1].reason == "late"
        await here.close()
    assert desk.interrupted == ["i1/bid:1/2"]
    assert desk.given_up == ["i1/bid:1/2: late"]


async def test_a_limit_leaves_what_came_before_it_and_ends_the_next_verb(
    store: Store, clock: VirtualClock
) -> None:
    desk = FakeDesk(clock=clock, seconds=lambda ask: 999 if ask.to == "silent" else 5)
    here = await stage(store, desk, clock=clock, ends=Ends(timeout_ms=60_000))
    answers = await here.ask_all([Ask("ann", "hi"), Ask("silent", "hi")])
    assert [each.fate for each in answers] == [Fate.DONE, Fate.TIMED_OUT]
    with pytest.raises(StageEnded, match="timeout_ms: 60000"):
        await here.now()


# -- saying ---------------------------------------------------------------------------------------


async def test_a_late_subscriber_hears_what_it_asked_for_and_then_everything(store: Store) -> None:
    for desk in (FakeDesk(), FakeDesk()):
        here = await stage(store, desk)
        await here.subscribe("early", "news")
        await here.publish("news", "one", by="pub")
        await here.publish("news", "two", by="pub")
        missed = await here.subscribe("later", "news", replay=1)
        assert [entry.text for entry in missed] == ["two"]
        await here.unsubscribe("early", "news")
        receipts = await here.publish("news", "three", by="pub")
        assert [each.to for each in receipts] == ["later"]
        await here.close()
        heard = [each.split(":")[0] + each[-6:].replace("\n", " ") for each in desk.told]
        assert len(heard) in (0, 4)
    assert desk.told == []


async def test_the_eleventh_message_of_a_minute_waits(store: Store, clock: VirtualClock) -> None:
    scene = Scene("i1", rates=Rates(10))
    desk = FakeDesk(clock=clock)
    here = await stage(store, desk, clock=clock, scene=scene)
    begun = clock.now_ms()
    for number in range(11):
        assert (await here.tell("ann", str(number))).delivered
    assert clock.now_ms() - begun == 60_000
    await here.close()
    again = await stage(store, FakeDesk(), clock=clock, scene=Scene("i1", rates=Rates(10)))
    for number in range(11):
        await again.tell("ann", str(number))
    assert clock.now_ms() - begun == 60_000, "what was waited for once is not waited for again"


async def test_the_eleventh_message_is_refused_where_the_flow_says_so(
    store: Store, clock: VirtualClock
) -> None:
    for desk in (FakeDesk(), FakeDesk()):
        scene = Scene("i1", rates=Rates(10, refuse=True))
        here = await stage(store, desk, clock=clock, scene=scene)
        receipts = [(await here.route(["ann", "bob"], str(n), by="r"))[0] for n in range(11)]
        assert [each.delivered for each in receipts] == [True] * 10 + [False]
        assert receipts[10].reason == "rate limit: 10 a minute"
        await here.close()
    assert desk.told == []


async def test_nobody_speaks_where_the_topology_has_no_way(store: Store) -> None:
    roles = (Role("manager", "leads", system=True), Role("worker", "works", most=None))
    cast = {"manager": ("boss",), "worker": ("ann", "bob")}
    scene = Scene("i1", cast=cast, roles=roles, topology=Topology.MANAGER_WORKER)
    here = await stage(store, FakeDesk(), scene=scene)
    assert (await here.tell("ann", "go", by="boss")).delivered
    with pytest.raises(PermissionDenied, match="bob may not address ann"):
        await here.tell("ann", "psst", by="bob")


# -- keeping and measuring -------------------------------------------------------------------------


async def test_updates_made_from_the_same_entry_lose_nothing(store: Store) -> None:
    for desk in (FakeDesk(), FakeDesk()):
        here = await stage(store, desk)
        first = await here.post("plan", "draft")
        mine = await here.post("plan", "mine", by="ann", replaces=first.number)
        yours = await here.post("plan", "yours", by="bob", replaces=first.number)
        assert (mine.conflict, yours.conflict) == (False, True)
        assert [entry.text for entry in await here.read("plan")] == ["mine", "yours"]
        await here.close()


async def test_a_metric_that_only_the_pattern_knows_is_held_to_the_gate(store: Store) -> None:
    desk = FakeDesk()
    here = await stage(store, desk, ends=Ends(gates=(Gate("score", ">=", 0.7),)))
    assert not (await here.check("score", value=0.6)).holds
    assert (await here.check("score", value=0.7, detail="fine")).holds
    assert not (await here.check("converged", value=0)).holds
    assert not desk.effects, "nothing was measured"


async def test_a_tie_is_broken_by_the_declared_seed(store: Store) -> None:
    drawn = set()
    for seed in range(20):
        here = await stage(store, FakeDesk(), scene=Scene(f"i{seed}", seed=seed))
        drawn.add(await here.draw(["a", "b"], "a tie"))
    assert drawn == {"a", "b"}
    here = await stage(store, FakeDesk(), scene=Scene("i3", seed=3))
    again = await stage(store, FakeDesk(), scene=Scene("i3", seed=3))
    assert await here.draw(["a", "b"], "a tie") == await again.draw(["a", "b"], "a tie")


async def test_the_time_is_the_same_in_every_life(store: Store, clock: VirtualClock) -> None:
    here = await stage(store, FakeDesk(), clock=clock)
    then = await here.now()
    await here.close()
    await clock.sleep(100)
    assert await (await stage(store, FakeDesk(), clock=clock)).now() == then


# -- interactions within ---------------------------------------------------------------------------


class Options(msgspec.Struct, frozen=True):
    times: int = 1


class Chat:
    """Asks so often, and plays itself once more below if it is told to."""

    id = "chat"
    roles = (Role("one", "talks"),)
    options: type[msgspec.Struct] = Options

    def most(self, size: Size, options: Options) -> Most:
        return Most(size.ask * options.times)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        said = ""
        for number in range(options.times):
            said = (await stage.ask(cast["one"][0], f"{request} {number}")).text
            stage.keep(said)
        return Outcome("said", done=True, result=said)


class Parts:
    """Knows one pattern."""

    def pattern(self, name: str) -> Pattern:
        assert name == "chat"
        return Chat()

    def ends(self, name: str) -> Ends:
        del name
        return Ends()

    def part(self, name: str) -> None:
        del name


async def nested(store: Store, desk: FakeDesk, **given: Any) -> RunStage:
    clock = VirtualClock()
    meter = Meter(given.pop("budget", None) or Budget(), clock)
    journal = await Journal.open(store, STREAM)
    scope = Scope(desk, journal, meter, Slots(5), clock, Parts())
    return RunStage(scope, Scene("i1", **given))


async def test_interactions_within_run_side_by_side_and_replay(store: Store) -> None:
    plays = [Play("chat", {"one": (who,)}, "hi", name=who) for who in ("ann", "bob")]
    first = FakeDesk()
    for desk in (first, FakeDesk()):
        here = await nested(store, desk)
        outcomes = await here.play_all(plays)
        assert [each.result for each in outcomes] == ["ann heard: hi 0", "bob heard: hi 0"]
        await here.close()
    assert sorted(first.effects) == ["i1/play:1/ann/ask:1", "i1/play:1/bob/ask:1"]
    assert desk.effects == []
    assert first.most_at_once == 2


async def test_a_stop_ends_its_own_interaction_and_keeps_what_it_had(store: Store) -> None:
    here = await nested(store, FakeDesk())
    play = Play("chat", {"one": ("ann",)}, "hi", {"times": 5}, share=Share(turns=2))
    outcome = await here.play(play)
    assert not outcome.done
    assert outcome.reason == "budget of i1/play:1/1: 2 turns"
    assert outcome.result == "ann heard: hi 1"
    assert (await here.ask("bob", "still there?")).done


async def test_what_is_spent_within_counts_around_it_also_after_a_crash(store: Store) -> None:
    for desk in (FakeDesk(), FakeDesk()):
        here = await nested(store, desk, share=Share(turns=3))
        await here.play(Play("chat", {"one": ("ann",)}, "hi", {"times": 3}))
        with pytest.raises(StageEnded, match="budget of i1: 3 turns"):
            await here.ask("ann", "one more")
        await here.close()


async def test_siblings_have_names_of_their_own(store: Store) -> None:
    play = Play("chat", {"one": ("ann",)}, "hi", name="same")
    with pytest.raises(ValidationError, match="names of their own"):
        await (await nested(store, FakeDesk())).play_all([play, play])


async def test_a_pattern_that_asks_nobody_and_never_ends_is_ended(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcanvas.runs.stage._MOST_STEPS", 50)
    here = await stage(store, FakeDesk())
    for _ in range(50):
        await here.now()
    with pytest.raises(StageEnded, match="the pattern never ends"):
        await here.now()


# -- message forms ---------------------------------------------------------------------------------


@pytest.mark.req("I2")
@pytest.mark.parametrize("many", [True, False])
async def test_a_reply_is_read_in_the_form_of_its_edge_and_asked_for_once_more(
    store: Store, many: bool
) -> None:
    said = {"ann": ["not json", '{"a": 1}'], "bob": ["whatever"], "cid": ["no", "never"]}
    forms = Forms(MessageForm.STRUCTURED_JSON, {"bob": MessageForm.NL_TEXT})
    desk = FakeDesk(lambda ask: Settled(said[ask.to].pop(0)))
    for life in (desk, FakeDesk()):
        here = await stage(store, life, scene=Scene("i1", forms=forms))
        if many:
            answers = await here.ask_all([Ask(to, "hi") for to in said])
        else:
            answers = tuple([await here.ask(to, "hi") for to in said])
        assert [each.fate for each in answers] == [Fate.DONE, Fate.DONE, Fate.FAILED]
        assert answers[0].text == '{"a": 1}'
        assert "not in the form structured_json" in answers[2].reason
        await here.close()
    asked = [ask.message for ask in desk.asks if ask.to == "ann"]
    assert "Answer with one JSON value" in asked[0]
    assert "not in the form" in asked[1]
    assert [ask.message for ask in desk.asks if ask.to == "bob"] == ["hi"]


@pytest.mark.req("I2")
async def test_where_turns_follow_each_other_nobody_speaks_at_the_same_time(store: Store) -> None:
    desk = FakeDesk()
    here = await stage(store, desk, scene=Scene("i1", pace=Pace(Sync.TURN_BASED)))
    await here.ask_all([Ask(to, "hi") for to in ("ann", "bob", "cid")])
    assert desk.most_at_once == 1
    assert [ask.to for ask in desk.asks] == ["ann", "bob", "cid"]


class Rounds:
    """Three rounds of talk, and a summary."""

    id = "rounds"
    options: type[msgspec.Struct] = msgspec.Struct
    roles = (Role("one", "answers"),)

    def most(self, size: Size, options: Any) -> Most:
        del size, options
        return Most(4)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        del options
        async for round_ in stage.rounds(3):
            await round_.ask(cast["one"][0], request)
        summary = await stage.ask(cast["one"][0], "sum up")
        return Outcome("max_rounds: 3", done=False, result=summary.text)


@pytest.mark.req("I1", "I4a")
@pytest.mark.parametrize(
    ("looks_itself", "value", "asked", "reason"),
    [
        (False, 1.0, 2, "quality_gate: tests_passed >= 1"),
        (False, 0.0, 4, "max_rounds: 3"),
        (True, 1.0, 4, "max_rounds: 3"),
    ],
)
async def test_a_gate_that_holds_ends_the_rounds_and_the_closing_step_still_runs(
    store: Store, looks_itself: bool, value: float, asked: int, reason: str
) -> None:
    ends = Ends(rounds=3, gates=(Gate("tests_passed"),))
    desk = FakeDesk(value=value)
    pattern = Rounds()
    pattern.looks_at_gates = looks_itself  # type: ignore[attr-defined]
    for _ in range(2):  # and the same when it is replayed
        here = await stage(store, desk, scene=Scene("i1", ends=ends, cast={"one": ("ann",)}))
        outcome = await here.perform(pattern, {"one": ("ann",)}, "hi", None)
        assert (outcome.reason, outcome.done) == (reason, asked == 2)
        assert outcome.result == "ann heard: sum up"
        assert len(desk.asks) == asked
