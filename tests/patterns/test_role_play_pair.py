"""role_play_pair: one instruction a turn, and five ways to end."""

from __future__ import annotations

import pytest

from agentcanvas.pattern import Fate
from agentcanvas.patterns.role_play_pair import Options
from tests.patterns.team import Log, Part, fails, play

pytestmark = [pytest.mark.anyio, pytest.mark.req("P02")]


async def paired(user: Part, assistant: Part, options: Options | None = None, **stage: Part) -> Log:
    cast = {"user": ["eve"], "assistant": ["sam"]}
    return await play("role_play_pair", cast, {"eve": user, "sam": assistant}, options, **stage)


async def test_each_instruction_is_answered_and_the_solution_comes_back() -> None:
    log = await paired(
        ["Instruction: fill", "Instruction: wash", "TASK_DONE"],
        ["Solution: full", "Solution: clean"],
    )
    assert (log.outcome.reason, log.outcome.done, log.outcome.result) == (
        "task_done",
        True,
        "Solution: clean",
    )
    asked = log.asked()
    assert [each.to for each in asked] == ["eve", "sam", "eve", "sam", "eve"]
    assert "Instruction: fill" in asked[1].text
    assert "Solution: full" in asked[2].text
    assert "Solution: full" not in asked[3].text


async def test_inception_prompts_fix_the_roles_in_every_turn() -> None:
    log = await paired(["Instruction: fill", "TASK_DONE"], "Solution: full")
    assert all("you stay that" in each.text and "Wash up" in each.text for each in log.asked())


@pytest.mark.parametrize("words", ["go on", "", "I cannot think of anything"])
async def test_no_instruction_for_three_rounds_ends_it(words: str) -> None:
    log = await paired(words, "Solution: never asked")
    assert log.outcome.reason == "no_instruction: 3 rounds"
    assert len(log.asked("eve")) == 3
    assert not log.asked("sam")


async def test_an_instruction_in_between_begins_the_count_anew() -> None:
    log = await paired(["", "", "Instruction: fill", "", "", ""], "Solution: full")
    assert (log.outcome.reason, log.outcome.result) == (
        "no_instruction: 3 rounds",
        "Solution: full",
    )
    assert len(log.asked("eve")) == 6


async def test_a_role_flip_of_either_ends_it_with_its_own_reason() -> None:
    by_user = await paired(["Instruction: fill", "**Solution:** I did it"], "Solution: full")
    assert (by_user.outcome.reason, by_user.outcome.result) == (
        "role_flip: the user gave a solution",
        "Solution: full",
    )
    by_assistant = await paired("Instruction: fill", "instruction: you fill it")
    assert by_assistant.outcome.reason == "role_flip: the assistant gave an instruction"


async def test_the_limit_of_messages_keeps_the_last_solution() -> None:
    log = await paired("Instruction: more", ["Solution: 1", "Solution: 2"], Options(max_rounds=2))
    assert (log.outcome.reason, log.outcome.done, log.outcome.result) == (
        "max_rounds: 2",
        False,
        "Solution: 2",
    )


async def test_a_turn_that_fails_is_told_to_the_user() -> None:
    log = await paired(["Instruction: fill", "TASK_DONE"], fails("sam", "no water", Fate.REJECTED))
    assert "rejected: no water" in log.asked("eve")[1].text


async def test_a_limit_of_turns_keeps_the_last_solution() -> None:
    log = await paired("Instruction: more", "Solution: 1", turns=3)
    assert (log.outcome.reason, log.outcome.result) == ("budget: no more turns", "Solution: 1")
