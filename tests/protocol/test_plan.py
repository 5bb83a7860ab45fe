"""Plans: what keeps one from being carried out is said all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.protocol.plan import (
    Dependency,
    DependencyType,
    Plan,
    PlannedTask,
    problems,
    waits_for,
)

pytestmark = pytest.mark.req("H7")


def task(
    id_: str, *after: str, scope: tuple[str, ...] | None = None, agent: str = "ann"
) -> PlannedTask:
    needs = tuple(Dependency(other) for other in after)
    own = (f"{id_}/**",) if scope is None else scope
    return PlannedTask(id_, agent, f"do {id_}", needs, own)


def test_a_sound_plan_has_no_problem() -> None:
    assert problems(Plan((task("a"), task("b", "a"), task("c"))), ["ann"]) == []


def test_every_problem_is_named_at_once() -> None:
    tasks = (
        task("a", agent="eve"),
        task("a"),
        task("b", "nowhere"),
        task("c", "d"),
        task("d", "c"),
    )
    found = "\n".join(problems(Plan(tasks), ["ann", "bob"], taken=["b"]))
    assert "a goes to eve, who is not here; use ann or bob" in found
    assert "The id a was used before" in found
    assert "The id b was used before" in found
    assert "b depends on nowhere" in found
    assert "These tasks wait for each other: c, d" in found


def test_a_plan_without_a_task_is_a_problem() -> None:
    assert problems(Plan(()), ["ann"]) == ["The plan has no task; name at least one"]


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (("src/**",), ("docs/**",), False),
        (("src/api/**",), ("src/**",), True),
        (("src/api.py",), ("src/api.py",), True),
        (("src/api.py",), ("src/web.py",), False),
        (("src/a/**",), ("src/ab/**",), False),
        (("**/*.py",), ("docs/**",), True),
        (("a/x.py", "b/**"), ("c/**", "b/y.py"), True),
    ],
)
def test_tasks_at_the_same_time_must_not_share_files(
    one: tuple[str, ...], other: tuple[str, ...], *, meet: bool
) -> None:
    found = problems(Plan((task("a", scope=one), task("b", scope=other))), ["ann"])
    assert bool(found) is meet
    assert not problems(Plan((task("a", scope=one), task("b", "a", scope=other))), ["ann"])


def test_a_soft_dependency_does_not_keep_tasks_apart() -> None:
    soft = PlannedTask("b", "ann", "do b", (Dependency("a", DependencyType.SOFT),), ("a/x",))
    assert problems(Plan((task("a"), soft)), ["ann"])


def test_a_task_without_a_scope_may_change_anything() -> None:
    free = PlannedTask("b", "ann", "do b")
    assert "may both change" in problems(Plan((task("a"), free)), ["ann"])[0]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15))
def test_a_cycle_is_found_exactly_when_there_is_one(pairs: list[tuple[int, int]]) -> None:
    needs: dict[int, set[int]] = {n: set() for n in range(7)}
    for one, other in pairs:
        needs[one].add(other)
    tasks = tuple(task(str(n), *map(str, sorted(needs[n]))) for n in range(7))
    told = any("wait for each other" in sentence for sentence in problems(Plan(tasks), ["ann"]))
    assert told is not _can_be_ordered(needs)


def _can_be_ordered(needs: dict[int, set[int]]) -> bool:
    left = dict(needs)
    while left:
        free = [n for n, others in left.items() if not others & left.keys()]
        if not free:
            return False
        for n in free:
            del left[n]
    return True


def test_waiting_is_counted_through_other_tasks() -> None:
    assert waits_for((task("a"), task("b", "a"), task("c", "b")))["c"] == {"a", "b"}
