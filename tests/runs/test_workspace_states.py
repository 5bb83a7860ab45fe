"""Workspaces as people have them, and people who go on working while a team does.

Nothing of the user's is ever lost: what they had before, and what they write meanwhile.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_engine
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import RunDiverged, StoreBusy
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs import events as e
from agentcanvas.runs.repertoire import Repertoire
from agentcanvas.runs.state import RunStatus, TaskStatus
from tests.chaos.driving import (
    BY_ITSELF,
    HELLO,
    PYTHON,
    ask_of,
    flow,
    judged,
    kinds,
    order,
    payloads,
    rests,
    so_far,
    tree_of,
    writing,
)
from tests.runs.workspaces import engine_on, git, repository

pytestmark = pytest.mark.anyio

PROJECT = Path(__file__).parents[2]
HOUR_MS = 3_600_000
CODER = {"coder": writing("greeting.txt", "hello\n")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hi\n", "README.md": "# Hi\n"})


async def landed(root: Path) -> list[e.Recorded]:
    """Have a greeting written and applied; what happened on the way."""
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.DONE, "quality_gate: tests_passed >= 1")
        entries = await so_far(engine, run_id)
    assert Counter(kinds(entries))["proposal_applied"] == 1
    assert (root / "greeting.txt").read_text() == "hello\n"
    return entries


# -- states ---------------------------------------------------------------------------------------


@pytest.mark.req("D7")
async def test_uncommitted_edits_are_part_of_the_base_and_survive(root: Path) -> None:
    (root / "README.md").write_text("# Mine\n")
    (root / "new.txt").write_text("not added yet\n")
    git(root, "rm", "-q", "--cached", "greeting.txt")
    git(root, "add", "new.txt")
    staged = git(root, "diff", "--cached", "--name-status")
    seen: list[str] = []

    def coder(turn: Turn) -> str:
        seen.append((tree_of(turn) / "README.md").read_text())
        seen.append((tree_of(turn) / "new.txt").read_text())
        return str(CODER["coder"](turn))

    async with engine_on(root, functions={"coder": coder}) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        await engine.undo(run_id)
    assert seen == ["# Mine\n", "not added yet\n"]
    assert (root / "README.md").read_text() == "# Mine\n"
    assert (root / "new.txt").read_text() == "not added yet\n"
    assert (root / "greeting.txt").read_text() == "hi\n"
    assert git(root, "diff", "--cached", "--name-status") == staged


@pytest.mark.req("D7", "S4")
async def test_a_detached_head_stays_where_it_is(root: Path) -> None:
    head = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-q", "--detach")
    entries = await landed(root)
    assert git(root, "rev-parse", "HEAD") == head
    assert git(root, "branch", "--show-current") == ""
    assert payloads(entries, e.RunEnded)[0].head == head


@pytest.mark.req("D7", "S4")
async def test_a_repository_without_a_commit_is_a_workspace(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "greeting.txt").write_text("hi\n")
    entries = await landed(root)
    assert payloads(entries, e.RunStarted)[0].head is None
    assert git(root, "status", "--porcelain") == "?? greeting.txt"


@pytest.mark.req("D7", "S4")
async def test_a_folder_that_is_no_repository_is_a_workspace(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    (root / "greeting.txt").write_text("hi\n")
    await landed(root)
    assert sorted(path.name for path in root.iterdir()) == [".agentcanvas", "greeting.txt"]


@pytest.mark.req("D42", "S5")
async def test_a_folder_inside_a_bigger_repository_is_a_workspace(tmp_path: Path) -> None:
    top = repository(tmp_path / "top", {"part/greeting.txt": "hi\n", "other/secret.txt": "x\n"})
    root = top / "part"
    await landed(root)
    assert git(top, "diff", "--name-only") == "part/greeting.txt"
    assert not (top / ".agentcanvas").exists()
    assert not (top / "greeting.txt").exists()


@pytest.mark.req("D1")
async def test_a_repository_that_breaks_during_a_run_does_not_keep_it_from_ending(
    root: Path,
) -> None:
    def breaking(turn: Turn) -> str:
        (root / ".git" / "HEAD").write_text("nonsense")
        return str(CODER["coder"](turn))

    async with engine_on(root, functions={"coder": breaking}) as engine:
        run_id = await engine.start(order(flow(review=BY_ITSELF)))
        entries = await rests(engine, run_id)
        assert (await engine.state(run_id)).status.is_over
        assert len(payloads(entries, e.RunEnded)) == 1
        assert payloads(entries, e.RunEnded)[0].reason


# -- read-only ------------------------------------------------------------------------------------

_RUN = """
    import sys
    from pathlib import Path

    import anyio

    from agentcanvas.errors import AgentCanvasError
    from tests.chaos.driving import BY_ITSELF, flow, order, payloads, rests, writing
    from tests.runs.workspaces import engine_on

    async def main() -> None:
        functions = {"coder": writing("greeting.txt", "hello\\n")}
        try:
            async with engine_on(Path(sys.argv[1]), functions=functions) as engine:
                text = flow(checks=[], review=BY_ITSELF)
                run_id = await engine.start(order(text, unsafe=True))
                await rests(engine, run_id)
                state = await engine.state(run_id)
                print(state.status, state.reason)
        except AgentCanvasError as error:
            print(type(error).__name__, error)

    anyio.run(main)
"""


def run_where(root: Path, *mounts: str) -> str:
    """What a run says where the kernel lets nobody write, not even root."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("mounting something read-only takes bubblewrap")
    code = textwrap.dedent(_RUN)
    done = subprocess.run(
        [bwrap, "--dev-bind", "/", "/", *mounts, sys.executable, "-c", code, str(root)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"},
    )
    if "Creating new namespace failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.req("D1", "D42")
@pytest.mark.parametrize("was_used", [False, True])
def test_a_read_only_workspace_is_refused_with_a_sentence_and_left_alone(
    root: Path, was_used: bool
) -> None:
    if was_used:
        (root / ".agentcanvas").mkdir()
    before = sorted(path.name for path in root.rglob("*") if ".git" not in path.parts)
    said = run_where(root, "--ro-bind", str(root), str(root))
    assert said.startswith("ResourceError ")
    assert str(root / ".agentcanvas") in said
    assert "cannot be" in said
    assert "Traceback" not in said
    assert sorted(p.name for p in root.rglob("*") if ".git" not in p.parts) == before


@pytest.mark.req("S6", "D8")
def test_files_that_cannot_be_written_fail_the_task_and_stay_as_they_are(root: Path) -> None:
    own = root / ".agentcanvas"
    own.mkdir()
    said = run_where(root, "--ro-bind", str(root), str(root), "--bind", str(own), str(own))
    assert said.startswith("stopped failed: t1: The workspace was left as it was: ")
    assert "Read-only file system at greeting.txt" in said
    assert (root / "greeting.txt").read_text() == "hi\n"
    assert git(root, "status", "--porcelain", "-uno") == ""


# -- red on base ----------------------------------------------------------------------------------

RED = {"name": "bonjour", "command": "grep -q bonjour greeting.txt"}


@pytest.mark.req("D13")
async def test_red_before_and_red_after_needs_a_person(root: Path) -> None:
    async with engine_on(root, functions={**CODER, "critic": lambda _: "APPLY"}) as engine:
        run_id = await engine.start(order(flow(critic=PYTHON, checks=[RED, HELLO])))
        entries = await rests(engine, run_id)
        assert [each.status for each in payloads(entries, e.ChecksRun)] == ["red_before"]
        assert "bonjour: red → red" in (await ask_of(engine, run_id)).text
        assert (root / "greeting.txt").read_text() == "hi\n"
        await judged(engine, run_id, decision="apply", reason="half is better than nothing")
        state = await engine.state(run_id)
        assert state.tasks["t1"].status is TaskStatus.APPLIED
        assert state.status is RunStatus.DONE  # a person has looked at what was red before


@pytest.mark.req("D13")
async def test_red_before_and_green_after_passes_by_itself(root: Path) -> None:
    async with engine_on(root, functions={**CODER, "critic": lambda _: "APPLY"}) as engine:
        run_id = await engine.start(order(flow(critic=PYTHON, checks=[HELLO])))
        entries = await rests(engine, run_id)
        assert [each.status for each in payloads(entries, e.ChecksRun)] == ["passed"]
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert "person_asked" not in kinds(entries)


# -- edits during the run -------------------------------------------------------------------------


@pytest.mark.req("D7")
async def test_an_edit_in_another_file_is_kept_and_becomes_a_generation(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow(rounds=1)))
        await rests(engine, run_id)
        (root / "README.md").write_text("# Mine, meanwhile\n")
        (root / "notes.txt").write_text("mine too\n")
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        generations = payloads(await so_far(engine, run_id), e.GenerationTaken)
        # The checks are run on the edits before the change lands beside them.
        assert [base.generation for base in generations] == [0, 1, 2]
        assert set(generations[1].files) == {"README.md", "notes.txt"}
        assert set(generations[2].files) == {"greeting.txt"}
    assert (root / "greeting.txt").read_text() == "hello\n"
    assert (root / "README.md").read_text() == "# Mine, meanwhile\n"
    assert (root / "notes.txt").read_text() == "mine too\n"


@pytest.mark.req("D7", "S6")
async def test_an_edit_elsewhere_in_the_same_file_is_merged(root: Path) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    (root / "greeting.txt").write_text("".join(lines))
    functions = {"coder": writing("greeting.txt", "".join(["hello\n", *lines]))}
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        (root / "greeting.txt").write_text("".join([*lines, "mine\n"]))
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert (root / "greeting.txt").read_text() == "".join(["hello\n", *lines, "mine\n"])


@pytest.mark.req("D7", "S6")
async def test_an_edit_under_an_agents_approval_sends_the_worker_back_to_the_new_ground(
    root: Path,
) -> None:
    found: list[str] = []

    def coder(turn: Turn) -> str:
        greeting = tree_of(turn) / "greeting.txt"
        found.append(greeting.read_text())
        greeting.write_text(f"hello, {found[-1]}")
        return "Greeted."

    def critic(turn: Turn) -> str:
        del turn
        (root / "greeting.txt").write_text("mine\n")
        return "APPLY"

    async with engine_on(root, functions={"coder": coder, "critic": critic}) as engine:
        run_id = await engine.start(order(flow(critic=PYTHON)))
        entries = await rests(engine, run_id)
        first, last = payloads(entries, e.ProposalReviewed)
        assert (first.decision, last.decision) == ("revise", "apply")
        assert "greeting.txt" in (first.reason or "")
        assert found == ["hi\n", "mine\n"]  # it was sent back, and on the new ground
        state = await engine.state(run_id)
        assert (state.status, state.tasks["t1"].attempts) == (RunStatus.DONE, 2)
        happened = Counter(kinds(await so_far(engine, run_id)))
        assert (happened["proposal_applied"], happened["generation_taken"]) == (1, 3)
    assert (root / "greeting.txt").read_text() == "hello, mine\n"


# -- clocks ---------------------------------------------------------------------------------------


@pytest.mark.req("D5", "C9")
@pytest.mark.parametrize("change_ms", [-HOUR_MS, HOUR_MS])
async def test_a_clock_that_is_set_by_an_hour_ends_nothing(root: Path, change_ms: int) -> None:
    clock = VirtualClock(jumps=False)
    begun, go_on = anyio.Event(), anyio.Event()

    async def coder(turn: Turn) -> str:
        begun.set()
        await go_on.wait()
        return str(CODER["coder"](turn))

    async with engine_on(root, clock=clock, functions={"coder": coder}) as engine:
        text = flow(
            {"coder": {**PYTHON, "timeout_ms": 600_000}},
            review=BY_ITSELF,
            budgets={"turns": 9, "minutes": 20},
        )
        run_id = await engine.start(order(text))
        await begun.wait()
        await clock.advance(60)
        clock.set_wall(clock.now_ms() + change_ms)
        await clock.advance(60)
        go_on.set()
        entries = await rests(engine, run_id)
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.DONE, "quality_gate: tests_passed >= 1")
        assert Counter(kinds(entries))["turn_started"] == 1
        assert [end.duration_ms for end in payloads(entries, e.TurnEnded)] == [120_000]
    # The next run gets an id of its own and comes after it, whatever the clock says.
    async with engine_on(root, clock=clock, functions=CODER) as engine:
        clock.set_wall(VirtualClock().now_ms())
        second = await engine.start(order(flow()))
        assert second != run_id
        assert [run.run_id for run in await engine.runs()] == [second, run_id]


@pytest.mark.req("D19", "D5")
async def test_time_that_was_used_is_not_given_back_by_a_clock_that_is_set_back(
    root: Path,
) -> None:
    clock = VirtualClock(jumps=False)
    begun = anyio.Event()

    async def slow(turn: Turn) -> str:
        begun.set()
        await anyio.sleep_forever()
        return "never"

    text = flow({"coder": {**PYTHON, "silent_ms": HOUR_MS}}, budgets={"turns": 9, "minutes": 20})
    async with engine_on(root, clock=clock, functions={"coder": slow}) as engine:
        run_id = await engine.start(order(text))
        await begun.wait()
        await clock.advance(15 * 60)
        clock.set_wall(clock.now_ms() - HOUR_MS)
        await clock.advance(60)
    begun = anyio.Event()
    async with engine_on(root, clock=clock, functions={"coder": slow}, resume=True) as engine:
        await begun.wait()
        await clock.advance(6 * 60)
        await rests(engine, run_id)
        assert (await engine.state(run_id)).reason == "budget: 20 minutes"


# -- two at once ----------------------------------------------------------------------------------


@pytest.mark.req("D1", "D36")
async def test_two_runs_at_once_with_agents_of_the_same_name_both_land_once(root: Path) -> None:
    together = Meeting(2)

    async def coder(turn: Turn) -> str:
        await together.wait()  # both are in the middle of their turns
        name = "a.txt" if turn.task_id == "first" else "b.txt"
        return str(writing(name, "hello\n")(turn))

    async with engine_on(root, functions={"coder": coder}) as engine:
        runs = []
        for which in ("first", "second"):
            tasks = [{"id": which, "agent": "coder", "description": "Write a file"}]
            text = flow(tasks=tasks, checks=[], review=BY_ITSELF)
            runs.append(await engine.start(order(text)))
        for run_id, name in zip(runs, ("a.txt", "b.txt"), strict=True):
            entries = await rests(engine, run_id)
            assert (await engine.state(run_id)).status is RunStatus.DONE
            happened = Counter(kinds(entries))
            assert (happened["turn_started"], happened["proposal_applied"]) == (1, 1)
            assert payloads(entries, e.ProposalLanded)[0].files == (name,)
            said = [entry async for entry in engine.transcript(run_id, "coder")]
            assert len(said) == 1  # each heard only its own agent
    assert (root / "a.txt").read_text() == (root / "b.txt").read_text() == "hello\n"


class Meeting:
    """Lets those who wait go on when all are there."""

    def __init__(self, size: int) -> None:
        self._missing = size
        self._all_there = anyio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._all_there.set()
        await self._all_there.wait()


@pytest.mark.req("H10", "D25")
async def test_what_a_stopped_run_had_asked_for_is_not_done_by_the_next_one(root: Path) -> None:
    asked: list[str] = []
    begun = anyio.Event()

    async def coder(turn: Turn) -> str:
        asked.append(turn.run_id)
        if len(asked) == 1:
            begun.set()
            await anyio.sleep_forever()
        return str(CODER["coder"](turn))

    async with engine_on(root, functions={"coder": coder}) as engine:
        first = await engine.start(order(flow(review=BY_ITSELF)))
        await begun.wait()
        await engine.stop(first)
        second = await engine.start(order(flow(review=BY_ITSELF)))
        await rests(engine, second)
        assert asked == [first, second]
        assert (await engine.state(second)).status is RunStatus.DONE


@pytest.mark.req("D18", "D25")
async def test_what_an_interrupted_run_had_asked_for_waits_for_its_own_resume(root: Path) -> None:
    asked: list[str] = []
    begun = anyio.Event()

    async def coder(turn: Turn) -> str:
        asked.append(turn.run_id)
        if len(asked) == 1:
            begun.set()
            await anyio.sleep_forever()
        return str(CODER["coder"](turn))

    async with engine_on(root, functions={"coder": coder}) as engine:
        first = await engine.start(order(flow(review=BY_ITSELF)))
        await begun.wait()
    async with engine_on(root, functions={"coder": coder}) as engine:
        second = await engine.start(order(flow(review=BY_ITSELF)))
        await rests(engine, second)
        assert asked == [first, second]
        seen = await so_far(engine, first)
        await engine.resume(first)
        await rests(engine, first, seen[-1].seq)
        assert asked == [first, second, first]


@pytest.mark.req("D1")
async def test_a_second_engine_on_one_workspace_is_refused_with_a_sentence(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        with pytest.raises(StoreBusy, match=f"is held by process {os.getpid()}"):
            async with engine_on(root):
                raise AssertionError
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


# -- a run that cannot go on ----------------------------------------------------------------------


@asynccontextmanager
async def interrupted(root: Path) -> AsyncIterator[str]:
    """A run that was cut off in the middle of a turn."""
    begun = anyio.Event()

    async def hanging(turn: Turn) -> str:
        begun.set()
        await anyio.sleep_forever()
        return "never"

    async with engine_on(root, functions={"coder": hanging}) as engine:
        run_id = await engine.start(order(flow()))
        await begun.wait()
    yield run_id


@pytest.mark.req("D4", "D25")
async def test_a_run_that_cannot_go_on_says_why_and_keeps_nobody_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with interrupted(root) as run_id:
        monkeypatch.setattr(Repertoire, "fingerprint", lambda *_: "another")
        async with engine_on(root, functions=CODER, resume=True) as engine:
            state = await engine.state(run_id)
            assert state.status is RunStatus.INTERRUPTED
            (*_, warned) = payloads(await so_far(engine, run_id), e.WarningGiven)
            assert "another version of its patterns" in warned.sentence
            assert f"agentcanvas retry {run_id}" in warned.sentence
            again = await engine.retry(run_id)
            await rests(engine, again)
            await judged(engine, again, decision="apply")
            assert (await engine.state(again)).status is RunStatus.DONE


@pytest.mark.req("D4", "D25")
async def test_an_answer_is_refused_while_its_run_cannot_go_on_with_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        ask = await ask_of(engine, run_id)
    with monkeypatch.context() as changed:
        changed.setattr(Repertoire, "fingerprint", lambda *_: "another")
        async with engine_on(root, functions=CODER) as engine:
            with pytest.raises(RunDiverged, match="another version of its patterns"):
                await engine.answer(ask.ask_id, PersonAnswer({"decision": "apply"}, "you"))
            assert await engine.asks(run_id) == (ask,)
    async with engine_on(root, functions=CODER) as engine:
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


async def test_that_a_run_cannot_go_on_is_said_once_however_often_it_is_tried(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with interrupted(root) as run_id:
        monkeypatch.setattr(Repertoire, "fingerprint", lambda *_: "another")
        warned = []
        for _ in range(3):
            async with engine_on(root, functions=CODER, resume=True) as engine:
                said = payloads(await so_far(engine, run_id), e.WarningGiven)
                warned.append(sum("cannot go on" in each.sentence for each in said))
        assert warned == [1, 1, 1]


# -- files for people -----------------------------------------------------------------------------


@pytest.mark.req("D2", "V3")
async def test_torn_logs_are_completed_and_the_run_goes_on_from_the_store(root: Path) -> None:
    async with open_engine(root, functions=CODER) as (engine, store):
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        await store.flush_projections()
    logs = root / ".agentcanvas" / "runs" / "faults"
    whole = {path: path.read_bytes() for path in logs.iterdir()}
    assert len(whole) == 3
    for path, content in whole.items():
        path.write_bytes(content[: len(content) // 2])
    async with open_engine(root, functions=CODER) as (engine, store):
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        await store.flush_projections()
        for path, content in whole.items():
            assert path.read_bytes().startswith(content)
