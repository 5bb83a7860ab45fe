"""One agent, one task: from the request to the workspace and back, in a real repository."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio.lowlevel
import msgspec
import pytest

from agentcanvas.app import office
from agentcanvas.pattern import Cast, Outcome, Stage, Work
from agentcanvas.patterns.manager_worker import ManagerWorker, Options
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.report import markdown
from agentcanvas.runs.state import RunStatus, TaskStatus
from agentcanvas.sandbox.process_tree import end_leftovers
from tests.runs.workspaces import engine_on, git, order, repository, solo

pytestmark = pytest.mark.anyio

SPOILING = (
    "test -f $HOME/second || { touch $HOME/second; echo spoilt > README.md; sleep 600; }; "
    "echo hello world > greeting.txt"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n", "README.md": "# Hi\n"})


async def until_it_rests(engine: Engine, run_id: str, after: int = 0) -> list[e.Recorded]:
    return [entry async for entry in engine.events(run_id, after=after)]


async def judged(engine: Engine, run_id: str, **verdict: str) -> list[e.Recorded]:
    """Answer the one ask that waits, and see how it goes on."""
    (ask,) = await engine.asks(run_id)
    seen = [entry async for entry in engine.events(run_id, follow=False)]
    await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
    return await until_it_rests(engine, run_id, seen[-1].seq)


@pytest.mark.req("S7", "V4", "D6", "D25")
async def test_a_change_lands_when_you_say_so_and_not_before(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo hello world > greeting.txt")))
        await until_it_rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.status is RunStatus.PARKED
        assert state.waits_for.startswith("you: Apply the change of Coder")
        assert (root / "greeting.txt").read_text() == "hello\n"
        assert b"+hello world" in await engine.patch(run_id, "task-1")
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.DONE, "quality_gate: tests_passed >= 1")
        assert state.tasks["task-1"].status is TaskStatus.APPLIED
        assert (root / "greeting.txt").read_text() == "hello world\n"
        assert git(root, "diff", "--name-only") == "greeting.txt"
        (undone,) = await engine.undo(run_id)
        assert undone.files == ("greeting.txt",)
        assert (root / "greeting.txt").read_text() == "hello\n"
        report = markdown([entry async for entry in engine.events(run_id, follow=False)])
        assert "### Coder — Greet the world" in report


@pytest.mark.req("R2", "C3", "R3")
async def test_a_revision_goes_on_where_the_worker_left_off(root: Path) -> None:
    # The first turn leaves a mark of its own; the second finds it and mends the greeting.
    command = "if test -f mark; then echo hello world > greeting.txt; else touch mark; fi"
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(command)))
        await until_it_rests(engine, run_id)
        after = await judged(engine, run_id, decision="revise", reason="say hello to the world")
        kinds = [e.kind_of(entry.event) for entry in after]
        assert kinds.count("task_dispatched") == 1
        assert (await engine.state(run_id)).tasks["task-1"].attempts == 2
        assert b"b/mark" in await engine.patch(run_id, "task-1")
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert (root / "greeting.txt").read_text() == "hello world\n"


@pytest.mark.req("R2", "C2")
async def test_a_rejected_change_never_reaches_the_workspace(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo nonsense > greeting.txt")))
        await until_it_rests(engine, run_id)
        await judged(engine, run_id, decision="reject", reason="nonsense")
        while await engine.asks(run_id):  # planned again once (C2)
            await judged(engine, run_id, decision="reject", reason="nonsense again")
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert {task.status for task in state.tasks.values()} == {TaskStatus.REJECTED}
        assert (root / "greeting.txt").read_text() == "hello\n"


@pytest.mark.req("R4", "C12")
async def test_an_agent_that_changes_nothing_has_failed(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("true")))
        entries = await until_it_rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert {task.reason for task in state.tasks.values()} == {"Coder changed nothing"}
        announced = [x.event.payload for x in entries if isinstance(x.event, e.Announced)]
        assert {told.status for told in announced} == {"error"}


class _Answering:
    """A pattern that asks for words and takes a change if there is one."""

    id = "manager_worker"
    options: type[msgspec.Struct] = Options
    roles = ManagerWorker.roles

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        del options
        answer = await stage.ask(cast["worker"][0], request, work=Work("a", optional=True))
        return Outcome(answer.fate, done=answer.done, result=answer.text)


@pytest.mark.req("R4", "D6")
async def test_a_task_that_may_change_nothing_is_answered_by_words(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office, "PATTERNS", (_Answering(),))
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo nothing to do")))
        entries = await until_it_rests(engine, run_id)
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.DONE, "done")
        assert state.tasks["a"].status is TaskStatus.ANSWERED
        assert state.result.strip() == "nothing to do"
        assert e.TaskFailed not in {type(entry.event) for entry in entries}
        # A change is judged all the same.
        run_id = await engine.start(
            order(solo("echo hello world > greeting.txt; seq 9; echo that is all"))
        )
        await until_it_rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert state.tasks["a"].status is TaskStatus.APPLIED
        assert state.result.strip().endswith("9\nthat is all"), "others hear all of it"


@pytest.mark.req("D20")
async def test_two_interactions_of_one_pattern_have_tasks_of_different_names(root: Path) -> None:
    flow = solo("date +%N >> greeting.txt; echo world >> greeting.txt").replace(
        "checks:",
        "  - {id: again, patternId: manager_worker, roles: {worker: coder}}\nchecks:",
    )
    flow = flow.replace("reviewer: person, max_iterations: 3", "autoApprove: true")
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow))
        await until_it_rests(engine, run_id)
        state = await engine.state(run_id)
        assert (state.status, set(state.tasks)) == (RunStatus.DONE, {"task-1", "again.task-1"})


@pytest.mark.req("D25")
async def test_a_parked_run_needs_no_process_and_goes_on_when_it_is_answered(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo hello world > greeting.txt")))
        await until_it_rests(engine, run_id)
    async with engine_on(root) as engine:
        assert (await engine.state(run_id)).status is RunStatus.PARKED
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert state.status is RunStatus.DONE
        turns = [
            entry.event
            async for entry in engine.events(run_id, follow=False)
            if isinstance(entry.event, e.TurnStarted)
        ]
        assert len(turns) == 1  # the agent was not asked again
    assert (root / "greeting.txt").read_text() == "hello world\n"


@pytest.mark.req("D18", "D25")
async def test_a_turn_that_was_cut_off_is_taken_again_from_its_start(
    root: Path, tmp_path: Path
) -> None:
    # The first attempt spoils a file and hangs; the second finds the file as it was.
    command = SPOILING
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(command)))
        await spoilt(root, run_id)
    async with engine_on(root) as engine:
        assert (await engine.state(run_id)).status is RunStatus.INTERRUPTED
        await engine.resume(run_id)
        await until_it_rests(engine, run_id)
        patch = await engine.patch(run_id, "task-1")
        assert b"greeting.txt" in patch
        assert b"README" not in patch
        attempts = [
            entry.event.payload.attempt
            async for entry in engine.events(run_id, follow=False)
            if isinstance(entry.event, e.TurnStarted)
        ]
        assert attempts == [1, 2]
        kept = root / ".agentcanvas" / "sandboxes" / run_id / "coder" / "proposal"
        assert "spoilt" in (kept / "attempt-1.patch").read_text()


async def spoilt(root: Path, run_id: str) -> None:
    """Return when the agent is in the middle of its turn."""
    readme = root / ".agentcanvas" / "sandboxes" / run_id / "coder" / "work" / "README.md"
    while not (readme.exists() and "spoilt" in readme.read_text()):
        await anyio.lowlevel.checkpoint()


@pytest.mark.req("D25", "H10")
async def test_a_stopped_run_leaves_nothing_running_and_can_go_on(root: Path) -> None:
    command = SPOILING
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(command)))
        await spoilt(root, run_id)
        await engine.stop(run_id)
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.STOPPED, "stopped by you")
        home = root / ".agentcanvas" / "sandboxes" / run_id / "coder" / "home"
        assert await end_leftovers(str(home)) == 0
        await engine.resume(run_id)
        await until_it_rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


@pytest.mark.req("D25", "D3")
async def test_several_who_resume_a_run_at_once_give_it_one_life(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(SPOILING)))
        await spoilt(root, run_id)
        await engine.stop(run_id)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(engine.resume, run_id)
        await until_it_rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        found = Counter(type(each.event) for each in await until_it_rests(engine, run_id))
        assert (found[e.RunResumed], found[e.RunEnded], found[e.ProposalLanded]) == (2, 2, 1)


@pytest.mark.req("D25", "H10")
async def test_a_run_that_is_about_to_go_on_is_stopped_when_it_does(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(SPOILING)))
        await spoilt(root, run_id)
        await engine.stop(run_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.resume, run_id)
            await anyio.lowlevel.checkpoint()
            await engine.stop(run_id, reason="not now")
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.STOPPED, "not now")


@pytest.mark.req("D13")
async def test_a_repository_that_is_red_for_its_own_reasons_can_be_done_with(root: Path) -> None:
    # The check is red before and after; whether that matters is the person's to say, once.
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo changed > README.md")))
        await until_it_rests(engine, run_id)
        (ask,) = await engine.asks(run_id)
        assert "greeting: red → red" in ask.text
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert state.status is RunStatus.DONE
        assert len(state.tasks) == 1


@pytest.mark.req("D13", "R2")
async def test_what_a_red_check_printed_reaches_whoever_judges_and_whoever_mends_it(
    root: Path,
) -> None:
    said = "no world in it"
    check = f"grep -q world greeting.txt || (echo {said}; exit 1)"
    flow = solo("cat > told.txt").replace("grep -q world greeting.txt", check)
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow))
        await until_it_rests(engine, run_id)
        (ask,) = await engine.asks(run_id)
        assert f"What greeting printed last ({check}):\n```text\n{said}\n```" in ask.text
        assert said.encode() not in await engine.patch(run_id, "task-1")  # not before it is red
        await judged(engine, run_id, decision="revise", reason="mend it")
        told = (await engine.patch(run_id, "task-1")).decode()
        assert f"+{said}\n+```" in told
        assert "+mend it" in told


@pytest.mark.req("S7", "D7")
async def test_a_change_that_later_work_stands_on_is_kept_and_the_other_task_is_named(
    root: Path,
) -> None:
    async with engine_on(root) as engine:
        runs = []
        for words in ("hello world", "hello world again"):
            runs.append(await engine.start(order(solo(f"echo {words} > greeting.txt"))))
            await until_it_rests(engine, runs[-1])
            await judged(engine, runs[-1], decision="apply")
        (refused,) = await engine.undo(runs[0])
        assert refused.problem == (
            f"Nothing was taken back, for later work stands on task-1 of {runs[0]}: greeting.txt: "
            f"task-1 of {runs[1]} changed it since. Take back task-1 of {runs[1]} first "
            f"(agentcanvas undo {runs[1]} task-1), or ask for a change that undoes it."
        )
        assert (root / "greeting.txt").read_text() == "hello world again\n"
        for run_id in reversed(runs):
            (undone,) = await engine.undo(run_id)
            assert not undone.problem
        assert (root / "greeting.txt").read_text() == "hello\n"


@pytest.mark.req("D16")
async def test_a_flow_may_land_by_a_commit_and_take_it_back_by_another(root: Path) -> None:
    git(root, "config", "user.name", "User")
    git(root, "config", "user.email", "user@example.invalid")
    flow = solo("echo hello world > greeting.txt") + "land: commit\n"
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow))
        await until_it_rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        state = await engine.state(run_id)
        assert state.commit == git(root, "rev-parse", "HEAD")
        assert f"Run: {run_id}" in git(root, "log", "-1", "--format=%B")
        assert git(root, "status", "--porcelain") == ""
        await engine.undo(run_id)
        assert (root / "greeting.txt").read_text() == "hello\n"
        assert git(root, "status", "--porcelain") == ""


async def test_a_secret_and_a_file_that_runs_by_itself_are_pointed_out(root: Path) -> None:
    command = "echo token=ghp_0123456789abcdefghijABCDEFGHIJ456789 > greeting.txt; echo x > .envrc"
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(command)))
        await until_it_rests(engine, run_id)
        (ask,) = await engine.asks(run_id)
        assert "Look closely at" in ask.text
        assert ".envrc" in ask.text.partition("Look closely at")[2]
        assert "ghp_0123456789abcdefghijABCDEFGHIJ456789" not in ask.text
