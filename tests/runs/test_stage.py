"""The engine's Stage over a real store: its verbs, and what a replay finds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from agentcanvas.errors import RunDiverged, ValidationError
from agentcanvas.pattern import Ask, Ends, Fate, Gate, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.manager_worker import MANAGER, WORKER, ManagerWorker, Options
from agentcanvas.protocol.plan import Dependency, Plan
from agentcanvas.protocol.records import FailureClass
from agentcanvas.runs.board import Retention
from agentcanvas.runs.budget import Budget
from agentcanvas.runs.scene import Scene
from agentcanvas.runs.stage import RunStage, Settled
from agentcanvas.store import Store
from tests.runs.fake_desk import FakeDesk, Killed, candidate, echo, stage

pytestmark = [pytest.mark.anyio, pytest.mark.req("D4")]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with await Store.in_memory() as opened:
        yield opened


async def life(store: Store, desk: FakeDesk, play: Any, **more: Any) -> Any:
    """One life of the run: what ``play`` gives, all of it on disk."""
    here = await stage(store, desk, **more)
    result = await play(here)
    await here.close()
    return result


async def test_a_settled_step_is_not_carried_out_again(store: Store) -> None:
    first, second = FakeDesk(), FakeDesk()
    one = await life(store, first, lambda here: here.ask("ann", "hello"))
    two = await life(store, second, lambda here: here.ask("ann", "hello"))
    assert one == two
    assert (len(first.effects), len(second.effects)) == (1, 0)


async def test_a_step_that_asks_something_else_has_diverged_and_is_named(store: Store) -> None:
    await life(store, FakeDesk(), lambda here: here.ask("ann", "hello"))
    with pytest.raises(RunDiverged, match="i1/ask:1"):
        await life(store, FakeDesk(), lambda here: here.ask("ann", "good-bye"))


async def test_steps_are_named_by_their_call_path(store: Store) -> None:
    desk = FakeDesk()
    top = await stage(store, desk)
    await top.ask("ann", "a")
    async for round_ in top.rounds(2):
        await round_.ask_all([Ask("ann", "b", Work("t1")), Ask("bob", "c")])
        await round_.check("score")
    assert desk.effects == [
        "i1/ask:1",
        "i1/rounds:1/round:1/ask_all:1/t1",
        "i1/rounds:1/round:1/ask_all:1/2",
        "i1/rounds:1/round:1/check:1",
        "i1/rounds:1/round:2/ask_all:1/t1",
        "i1/rounds:1/round:2/ask_all:1/2",
        "i1/rounds:1/round:2/check:1",
    ]


async def test_asks_run_in_parallel_up_to_the_limit(store: Store) -> None:
    desk = FakeDesk()
    await (await stage(store, desk, parallel=3)).ask_all([Ask("ann", str(n)) for n in range(9)])
    assert desk.most_at_once == 3


async def test_a_task_waits_for_its_hard_dependency_and_is_skipped_when_it_fails(
    store: Store,
) -> None:
    def reply(ask: Ask) -> Settled:
        return Settled("", Fate.FAILED, "no") if ask.message == "a" else echo(ask)

    desk = FakeDesk(reply)
    asks = [
        Ask("ann", "c", Work("c", (Dependency("b"),))),
        Ask("ann", "b", Work("b", (Dependency("a"),))),
        Ask("ann", "a", Work("a")),
        Ask("ann", "d", Work("d")),
    ]
    answers = await (await stage(store, desk)).ask_all(asks)
    fates = [answer.fate for answer in answers]
    assert fates == [Fate.SKIPPED, Fate.SKIPPED, Fate.FAILED, Fate.DONE]
    assert answers[1].reason == "a did not end well"
    assert len(desk.effects) == 2


async def test_a_typed_answer_is_asked_for_once_more_and_then_fails(store: Store) -> None:
    asked: list[str] = []

    def reply(ask: Ask) -> Settled:
        asked.append(ask.message)
        return Settled("hm", value=msgspec.Raw(b'{"tasks": 7}'))

    answer = await (await stage(store, FakeDesk(reply))).ask_for(Plan, "boss", "plan!")
    assert (answer.fate, answer.value) == (Fate.FAILED, None)
    assert len(asked) == 2
    assert "does not have the form" in asked[1]


async def test_a_typed_answer_comes_back_typed_also_from_the_journal(store: Store) -> None:
    def reply(ask: Ask) -> Settled:
        return Settled("ok", value=msgspec.Raw(b'{"tasks": []}'))

    desks = FakeDesk(reply), FakeDesk(reply)
    for desk in desks:
        answer = await life(store, desk, lambda here: here.ask_for(Plan, "boss", "plan!"))
        assert answer.value == Plan(())
    assert not desks[1].effects


async def test_a_turn_that_fails_is_no_breach_and_is_not_asked_for_again(store: Store) -> None:
    desk = FakeDesk(lambda _: Settled("", Fate.FAILED, "gone", failure=FailureClass.TURN_LIMIT))
    answer = await (await stage(store, desk)).ask_for(Plan, "boss", "plan!")
    assert (answer.fate, answer.reason, answer.failure) == (
        Fate.FAILED,
        "gone",
        FailureClass.TURN_LIMIT,
    )
    assert len(desk.effects) == 1


@pytest.mark.parametrize(
    "said", [Settled("x", value=msgspec.Raw(b'{"choice": "no", "reason": "r"}')), Settled(" No.")]
)
async def test_a_decision_is_one_of_the_choices(store: Store, said: Settled) -> None:
    answer = await (await stage(store, FakeDesk(lambda _: said))).decide("ann", "?", ["yes", "no"])
    assert (answer.fate, answer.value) == (Fate.DONE, "no")


async def test_another_choice_is_asked_for_once_more_and_then_fails(store: Store) -> None:
    desk = FakeDesk(lambda _: Settled("maybe"))
    answer = await (await stage(store, desk)).decide("ann", "well?", ["yes", "no"])
    assert (answer.fate, answer.value) == (Fate.FAILED, None)
    assert [ask.message for ask in desk.asks] == ["well?", "well?\n\nAnswer with one of: yes, no."]


async def test_a_value_goes_before_the_person_and_comes_back_as_they_left_it(store: Store) -> None:
    def confirm(title: str, value: bytes) -> Settled:
        if title == "no":
            return Settled(title, Fate.REJECTED, "declined")
        return Settled(title, value=msgspec.Raw(value.replace(b"1", b"2")))

    async def play(here: RunStage) -> list[Any]:
        return [await here.confirm(int, 1, title) for title in ("yes", "no")]

    for desk in (FakeDesk(confirm=confirm), FakeDesk()):  # the second life asks nobody
        edited, declined = await life(store, desk, play)
        assert (edited.value, edited.done) == (2, True)
        assert (declined.value, declined.fate, declined.reason) == (None, Fate.REJECTED, "declined")


async def test_a_person_who_breaks_the_form_is_told_once(store: Store) -> None:
    def confirm(title: str, value: bytes) -> Settled:
        good = b"7" if "does not have the form" in title else b'"seven"'
        return Settled(title, value=msgspec.Raw(good))

    answer = await (await stage(store, FakeDesk(confirm=confirm))).confirm(int, 1, "how many?")
    assert answer.value == 7


@pytest.mark.parametrize("value", [0.69, 0.7])
async def test_a_measure_is_held_to_the_gate_of_the_flow(store: Store, value: float) -> None:
    ends = Ends(gates=(Gate("score", ">=", 0.7),))
    here = await stage(store, FakeDesk(value=value), ends=ends)
    assert (await here.check("score")).holds is (value >= 0.7)
    assert (await here.check("other")).holds


async def test_the_memory_is_asked_once(store: Store) -> None:
    for desk in (FakeDesk(), FakeDesk()):
        found = await life(store, desk, lambda here: here.recall("tabs"))
        assert found == ("about tabs",)
    assert not desk.effects


@pytest.mark.req("I5")
async def test_a_board_is_the_same_in_every_life_and_forgets_what_is_over(store: Store) -> None:
    async def play(here: RunStage) -> Any:
        for text in "abc":
            await here.post("news", text, by="ann")
        async for round_ in here.rounds(1):
            await round_.post("other", "d")
        # One board an interaction, whatever the round.
        return [await here.read(topic) for topic in ("news", "other", "nothing")]

    first = await life(store, FakeDesk(), play, retention=Retention(last_n=2))
    assert [(entry.number, entry.text, entry.by) for entry in first[0]] == [
        (2, "b", "ann"),
        (3, "c", "ann"),
    ]
    assert [entry.number for entry in first[1]] == [4]
    assert not first[2]
    assert await life(store, FakeDesk(), play, retention=Retention(last_n=2)) == first


@pytest.mark.req("D6")
async def test_candidates_that_were_never_landed_are_let_go_of_at_the_end(store: Store) -> None:
    def reply(ask: Ask) -> Settled:
        return Settled("made", proposal=candidate(ask.message, ask.to))

    async def play(here: RunStage) -> Any:
        made = await here.ask_all(
            [Ask(who, who[0], Work(who), land=False) for who in ("cid", "ann", "bob")]
        )
        built = await here.ask("dan", "d", work=Work("d"), land=False, on=[candidate("a")])
        await here.ask("eve", "e", work=Work("e"))
        assert built.proposal is not None
        assert made[1].proposal is not None
        return await here.land(made[1].proposal)

    first, second = FakeDesk(reply), FakeDesk(reply)
    answer = await life(store, first, play)
    assert (answer.text, answer.proposal) == ("landed", candidate("a"))
    assert first.discarded == ["b", "c", "d"]
    assert first.asks[-2].on == (candidate("a"),)
    assert [ask.land for ask in first.asks] == [False, False, False, False, True]
    assert await life(store, second, play) == answer
    assert not second.effects


async def test_asks_carry_their_role_and_their_number_in_it(store: Store) -> None:
    def scene() -> Scene:
        cast = {"boss": ("ann",), "hand": ("ann", "bob")}
        return Scene("i1", cast=cast, roles=(Role("boss", ""), Role("hand", "", writes=True)))

    async def play(here: RunStage) -> None:
        await here.ask("ann", "plan")
        async for round_ in here.rounds(1):
            asks = [Ask("bob", "1", Work("b", (Dependency("a"),))), Ask("ann", "2", Work("a"))]
            await round_.ask_all(asks)
        await here.decide("ann", "?", ["x"])
        await here.ask("eve", "who?")

    dying, resumed = FakeDesk(die_before=2), FakeDesk()
    with pytest.raises(Killed):
        await play(await stage(store, dying, scene=scene()))
    await play(await stage(store, resumed, scene=scene()))
    asked = {(ask.to, ask.role, ask.number) for ask in (*dying.asks, *resumed.asks)}
    assert asked == {
        ("ann", "boss", 1),
        ("ann", "hand", 2),  # numbered as listed, although it begins first
        ("bob", "hand", 1),
        ("ann", "boss", 2),
        ("ann", "boss", 3),
        ("eve", "", 1),
    }


@pytest.mark.parametrize(
    ("asks", "sentence"),
    [
        ([Ask("a", "", Work("t")), Ask("b", "", Work("t"))], "Several tasks are called t"),
        (
            [
                Ask("a", "", Work("t", (Dependency("u"),))),
                Ask("b", "", Work("u", (Dependency("t"),))),
            ],
            "wait for each other: t, u",
        ),
    ],
)
async def test_asks_that_could_never_end_are_refused(
    store: Store, asks: list[Ask], sentence: str
) -> None:
    with pytest.raises(ValidationError, match=sentence):
        await (await stage(store, FakeDesk())).ask_all(asks)


def play_reply(ask: Ask) -> Settled:
    """A manager with a plan of two tasks, and workers who do them."""
    if ask.to == "boss" and "Split this request" in ask.message:
        tasks = [
            {"task_id": t, "agent": "ann", "description": t, "scope": [t]} for t in ("t1", "t2")
        ]
        return Settled("plan", value=msgspec.Raw(msgspec.json.encode({"tasks": tasks})))
    return echo(ask)


async def play(where: RunStage) -> Outcome:
    cast = {MANAGER: ("boss",), WORKER: ("ann",)}
    return await where.perform(ManagerWorker(), cast, "mend it", Options())


@pytest.mark.parametrize("death", range(7))
async def test_a_run_killed_at_any_step_ends_the_same_and_does_nothing_twice(
    store: Store, death: int
) -> None:
    async with await Store.in_memory() as other:
        whole = FakeDesk(play_reply)
        expected = await play(await stage(other, whole))
    dying = FakeDesk(play_reply, die_before=death)
    if death < len(whole.effects):
        with pytest.raises(Killed):
            await play(await stage(store, dying))
    else:
        await play(await stage(store, dying))
    resumed = FakeDesk(play_reply)
    assert await play(await stage(store, resumed)) == expected
    done = [*dying.effects, *resumed.effects]
    # What was under way when the process died is asked for again; what was settled is not.
    assert set(done) == set(whole.effects)
    assert len(done) - len(set(done)) <= 1
    assert len(whole.effects) == 6


async def test_playing_a_pattern_ends_with_its_outcome_or_a_limit(store: Store) -> None:
    class Endless:
        id = "endless"
        roles = ()
        options = Options

        def most(self, size: Size, options: Any) -> Most:
            del size, options
            return Most(9)

        async def run(self, stage: Stage, cast: Any, request: str, options: Any) -> Outcome:
            del cast, options
            while True:
                await stage.ask("ann", request)

    outcome = await (await stage(store, FakeDesk(), budget=Budget(turns=4))).perform(
        Endless(), {}, "go on", None
    )
    assert outcome == Outcome("budget: 4 turns", done=False)
