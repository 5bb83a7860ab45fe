"""Waiting proposals are looked at again when the ground moves, and their runs hear of it (D7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.proposals.model import ProposalState
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from tests.chaos.driving import PYTHON, flow, kinds, order, payloads, rests, so_far, tree_of
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D7", "D13")]

LINES = [f"line {number}\n" for number in range(1, 31)]


def changing(number: int, text: str) -> Callable[[Turn], str]:
    """A worker who changes one line of the story."""

    def change(turn: Turn) -> str:
        story = tree_of(turn) / "story.txt"
        lines = story.read_text().splitlines(keepends=True)
        lines[number - 1] = text
        story.write_text("".join(lines))
        return "I changed a line."

    return change


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"story.txt": "".join(LINES), "notes.txt": "mine\n"})


async def both_wait(
    engine: Engine, change: Mapping[str, Any], *, check: str = ""
) -> tuple[str, str]:
    """Two runs of one workspace, whose proposals wait for you."""
    checks = [{"name": "story", "command": check}] if check else []
    found = []
    for name in change:
        task = {"id": name, "agent": name, "description": "Change the story"}
        text = flow({name: PYTHON}, tasks=[task], checks=checks)
        run_id = await engine.start(order(text))
        await rests(engine, run_id)
        found.append(run_id)
    return found[0], found[1]


async def decide(engine: Engine, run_id: str, **verdict: str) -> list[str]:
    (ask,) = await engine.asks(run_id)
    seen = (await so_far(engine, run_id))[-1].seq
    await engine.answer(ask.ask_id, PersonAnswer({"decision": "apply", **verdict}, "you"))
    return kinds(await rests(engine, run_id, seen))


async def standings(engine: Engine, run_id: str) -> list[str]:
    """How its proposal stood, whenever that was told."""
    found = payloads(await so_far(engine, run_id), e.ProposalRechecked)
    return [each.fitness for each in found]


SAME_LINE = {"ada": changing(3, "ada\n"), "ben": changing(3, "ben\n")}
FAR_APART = {"ada": changing(3, "ada\n"), "ben": changing(25, "ben\n")}


async def test_proposals_that_change_the_same_lines_are_told_of_each_other(root: Path) -> None:
    async with engine_on(root, functions=SAME_LINE) as engine:
        first, second = await both_wait(engine, SAME_LINE)
        assert await standings(engine, first) == ["clean"]
        assert await standings(engine, second) == ["clean"]
        (met,) = (await engine.proposal(first, "ada")).overlaps
        assert (met.path, met.first_line, met.kind) == ("story.txt", 3, "same_lines")
        assert set(met.proposals) == {f"{first}/ada.r0", f"{second}/ben.r0"}
        state = await engine.state(first)
        assert f"line 3, is also changed by {second}/ben.r0" in state.tasks["ada"].standing


async def test_after_one_has_landed_the_other_is_told_that_it_conflicts(root: Path) -> None:
    async with engine_on(root, functions=SAME_LINE) as engine:
        first, second = await both_wait(engine, SAME_LINE)
        await decide(engine, first)
        assert (await standings(engine, second))[-1] == "conflicts"
        view = await engine.proposal(second, "ben")
        assert view.status is ProposalState.CONFLICTS
        assert view.outlook is not None
        assert [conflict.path for conflict in view.outlook.conflicts] == ["story.txt"]
        assert (await engine.state(second)).tasks["ben"].fitness == "conflicts"
        await engine.undo(first)
        assert (await standings(engine, second))[-1] == "clean"


async def test_an_edit_of_the_user_is_noticed_and_its_end_too(root: Path) -> None:
    async with engine_on(root, functions=FAR_APART) as engine:
        first, second = await both_wait(engine, FAR_APART, check="test -f story.txt")
        notes = root / "notes.txt"
        mine = notes.read_text()
        notes.write_text("other notes\n")
        await engine.look_again()
        assert (await standings(engine, first))[-1] == "stale"
        assert (await standings(engine, second))[-1] == "stale"
        view = await engine.proposal(first, "ada")
        assert view.outlook is not None
        assert view.outlook.reason == "notes.txt changed since it was checked"
        notes.write_text(mine)
        assert (await engine.proposal(first, "ada")).status is ProposalState.WAITING
        told = len(await standings(engine, first))
        await engine.look_again()
        assert len(await standings(engine, first)) == told


async def test_an_edit_beside_an_unchecked_change_merges(root: Path) -> None:
    async with engine_on(root, functions=FAR_APART) as engine:
        first, second = await both_wait(engine, FAR_APART)
        story = root / "story.txt"
        story.write_text(story.read_text().replace("line 14\n", "mine\n"))
        await engine.look_again()
        assert (await standings(engine, first))[-1] == "merges"
        assert (await standings(engine, second))[-1] == "merges"


@pytest.mark.req("D25")
async def test_what_waited_before_a_restart_is_watched_again(root: Path) -> None:
    async with engine_on(root, functions=FAR_APART) as engine:
        first, second = await both_wait(engine, FAR_APART)
    story = root / "story.txt"
    story.write_text(story.read_text().replace("line 3\n", "mine\n"))
    async with engine_on(root, functions=FAR_APART) as engine:
        assert (await standings(engine, first))[-1] == "conflicts"
        assert (await standings(engine, second))[-1] == "merges"
        told = await standings(engine, first)
        assert (await engine.proposal(first, "ada")).status is ProposalState.CONFLICTS
    async with engine_on(root, functions=FAR_APART) as engine:
        assert await standings(engine, first) == told


async def test_two_that_are_green_alone_and_red_together_do_not_both_land(root: Path) -> None:
    workers = {"ada": changing(3, "evil\n"), "ben": changing(25, "evil\n")}
    at_most_one = "test $(grep -c evil story.txt) -lt 2"
    async with engine_on(root, functions=workers) as engine:
        first, second = await both_wait(engine, workers, check=at_most_one)
        await decide(engine, first)
        assert (await decide(engine, second))[-1] == "run_parked"
        (ask,) = await engine.asks(second)
        assert "what the checks say now: story: green → red" in ask.problem
        assert (root / "story.txt").read_text().count("evil") == 1
        assert (await engine.proposal(second, "ben")).evidence_status == "failed"
        await decide(engine, second, reason="both, all the same")
    assert (root / "story.txt").read_text().count("evil") == 2


async def test_a_proposal_never_meets_an_earlier_attempt_at_its_own_task(root: Path) -> None:
    (root / "notes.txt").unlink()

    def again(turn: Turn) -> str:
        (tree_of(turn) / "notes.txt").write_text("notes\n")
        return changing(3, "again\n")(turn)

    run_id = ""
    for number in range(4):  # each verdict in an engine of its own, as commands give them
        async with engine_on(root, functions={"ada": again}) as engine:
            if number == 0:
                task = {"id": "t1", "agent": "ada", "description": "Change the story"}
                text = flow({"ada": PYTHON}, tasks=[task], checks=[])
                run_id = await engine.start(order(text))
                await rests(engine, run_id)
            else:
                verdict = "apply" if number == 3 else "revise"
                await decide(engine, run_id, decision=verdict, reason="once more")
            assert number == 3 or (await engine.proposal(run_id, "t1")).overlaps == ()
            told = payloads(await so_far(engine, run_id), e.ProposalRechecked)
            assert [each for each in told if each.meets] == []


@pytest.mark.req("D17")
async def test_what_an_agent_reviews_in_rounds_is_not_watched_again_on_a_resume(
    root: Path,
) -> None:
    verdicts = iter(["REVISE: once more", "REVISE: and once more"])

    def critic(turn: Turn) -> str:
        del turn
        return next(verdicts, "nothing that can be read")

    workers = {"ada": changing(3, "ada\n"), "critic": critic}
    task = {"id": "t1", "agent": "ada", "description": "Change the story"}
    text = flow({"ada": PYTHON}, tasks=[task], checks=[], critic=PYTHON)
    async with engine_on(root, functions=workers) as engine:
        run_id = await engine.start(order(text))
        await rests(engine, run_id)
        (ask,) = await engine.asks(run_id)
        assert ask.proposal == "t1.r2"
    for _ in range(2):
        async with engine_on(root, functions=workers) as engine:
            await engine.resume(run_id)
            await rests(engine, run_id)
            told = payloads(await so_far(engine, run_id), e.ProposalRechecked)
            assert [each for each in told if each.meets] == []
