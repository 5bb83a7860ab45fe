"""What a run may spend: counted again after a resume, hard where it can be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import UNSET

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import StageEnded
from agentcanvas.pattern import Ask, Share, Work
from agentcanvas.protocol.records import Usage
from agentcanvas.runs.budget import TOKEN_PRICE, TURN_TOKENS, Budget, Meter, Purse, Spent
from agentcanvas.runs.stage import Done, RunStage
from agentcanvas.store import Store
from tests.runs.fake_desk import FakeDesk, candidate, stage

pytestmark = [pytest.mark.anyio, pytest.mark.req("D19")]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with await Store.in_memory() as opened:
        yield opened


class Thorough(FakeDesk):
    """Has everything reviewed, which costs a turn more, and revised, if it is asked to."""

    def __init__(self, usage: Usage | None = None) -> None:
        super().__init__()
        self.meter = Meter(Budget(), VirtualClock())
        self._usage = usage

    async def ask(self, step: str, ask: Ask, schema: dict[str, Any] | None) -> Done:
        for _ in range(2 if ask.message == "revise" else 1):
            self.meter.spend_turn()
        if self._usage is not None:
            self.meter.spend_usage(self._usage)
        return await super().ask(step, ask, schema)

    async def land(self, step: str, candidate: Any) -> Done:
        self.meter.spend_turn()
        return await super().land(step, candidate)


def meter(**limits: Any) -> Meter:
    return Meter(Budget(**limits), VirtualClock())


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(turns=3), "budget: 3 turns"),
        (Budget(messages=6), "budget: 6 messages"),
    ],
)
async def test_a_budget_ends_the_stage_and_survives_a_resume(
    store: Store, budget: Budget, reason: str
) -> None:
    desk = FakeDesk()
    for _ in range(2):  # the second life finds three turns spent
        here = await stage(store, desk, budget=budget)
        for n in range(3):
            await here.ask("ann", str(n))
        with pytest.raises(StageEnded, match=reason):
            await here.ask("ann", "one more")
        await here.close()
    assert len(desk.effects) == 3


async def test_a_message_that_needs_no_answer_counts_one_in_every_life(store: Store) -> None:
    desk = FakeDesk()
    for _ in range(2):
        mine = meter(messages=3)
        here = await stage(store, desk, meter=mine)
        await here.tell("ann", "a")
        await here.ask("ann", "b")
        with pytest.raises(StageEnded, match="budget: 3 messages"):
            await here.tell("ann", "c")
        await here.close()
        assert (mine.spent.turns, mine.spent.messages) == (1, 3)
    assert len(desk.effects) == 2


async def test_what_the_desk_spends_on_a_step_is_counted_again_with_it(store: Store) -> None:
    spent = []
    desks = Thorough(), Thorough()
    for desk in desks:
        here = await stage(store, desk, meter=desk.meter, parallel=3)
        asks = [Ask(who, "revise" if who == "ann" else "do", Work(who)) for who in ("ann", "bob")]
        await here.ask_all(asks)
        await here.land(candidate("x"))
        await here.close()
        spent.append((desk.meter.spent.turns, desk.meter.spent.messages))
    assert spent == [(3 + 2 + 1, 12), (6, 12)]
    assert not desks[1].effects


async def test_a_turn_inside_a_step_may_end_the_stage(store: Store) -> None:
    desk = Thorough()
    desk.meter = meter(turns=2)
    here = await stage(store, desk, meter=desk.meter)
    with pytest.raises(StageEnded, match="budget: 2 turns"):
        await here.ask("ann", "revise", work=Work("a"))


async def test_tokens_are_hard_between_turns(store: Store) -> None:
    desk = Thorough(Usage(input_tokens=400, output_tokens=200))
    desk.meter = meter(tokens=1000)
    here = await stage(store, desk, meter=desk.meter)
    await here.ask("ann", "a")
    await here.ask("ann", "b")  # 600 of 1000: it may begin, and is finished
    with pytest.raises(StageEnded, match="budget: 1000 tokens"):
        await here.ask("ann", "c")
    await here.check("score")  # measuring takes no turn
    assert desk.meter.spent.tokens == 1200


async def test_money_is_hard_between_turns() -> None:
    mine = meter(cost=0.5)
    mine.spend_turn()
    assert not mine.spend_usage(Usage(input_tokens=10, cost=0.5))
    with pytest.raises(StageEnded, match=r"budget: 0.5 dollars"):
        mine.spend_turn()


@pytest.mark.parametrize(
    ("usage", "characters", "tokens", "estimated"),
    [
        (Usage(input_tokens=7, output_tokens=1, cache_write=2, cache_read=90), 0, 10, False),
        (Usage(output_tokens=3), 4000, 3, False),
        (None, 4000, 1000, True),
        (None, 0, TURN_TOKENS, True),
        (Usage(model="m"), 400, 100, True),
    ],
)
async def test_unknown_usage_is_charged_by_estimate_and_marked(
    usage: Usage | None, characters: int, tokens: int, estimated: bool
) -> None:
    mine = meter(tokens=10**9)
    assert mine.spend_usage(usage, characters=characters) is estimated
    assert (mine.spent.tokens, mine.spent.estimated) == (tokens, int(estimated))


async def test_no_price_is_guessed_where_nobody_limits_or_tells_one() -> None:
    mine = meter(tokens=10**9)
    assert not mine.spend_usage(Usage(input_tokens=1000))
    assert (mine.spent.tokens, mine.spent.cost) == (1000, 0)
    mine.spend_usage(Usage(input_tokens=1000, cost=2.0))
    assert mine.spend_usage(Usage(input_tokens=1000)), "part of the sum would be missing else"
    assert mine.spent.cost == pytest.approx(4)


async def test_an_interaction_that_limits_money_needs_a_price() -> None:
    mine, purse = meter(tokens=10**9), Purse("debate", Share(cost=0.01))
    with mine.told_apart(Spent(), (purse,)):
        assert mine.spend_usage(Usage(input_tokens=1000))
    assert purse.spent.cost == pytest.approx(1000 * TOKEN_PRICE)


async def test_an_unknown_price_is_the_runs_own_as_soon_as_one_is_known() -> None:
    mine = meter(cost=100)
    unpriced = Usage(input_tokens=1000, cost=UNSET)
    assert mine.spend_usage(unpriced)
    assert mine.spent.cost == pytest.approx(1000 * TOKEN_PRICE)
    mine.spend_usage(Usage(input_tokens=1000, cost=2.0))
    mine.spend_usage(unpriced)
    assert mine.spent.cost == pytest.approx(1000 * TOKEN_PRICE + 2 + 2)


async def test_what_earlier_processes_used_is_handed_in() -> None:
    clock = VirtualClock()
    mine = Meter(Budget(tokens=100), clock, used_seconds=60, used_tokens=100, used_cost=1)
    assert (mine.seconds, mine.spent.cost) == (60, 1)
    with pytest.raises(StageEnded, match="100 tokens"):
        mine.check()


async def test_time_is_a_budget_too(store: Store) -> None:
    clock = VirtualClock()
    here = await stage(store, FakeDesk(), budget=Budget(minutes=2), clock=clock)
    await here.ask("ann", "a")
    await clock.advance(121)
    with pytest.raises(StageEnded, match="budget: 2 minutes"):
        await here.ask("ann", "b")


async def test_a_replay_goes_through_to_its_end_though_the_time_is_used_up(store: Store) -> None:
    """The limit strikes where something new would begin, not at what was done in time."""

    async def life(desk: FakeDesk, used_seconds: float) -> RunStage:
        clock = VirtualClock()
        mine = Meter(Budget(minutes=10), clock, used_seconds=used_seconds)
        here = await stage(store, desk, meter=mine, clock=clock)
        await here.ask("ann", "a")
        async for round_ in here.rounds(2):
            await round_.ask_all([Ask("ann", "b"), Ask("bob", "c")])
        await here.check("score")
        await here.close()
        return here

    await life(FakeDesk(), 0)
    later = FakeDesk()
    here = await life(later, 9999)
    with pytest.raises(StageEnded, match="budget: 10 minutes"):
        await here.check("score")
    assert not later.effects


async def test_time_stands_still_while_the_run_is_parked() -> None:
    clock = VirtualClock()
    mine = Meter(Budget(minutes=1), clock)
    await clock.advance(30)
    mine.pause()
    mine.pause()
    await clock.advance(10_000)
    mine.check()
    mine.resume()
    mine.resume()
    await clock.advance(29)
    assert (mine.seconds, mine.seconds_left) == (59, 1)
    await clock.advance(1)
    with pytest.raises(StageEnded, match="budget: 1 minutes"):
        mine.check()
