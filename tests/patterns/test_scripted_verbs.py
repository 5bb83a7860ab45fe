"""The scripted Stage keeps the promises of the wider verbs, on a time of its own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentcanvas.errors import StageEnded
from agentcanvas.pattern import (
    Ask,
    Cast,
    Ends,
    Fate,
    Gate,
    Measure,
    Most,
    Outcome,
    Play,
    Role,
    Share,
    Size,
    Stage,
)
from agentcanvas.patterns.scripted import ScriptedStage

pytestmark = [pytest.mark.anyio, pytest.mark.req("D4")]


class Number(msgspec.Struct, frozen=True):
    n: int


def five(to: str, message: str) -> str:
    del to, message
    return '{"n": 5}'


def slow(who: str, seconds: float) -> Any:
    return lambda to, _: seconds if to == who else 1.0


async def test_ballots_begin_at_the_same_moment() -> None:
    stage = ScriptedStage(five, seconds=slow("bob", 9))
    ballots = await stage.ask_all_for(Number, [Ask("ann", "?"), Ask("bob", "?")])
    assert [each.value for each in ballots] == [Number(5)] * 2
    assert [(said.at_ms, said.until_ms) for said in stage.record] == [(0, 1000), (0, 9000)]
    assert await stage.now() == 9000


async def test_a_bid_after_the_deadline_is_late() -> None:
    stage = ScriptedStage(five, seconds=slow("bob", 99))
    bids = await stage.bid(Number, ["ann", "bob"], "who?", within_ms=5_000)
    assert [(each.fate, each.reason) for each in bids] == [
        (Fate.DONE, ""),
        (Fate.TIMED_OUT, "late"),
    ]
    assert stage.record[1].reply == "late"


async def test_a_limit_of_time_leaves_what_came_before_it() -> None:
    stage = ScriptedStage(five, seconds=slow("bob", 99), ends=Ends(timeout_ms=10_000))
    answers = await stage.ask_all([Ask("bob", "?"), Ask("ann", "?")])
    assert [each.fate for each in answers] == [Fate.TIMED_OUT, Fate.DONE]
    with pytest.raises(StageEnded, match="timeout_ms: 10000"):
        await stage.ask("ann", "?")


async def test_a_late_subscriber_hears_what_it_asked_for() -> None:
    stage = ScriptedStage(five)
    await stage.subscribe("early", "news")
    for text in "abc":
        await stage.publish("news", text, by="pub")
    await stage.subscribe("later", "news", replay=2)
    heard = [(said.to, said.text) for said in stage.record if said.verb == "notify"]
    assert heard == [("early", t) for t in "abc"] + [("later", t) for t in "bc"]


@pytest.mark.parametrize("refuse", [True, False])
async def test_the_eleventh_message_of_a_minute_waits_or_is_refused(refuse: bool) -> None:
    stage = ScriptedStage(five, rate_limit_per_min=10, refuse=refuse)
    receipts = [(await stage.route(["ann"], str(n)))[0] for n in range(11)]
    assert receipts[10].delivered is not refuse
    assert await stage.now() == (0 if refuse else 60_000)


async def test_an_update_of_what_was_replaced_meanwhile_stands_beside_it() -> None:
    stage = ScriptedStage(five)
    first = await stage.post("plan", "draft")
    await stage.post("plan", "mine", replaces=first.number)
    assert (await stage.post("plan", "yours", replaces=first.number)).conflict
    assert [entry.text for entry in await stage.read("plan")] == ["mine", "yours"]


async def test_a_metric_the_pattern_says_is_held_to_the_gate() -> None:
    stage = ScriptedStage(five, ends=Ends(gates=(Gate("score", ">=", 0.7),)))
    assert not (await stage.check("score", value=0.5)).holds
    assert (await stage.check("score", value=0.8)).holds


async def test_the_same_seed_draws_the_same() -> None:
    async def drawn(seed: int) -> list[str]:
        stage = ScriptedStage(five, seed=seed)
        return [await stage.draw("abcd", "a tie") for _ in range(8)]

    assert await drawn(1) == await drawn(1)
    assert await drawn(1) != await drawn(2)


class Options(msgspec.Struct, frozen=True):
    times: int = 1


class Chat:
    """Asks so often."""

    id = "chat"
    roles = (Role("one", "talks"),)
    options: type[msgspec.Struct] = Options

    def most(self, size: Size, options: Options) -> Most:
        return Most(size.ask * options.times)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        for number in range(options.times):
            stage.keep((await stage.ask(cast["one"][0], f"{request} {number}")).text)
        return Outcome("said", done=True, result="all")


async def test_an_interaction_within_ends_alone_and_keeps_what_it_had() -> None:
    stage = ScriptedStage(lambda to, message: f"{to}: {message}", patterns=[Chat()], turns=9)
    cast = {"one": ("ann",)}
    short, long = await stage.play_all(
        [
            Play("chat", cast, "hi", {"times": 5}, share=Share(turns=2), name="short"),
            Play("chat", cast, "hi", {"times": 3}, name="long"),
        ]
    )
    assert short == Outcome("budget: no more turns", done=False, result="ann: hi 1")
    assert long.done
    assert {said.within for said in stage.record if said.verb == "ask"} == {"short", "long"}
    assert (await stage.ask("bob", "still there?")).done


async def test_what_is_spent_within_is_spent_around_it_too() -> None:
    stage = ScriptedStage(five, patterns=[Chat()], turns=2)
    outcome = await stage.play(Play("chat", {"one": ("ann",)}, "hi", {"times": 5}))
    assert outcome.reason == "budget: no more turns"
    with pytest.raises(StageEnded):
        await stage.ask("ann", "?")


@pytest.mark.req("I2")
@pytest.mark.parametrize(
    ("first_come", "order", "took_s"),
    [(False, [["slow", "quick"]], 9), (True, [["quick"], ["slow"]], 9)],
)
async def test_what_is_handed_over_is_collected_as_it_comes(
    first_come: bool, order: list[list[str]], took_s: int
) -> None:
    seconds = {"slow": 9.0, "quick": 1.0}
    stage = ScriptedStage(
        lambda to, _: to, seconds=lambda to, _: seconds[to], first_come=first_come
    )
    await stage.hand_over([Ask("slow", "hi"), Ask("quick", "hi")])
    assert await stage.now() == 0, "it goes on at once"
    came = []
    while answers := await stage.collect():
        came.append([answer.text for _, answer in answers])
    assert (came, await stage.now()) == (order, took_s * 1000)


@pytest.mark.req("I2")
async def test_a_streamed_answer_is_heard_in_parts_before_it_is_there() -> None:
    stage = ScriptedStage(lambda *_: "one\n\ntwo\n\nthree", streams=True)
    assert (await stage.ask("ann", "hi")).text == "one\n\ntwo\n\nthree"
    heard = [(said.verb, said.text or said.reply) for said in stage.record]
    assert [text for verb, text in heard if verb == "part"] == ["one", "two"]
    assert heard[-1][0] == "ask"


@pytest.mark.req("I1", "I4a")
async def test_a_gate_that_holds_after_a_round_ends_the_rounds() -> None:
    class Rounds:
        id = "rounds"
        options: type[msgspec.Struct] = msgspec.Struct
        roles = (Role("one", "answers"),)

        def most(self, size: Size, options: Any) -> Most:
            del size, options
            return Most(3)

        async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
            del options
            async for round_ in stage.rounds(3):
                await round_.ask(cast["one"][0], request)
            return Outcome("max_rounds: 3", done=False, result="what there is")

    gate = Gate("tests_passed")
    measures = [Measure("tests_passed", 0, holds=False), Measure("tests_passed", 1, holds=True)]
    stage = ScriptedStage(lambda *_: "yes", measures=measures, ends=Ends(gates=(gate,)))
    outcome = await stage.perform(Rounds(), {"one": ("ann",)}, "hi", None)
    assert outcome == Outcome("quality_gate: tests_passed >= 1", done=True, result="what there is")
    assert len([said for said in stage.record if said.verb == "ask"]) == 2
