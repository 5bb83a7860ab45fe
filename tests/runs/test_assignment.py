"""A person's apply that the ground refuses: the change keeps waiting for them (D7)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.state import RunStatus
from tests.chaos.driving import PYTHON, ask_of, flow, judged, kinds, order, rests, so_far, tree_of
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D7", "D4")]

LINES = [f"line {number}\n" for number in range(1, 11)]


def coder(turn: Turn) -> str:
    story = tree_of(turn) / "story.txt"
    story.write_text(story.read_text().replace("line 5\n", "theirs\n"))
    return "I changed line 5."


CODER = {"coder": coder}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"story.txt": "".join(LINES)})


async def waiting(engine: Engine, root: Path) -> str:
    """A run whose change waits, while the person has changed the same line."""
    run_id = await engine.start(order(flow(checks=[])))
    await rests(engine, run_id)
    (root / "story.txt").write_text("".join(LINES).replace("line 5\n", "mine\n"))
    return run_id


async def test_a_change_that_conflicts_keeps_waiting_and_its_worker_is_left_alone(
    root: Path,
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine, root)
        after = kinds(await judged(engine, run_id, decision="apply"))
        assert after[-1] == "run_parked"
        assert "turn_started" not in after
        assert "proposal_reviewed" not in after, "nobody has sent it back"
        ask = await ask_of(engine, run_id)
        assert ask.proposal == "t1.r0"
        assert "story.txt: line 5 has changed since, by you" in ask.problem
        assert (root / "story.txt").read_text().count("mine") == 1


async def test_it_lands_once_the_person_has_set_their_edit_aside(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine, root)
        await judged(engine, run_id, decision="apply")
        await judged(engine, run_id, decision="apply")
        (root / "story.txt").write_text("".join(LINES))
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        happened = Counter(kinds(await so_far(engine, run_id)))
        assert (happened["person_asked"], happened["turn_started"]) == (3, 1)
        assert (root / "story.txt").read_text().count("theirs") == 1


async def test_the_person_may_still_send_it_back_and_the_worker_stands_on_the_files_of_now(
    root: Path,
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine, root)
        (root / "story.txt").write_text("".join(LINES).replace("line 5\n", "line 5\nline 5\n"))
        await judged(engine, run_id, decision="apply")
        await judged(engine, run_id, decision="revise", reason="on my edit, please")
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert (root / "story.txt").read_text().count("theirs") == 2


async def test_what_is_sent_back_while_it_conflicts_is_made_again_on_the_files_of_now(
    root: Path,
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine, root)
        (root / "story.txt").write_text("".join(LINES).replace("line 5\n", "line 5\nline 5\n"))
        await judged(engine, run_id, decision="revise", reason="on my edit, please")
        outlook = (await engine.proposal(run_id, "t1")).outlook
        assert outlook is not None
        assert outlook.fitness == "clean"


async def test_an_apply_that_was_refused_is_remembered_over_restarts(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await waiting(engine, root)
        await judged(engine, run_id, decision="apply")
    for _ in range(2):
        async with engine_on(root, functions=CODER) as engine:
            await engine.resume(run_id)
            await rests(engine, run_id)
            assert "has changed since" in (await ask_of(engine, run_id)).problem
    (root / "story.txt").write_text("".join(LINES))
    async with engine_on(root, functions=CODER) as engine:
        ask = await ask_of(engine, run_id)
        seen = (await so_far(engine, run_id))[-1].seq
        await engine.answer(ask.ask_id, PersonAnswer({"decision": "apply"}, "you"))
        await rests(engine, run_id, seen)
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert Counter(kinds(await so_far(engine, run_id)))["turn_started"] == 1


async def test_another_run_that_landed_the_same_lines_is_named_and_can_be_taken_back(
    root: Path,
) -> None:
    def otherwise(turn: Turn) -> str:
        story = tree_of(turn) / "story.txt"
        story.write_text(story.read_text().replace("line 5\n", "otherwise\n"))
        return "I changed line 5, too."

    workers = {"ann": coder, "ben": otherwise}
    async with engine_on(root, functions=workers) as engine:
        first, second = [
            await engine.start(order(flow({name: PYTHON}, checks=[]))) for name in workers
        ]
        await rests(engine, first)
        await rests(engine, second)
        await judged(engine, first, decision="apply")
        named = f"story.txt: line 5 has changed since, by t1 of {first}"
        outlook = (await engine.proposal(second, "t1")).outlook
        assert outlook is not None
        assert outlook.reason == named
        await judged(engine, second, decision="apply")
        assert named in (await ask_of(engine, second)).problem
        await engine.undo(first)
        await judged(engine, second, decision="apply")
        assert (await engine.state(second)).status is RunStatus.DONE
        assert (root / "story.txt").read_text().count("otherwise") == 1
