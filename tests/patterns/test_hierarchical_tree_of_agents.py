"""hierarchical_tree_of_agents: split downwards, gather upwards, every sub-tree for itself."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Ends, Size
from agentcanvas.patterns.hierarchical_tree_of_agents import (
    Gathered,
    HierarchicalTree,
    Options,
    Split,
)
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

OWN = Options()

pytestmark = [pytest.mark.anyio, pytest.mark.req("P15")]


def head(*parts: str, gathered: Part = None) -> Part:
    """Splits into these parts, and says that it is complete."""

    def reply(message: str) -> Part:
        if message.startswith("Split"):
            return Split(parts)
        return gathered or Gathered(f"whole of {len(parts)}")

    return reply


async def tree(
    managers: Part = None,
    options: Options | None = None,
    root: Part = None,
    stage: Part = None,
    **workers: Part,
) -> Log:
    managers = managers or {}
    cast = {"root": ["top"], "manager": list(managers), "worker": list(workers)}
    log = await play(
        "hierarchical_tree_of_agents",
        cast,
        {"top": root or head("a", "b"), **managers, **workers},
        options,
        **(stage or {}),
    )
    assert breaches(log, "hierarchical_tree_of_agents") == []
    return log


async def test_without_managers_the_root_splits_among_its_workers() -> None:
    log = await tree(w1="did a", w2="did b")
    assert [(each.to, each.text) for each in log.verbs("task")] == [("w1", "a"), ("w2", "b")]
    assert "w1 done: did a" in log.asked("top")[1].text
    assert (log.outcome.reason, log.outcome.result) == ("gathered", "whole of 2")


async def test_more_parts_than_workers_are_done_in_turn_and_fewer_leave_some_idle() -> None:
    more = await tree(root=head("a", "b", "c"), w1="x", w2="y")
    assert [(each.to, each.text) for each in more.verbs("task")] == [("w1", "a\n\nc"), ("w2", "b")]
    fewer = await tree(root=head("a"), w1="x", w2="y")
    assert [each.to for each in fewer.verbs("task")] == ["w1"]


@pytest.mark.req("D19")
@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_a_sub_tree_has_as_many_rounds_as_the_flow_gives_the_tree(rounds: int) -> None:
    never = head("a", gathered=Gathered("so far", "more"))
    managers = {"m1": never, "m2": never}
    log = await tree(managers, root=never, stage={"ends": Ends(rounds=rounds)}, w1="x", w2="y")
    assert log.outcome.reason == f"max_rounds: {rounds}"
    assert len(log.asked("m1")) == 2 * rounds * rounds
    most = HierarchicalTree().most(Size(players={"manager": 1, "worker": 1}, rounds=rounds), OWN)
    assert most.turns == rounds * (4 + rounds * (4 + 1))


async def test_managers_split_again_each_for_workers_of_its_own() -> None:
    log = await tree({"m1": head("a1", "a2"), "m2": head("b1")}, w1="x", w2="y", w3="z")
    assert [(each.within, each.to, each.text) for each in log.verbs("task")] == [
        ("m1", "w1", "a1"),
        ("m1", "w3", "a2"),
        ("m2", "w2", "b1"),
    ]
    assert "m1 gathered: whole of 2" in log.asked("top")[1].text


async def test_managers_beyond_the_width_are_managers_of_managers() -> None:
    managers = {name: head(name) for name in ("m1", "m2", "m3")}
    log = await tree(managers, Options(width=2), w1="x", w2="y", w3="z")
    assert {each.within for each in log.asked("m3")} == {"m1/m3"}


async def test_the_depth_cap_holds() -> None:
    managers = {name: head(name) for name in ("m1", "m2", "m3")}
    log = await tree(managers, Options(max_depth=2, width=1), w1="x", w2="y", w3="z")
    assert {each.within for each in log.said} == {"", "m1"}
    flat = await tree(managers, Options(max_depth=1), w1="x", w2="y", w3="z")
    assert {each.within for each in flat.said} == {""}


async def test_what_is_missing_is_split_once_more_and_then_it_ends() -> None:
    log = await tree(root=head("a", gathered=Gathered("half of it", "the rest")), w1="x")
    assert (log.outcome.reason, log.outcome.done, log.outcome.result) == (
        "max_rounds: 2",
        False,
        "half of it",
    )
    assert "the rest" in log.asked("top")[2].text


async def test_a_worker_that_fails_is_told_upwards() -> None:
    log = await tree(w1=fails("w1", "no cloth"), w2="y")
    assert "w1 failed: no cloth" in log.asked("top")[1].text


async def test_a_sub_tree_that_ends_badly_ends_for_itself_alone() -> None:
    log = await tree({"m1": fails("m1", "ill"), "m2": head("b1")}, w1="x", w2="y")
    assert "m1 no split: ill" in log.asked("top")[1].text
    assert log.outcome.done


async def test_without_a_split_or_a_gathering_it_says_so() -> None:
    assert (await tree(root="you do it", w1="x")).outcome.reason.startswith("no split: ")
    lost = await tree(
        root=lambda message: Split(("a",)) if message.startswith("Split") else "hm", w1="x"
    )
    assert lost.outcome.reason.startswith("not gathered: ")
    assert lost.outcome.result == "w1 done: x"


async def test_a_limit_keeps_what_was_reported() -> None:
    log = await tree(w1="did a", w2="did b", stage={"turns": 3})
    assert log.outcome.reason == "budget: no more turns"
    assert "did a" in log.outcome.result
