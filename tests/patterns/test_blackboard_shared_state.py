"""blackboard_shared_state: everybody reads, the most willing write, nobody is addressed."""

from __future__ import annotations

import pytest

from agentcanvas.patterns.blackboard_shared_state import Options, Volunteer
from tests.patterns.properties import breaches
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P11")]

NOTHING = Volunteer(0)


def adds(*turns: tuple[float, str]) -> Part:
    """Volunteers so much, adds its text when picked, and then has nothing more."""
    left = list(turns)

    def reply(message: str) -> Part:
        if "You are picked" in message:
            return left.pop(0)[1]
        return Volunteer(left[0][0], left[0][1]) if left else NOTHING

    return reply


async def board(
    options: Options | None = None, picker: Part = None, stage: Part = None, **agents: Part
) -> Log:
    cast = {"agent": list(agents), "blackboard": ["bo"] if picker else []}
    return await play(
        "blackboard_shared_state", cast, agents | {"bo": picker}, options, **(stage or {})
    )


async def test_the_most_willing_contributes_until_nobody_has_anything_to_add() -> None:
    log = await board(ann=adds((0.2, "rinse"), (0.1, "stack")), bob=adds((0.9, "soap")))
    assert [each.text for each in log.posted("board")] == ["Wash up", "soap", "rinse", "stack"]
    assert (log.outcome.reason, log.outcome.done) == ("nothing to add", True)
    assert log.outcome.result == "[1] Wash up\n\n[2] soap\n\n[3] rinse\n\n[4] stack"
    assert breaches(log, "blackboard_shared_state") == []


async def test_of_several_as_willing_the_one_listed_first_is_picked() -> None:
    log = await board(ann=adds((0.5, "a")), bob=adds((0.5, "b")))
    assert [each.text for each in log.posted("board")][1:] == ["a", "b"]


async def test_agents_read_the_board_and_no_names() -> None:
    log = await board(ann=adds((0.5, "a")), bob=adds((0.4, "b")))
    last = log.asked("bob")[-1].text
    assert "[2] a\n\n[3] b" in last
    assert "ann" not in last


async def test_several_may_contribute_at_once_and_nothing_is_lost() -> None:
    agents = {name: adds((0.5, f"from {name}")) for name in ("ann", "bob", "cyd")}
    log = await board(Options(picks=3), stage={"seconds": lambda *_: 9.0}, **agents)
    assert {each.at_ms for each in log.verbs("task")} == {9_000}
    assert [each.text for each in log.posted("board")][1:] == ["from ann", "from bob", "from cyd"]


async def test_two_who_replace_the_same_entry_both_stand() -> None:
    def better(text: str) -> Part:
        left = [Volunteer(0.5, text, replaces=1), text, NOTHING]
        return lambda _: left.pop(0)

    log = await board(Options(picks=2), ann=better("a"), bob=better("b"))
    assert log.outcome.result == "[2] a\n\n[3] b"


async def test_what_is_over_the_retention_is_gone() -> None:
    log = await board(ann=adds(*[(0.5, f"entry {n}") for n in range(5)]), stage={"keep_last_n": 2})
    assert log.outcome.result == "[5] entry 3\n\n[6] entry 4"


async def test_a_controller_that_is_an_agent_picks_among_the_willing() -> None:
    log = await board(picker="bob", ann=adds((0.9, "a")), bob=adds((0.1, "b")))
    assert log.posted("board")[1].text == "b"
    undecided = await board(picker="eve", ann=adds((0.9, "a")), bob=adds((0.1, "b")))
    assert undecided.posted("board")[1].text == "a"


async def test_a_contribution_that_fails_leaves_the_board_as_it_was() -> None:
    def never(message: str) -> Part:
        return fails("ann", "no soap") if "You are picked" in message else Volunteer(0.5)

    log = await board(Options(max_rounds=2), ann=never)
    assert (log.outcome.reason, log.outcome.done) == ("max_rounds: 2", False)
    assert log.outcome.result == "[1] Wash up"


async def test_whoever_breaks_the_form_does_not_volunteer() -> None:
    log = await board(ann="me, me!", bob=Volunteer(0))
    assert log.outcome.reason == "nothing to add"


async def test_a_limit_keeps_the_board() -> None:
    log = await board(ann=adds((0.5, "a"), (0.5, "b")), stage={"turns": 3})
    assert (log.outcome.reason, log.outcome.result) == (
        "budget: no more turns",
        "[1] Wash up\n\n[2] a",
    )
