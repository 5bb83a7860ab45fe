"""One sentence says whom a run waits for, and whether it has come to a stand."""

from __future__ import annotations

import pytest

from agentcanvas.runs.stall import STALLED_AFTER_S, On, Standing, Wait, sentence, standing

pytestmark = pytest.mark.req("D25")

MINUTE = 60.0


def agent(name: str, *, since: float = 0, sign: float | None = None) -> Wait:
    return Wait(who=f"i1/{name}", on=On.AGENT, names=(name,), since=since, sign=sign)


def person(about: str, *, since: float = 0) -> Wait:
    return Wait(who="t1", on=On.PERSON, names=("you",), since=since, about=about)


def task(who: str, *names: str) -> Wait:
    return Wait(who=who, on=On.TASK, names=names, since=0)


def place(who: str, name: str) -> Wait:
    return Wait(who=who, on=On.PLACE, names=(name,), since=0)


@pytest.mark.parametrize(
    ("waits", "now", "said"),
    [
        ([agent("coder_a")], 30, "waits for coder_a"),
        ([agent("coder_a")], 4 * MINUTE, "waits for coder_a, silent for 4 min"),
        ([agent("coder_a", sign=190)], 4 * MINUTE, "waits for coder_a"),
        ([agent("coder_a")], 125 * MINUTE, "waits for coder_a, silent for 2 h 5 min"),
        (
            [agent("quick", sign=200), agent("slow"), agent("other", since=100)],
            4 * MINUTE,
            "waits for slow and 2 more, silent for 4 min",
        ),
        ([person("review t1")], 9 * MINUTE, "waits for you: review t1"),
        (
            [person("review t2", since=5), person("review t1", since=1)],
            9,
            "waits for you: review t1, and 1 more",
        ),
        ([person("review t1"), agent("ann")], 1, "waits for ann"),
        ([person("review t1"), task("t3", "t1")], 1, "waits for you: review t1"),
        ([agent("ann"), place("t2", "ann"), task("t3", "t2")], 1, "waits for ann"),
        ([], 1, ""),
    ],
)
def test_a_run_waits_for_somebody_in_one_sentence(waits: list[Wait], now: float, said: str) -> None:
    assert standing(waits, now, last_event=now) == Standing(said)


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (task("t3", "t1"), "t3 waits for t1"),
        (task("t3", "t1", "t2", "t0"), "t3 waits for t1, t2 and t0"),
        (place("t3", "ann"), "t3 waits until ann is free"),
        (agent("ann"), "waits for ann, silent for 1 min"),
        (person("review t1"), "waits for you: review t1"),
    ],
)
def test_each_thing_says_what_it_waits_for(wait: Wait, said: str) -> None:
    assert sentence(wait, 60) == said


def test_tasks_that_wait_for_each_other_are_a_deadlock() -> None:
    waits = [task("t1", "t2"), task("t2", "t1")]
    assert standing(waits, 1, last_event=1) == Standing(
        "nothing can go on: t1 waits for t2, t2 waits for t1", stalled=True, deadlocked=True
    )


def test_a_long_deadlock_is_told_in_short() -> None:
    waits = [task(f"t{n}", "t9") for n in range(6)]
    assert standing(waits, 1, last_event=1).sentence == (
        "nothing can go on: t0 waits for t9, t1 waits for t9, t2 waits for t9, and 3 more"
    )


def test_a_place_that_nobody_takes_up_is_a_deadlock() -> None:
    assert standing([place("t1", "ann")], 1, last_event=1).deadlocked


@pytest.mark.parametrize(
    ("waits", "last_event", "stalled"),
    [
        ([agent("ann")], 0, True),
        ([agent("ann")], 1, False),
        ([agent("ann", sign=1)], 0, False),
        ([agent("ann"), person("review t1")], 0, False),
        ([person("review t1")], 0, False),
        ([], 0, True),
    ],
)
def test_a_run_is_stalled_when_nothing_happens_while_nobody_is_asked(
    waits: list[Wait], last_event: float, stalled: bool
) -> None:
    found = standing(waits, STALLED_AFTER_S, last_event=last_event)
    assert found.stalled is stalled
    assert found.sentence


def test_how_long_is_long_may_be_said() -> None:
    assert standing([agent("ann")], 61, last_event=0, patience_s=60).stalled
