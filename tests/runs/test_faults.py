"""Agents that do not do what they should: silent, talkative, confused, killed, or out of bounds.

Whatever they do, their run goes on or ends with a reason, and nothing lands without a verdict.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import UNSET

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_engine
from agentcanvas.app.workspace import store_path
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import AgentCanvasError, FlowError
from agentcanvas.hub.guard import Principal
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Kind, TaskResult
from agentcanvas.protocol.turns import Report
from agentcanvas.protocol.values import freeze
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.state import RunStatus, TaskStatus
from agentcanvas.sandbox.process_tree import end_leftovers
from tests.chaos.driving import (
    HELLO,
    PYTHON,
    ask_of,
    command,
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

FILES = {"greeting.txt": "hi\n", "README.md": "# Hi\n"}
HELLO_TASK = {"id": "t1", "agent": "coder", "description": "Say hello", "scope": ["greeting.txt"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


def files_of(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir() if path.is_file()}


async def left_over(root: Path) -> int:
    """How many processes of any agent are still there."""
    return await end_leftovers(str(root / ".agentcanvas" / "sandboxes"))


@pytest.mark.req("D18", "D13")
async def test_what_a_check_starts_is_known_by_its_workspace_and_ended_when_that_is_opened(
    root: Path,
) -> None:
    """A killed host could leave it; whoever opens the workspace next ends it by its tag."""
    ours = f'case "$AGENTCANVAS_SANDBOX" in {root}/.agentcanvas/sandboxes/*) ;; *) exit 1;; esac'
    async with engine_on(root, functions={"coder": writing("greeting.txt", "hello\n")}) as engine:
        text = flow({"coder": PYTHON}, checks=[{"name": "ours", "command": ours}])
        entries = await rests(engine, await engine.start(order(text)))
        assert [checked.status for checked in payloads(entries, e.ChecksRun)] == ["passed"]
    tag = f"{root}/.agentcanvas/sandboxes/run_20260101_000000/.evidence-x/home/1234"
    environment = {**os.environ, "AGENTCANVAS_SANDBOX": tag}
    left = await anyio.open_process(["sleep", "600"], env=environment)
    async with left, engine_on(root):
        assert await left.wait() < 0


# -- silent ---------------------------------------------------------------------------------------


@pytest.mark.req("D32", "C1")
async def test_an_agent_that_never_answers_is_stopped_and_the_run_says_so(root: Path) -> None:
    clock = VirtualClock(jumps=False)
    begun = [anyio.Event(), anyio.Event()]
    tries = iter(begun)

    async def silent(turn: Turn) -> str:
        next(tries).set()
        await anyio.sleep_forever()
        return "never"

    async with engine_on(root, clock=clock, functions={"coder": silent}) as engine:
        text = flow({"coder": {**PYTHON, "timeout_ms": 90_000}})
        run_id = await engine.start(order(text))
        for event, seconds in zip(begun, (90, 180), strict=True):  # the second time it gets double
            await event.wait()
            await clock.advance(seconds)
        entries = await rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert state.reason == "timed_out: t1: coder was not done after 180 s and was stopped."
        assert Counter(kinds(entries))["turn_started"] == 2
        assert [told.status for told in payloads(entries, e.Announced)] == ["timeout"]
    assert files_of(root) == FILES


@pytest.mark.req("D32", "H10")
async def test_a_command_that_hangs_is_ended_with_all_its_processes(root: Path) -> None:
    hanging = command("sh -c 'sleep 600 & wait' & wait", timeout_ms=300)
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow({"coder": hanging})))
        await rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert "was not done after 0.6 s and was stopped" in state.reason  # twice the first limit
        assert await left_over(root) == 0


# -- twice ----------------------------------------------------------------------------------------


def answer_to(turn_of: e.TurnBegun, run_id: str, by: str, report: Report) -> Envelope:
    """An answer that somebody sends past the host."""
    return Envelope(
        id=new_id(),
        kind=Kind.TASK_COMPLETE,
        time="2026-01-28T10:00:00Z",
        sender=AgentRef(by),
        recipient=AgentRef(f"engine:{run_id}"),
        session=run_id,
        reply_to=turn_of.message_id,
        body=TaskResult(task_id=turn_of.task_id or UNSET, output=freeze(report)),
    )


async def send_past_the_host(engine: Engine, envelope: Envelope) -> str:
    """Send a message as an agent would that has its own connection; gives the refusal, if any."""
    try:
        await engine._with.hub.send(Principal(envelope.sender.id), envelope)
    except AgentCanvasError as refusal:
        return str(refusal)
    return ""


@pytest.mark.req("D3", "M2")
async def test_a_second_answer_changes_nothing(root: Path) -> None:
    async with engine_on(root, functions={"coder": writing("greeting.txt", "hello\n")}) as engine:
        run_id = await engine.start(order(flow()))
        entries = await rests(engine, run_id)
        (begun,) = payloads(entries, e.TurnStarted)
        ask = await ask_of(engine, run_id)
        await send_past_the_host(engine, answer_to(begun, run_id, "coder", Report(text="Again!")))
        assert await so_far(engine, run_id) == entries
        assert await ask_of(engine, run_id) == ask
        await judged(engine, run_id, decision="apply")
        happened = Counter(kinds(await so_far(engine, run_id)))
        assert (happened["turn_ended"], happened["proposal_submitted"]) == (1, 1)
        assert happened["proposal_applied"] == 1
        assert (await engine.state(run_id)).status is RunStatus.DONE


@pytest.mark.req("D3")
async def test_of_two_answers_the_first_counts(root: Path) -> None:
    plan = {"tasks": [{"task_id": "t1", "agent": "coder", "description": "Say hello"}]}
    engines: list[Engine] = []

    async def boss(turn: Turn) -> str:
        if turn.number == 1:
            (engine,) = engines
            entries = await so_far(engine, turn.run_id)
            begun = payloads(entries, e.TurnStarted)[-1]
            early = answer_to(begun, turn.run_id, "boss", Report(value=freeze(plan)))
            assert await send_past_the_host(engine, early) == ""
        return "What was the question?"

    functions = {"boss": boss, "coder": writing("greeting.txt", "hello\n")}
    async with engine_on(root, functions=functions) as engine:
        engines.append(engine)
        run_id = await engine.start(order(flow(manager=PYTHON)))
        await rests(engine, run_id)
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        ends = payloads(await so_far(engine, run_id), e.TurnEnded)
        assert len(ends) == len({end.turn_id for end in ends}) == 3


@pytest.mark.req("D31")
async def test_nobody_answers_for_somebody_else(root: Path) -> None:
    engines: list[Engine] = []

    async def coder(turn: Turn) -> str:
        (engine,) = engines
        (begun,) = payloads(await so_far(engine, turn.run_id), e.TurnStarted)
        forged = answer_to(begun, turn.run_id, "critic", Report(text="I did it all."))
        assert "it was given to coder" in await send_past_the_host(engine, forged)
        return str(writing("greeting.txt", "hello\n")(turn))

    functions = {"coder": coder, "critic": lambda _: "APPLY"}
    async with engine_on(root, functions=functions) as engine:
        engines.append(engine)
        run_id = await engine.start(order(flow(critic=PYTHON)))
        entries = await rests(engine, run_id)
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert "I did it all." not in {end.text for end in payloads(entries, e.TurnEnded)}
    assert files_of(root)["greeting.txt"] == "hello\n"


# -- garbage --------------------------------------------------------------------------------------


@pytest.mark.req("D17")
@pytest.mark.parametrize("said", ["Lorem ipsum.", '{"tasks": 7}', "{" * 5000, "\x00\ud800"])
async def test_a_plan_that_is_nonsense_twice_ends_the_run_with_the_reason(
    root: Path, said: str
) -> None:
    functions = {"boss": lambda _: said, "coder": writing("greeting.txt", "hello\n")}
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(flow(manager=PYTHON)))
        happened = Counter(kinds(await rests(engine, run_id)))
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert state.reason.startswith("no plan: ")
        assert happened["turn_started"] == 2
        assert happened["task_dispatched"] == 0


@pytest.mark.req("D17", "R1")
async def test_a_reviewer_without_a_verdict_is_asked_once_more_and_then_you_are(
    root: Path,
) -> None:
    functions = {"coder": writing("greeting.txt", "hello\n"), "critic": lambda _: "Hm, nice."}
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(flow(critic=PYTHON)))
        turns = payloads(await rests(engine, run_id), e.TurnStarted)
        assert [turn.to for turn in turns] == ["coder", "critic", "critic"]
        assert "gave no verdict that can be read" in (await ask_of(engine, run_id)).text
        assert files_of(root) == FILES
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


@pytest.mark.req("H8", "C1")
@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: object(), "cannot be written as JSON"),
    ],
)
async def test_a_function_that_breaks_fails_its_task_after_one_more_try(
    root: Path, broken: Callable[[Turn], Any], reason: str
) -> None:
    async with engine_on(root, functions={"coder": broken}) as engine:
        run_id = await engine.start(order(flow()))
        happened = Counter(kinds(await rests(engine, run_id)))
        state = await engine.state(run_id)
        assert (state.status, happened["turn_started"]) == (RunStatus.STOPPED, 2)
        assert reason in state.tasks["t1"].reason
        assert state.tasks["t1"].status is TaskStatus.FAILED


# -- killed ---------------------------------------------------------------------------------------


@pytest.mark.req("C1")
async def test_a_command_that_dies_is_tried_once_more_and_then_the_task_has_failed(
    root: Path,
) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow({"coder": command("kill -9 $$")})))
        entries = await rests(engine, run_id)
        state = await engine.state(run_id)
        assert Counter(kinds(entries))["turn_started"] == 2
        assert state.status is RunStatus.STOPPED
        assert "SIGKILL" in state.tasks["t1"].reason
        assert Counter(kinds(entries))["task_failed"] == 1
    assert files_of(root) == FILES


@pytest.mark.req("C1", "D18")
async def test_a_second_try_finds_nothing_of_what_the_first_left_half_done(root: Path) -> None:
    line = (
        "test -f $HOME/second || { touch $HOME/second; echo half > README.md; kill -9 $$; }; "
        "echo hello > greeting.txt"
    )
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow({"coder": command(line)})))
        await rests(engine, run_id)
        assert b"README" not in await engine.patch(run_id, "t1")
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert files_of(root) == {**FILES, "greeting.txt": "hello\n"}


@pytest.mark.req("H10")
async def test_an_agent_that_leaves_a_daemon_behind_leaves_nothing(root: Path) -> None:
    line = "setsid nohup sleep 600 >/dev/null 2>&1 & sleep 600 & echo hello > greeting.txt"
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow({"coder": command(line)})))
        await rests(engine, run_id)
        assert await left_over(root) == 0
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


# -- talkative ------------------------------------------------------------------------------------


@pytest.mark.req("V1")
@pytest.mark.parametrize("width", [100, 50_000_000])
async def test_a_flood_of_50_mb_stays_out_of_the_store_and_the_run_goes_on(
    root: Path, width: int
) -> None:
    line = f"head -c 50000000 /dev/zero | tr '\\0' x | fold -w {width}; echo hello > greeting.txt"
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow({"coder": command(line)})))
        await rests(engine, run_id)
        said = [entry.event async for entry in engine.transcript(run_id, "coder")]
        assert sum(len(str(event)) for event in said) < 10_000_000
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert store_path(root).stat().st_size < 20_000_000


# -- out of bounds --------------------------------------------------------------------------------


@pytest.mark.req("S8", "S6")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("echo x > other.txt", "other.txt"),
        ("ln -sf /etc/passwd greeting.txt.link", "greeting.txt.link"),
        ("ln -sf ../../outside greeting.txt", "greeting.txt"),
    ],
)
async def test_a_change_out_of_bounds_is_sent_back_and_never_lands(
    root: Path, line: str, told: str
) -> None:
    async with engine_on(root) as engine:
        review = {"reviewer": "person", "max_iterations": 2}
        text = flow({"coder": command(line)}, tasks=[HELLO_TASK], review=review)
        run_id = await engine.start(order(text))
        entries = await rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert "may not land" in state.tasks["t1"].reason
        assert told in state.tasks["t1"].reason
        reviews = [review.decision for review in payloads(entries, e.ProposalReviewed)]
        assert reviews == ["revise", "reject"]
        assert "person_asked" not in kinds(entries)  # nobody could allow it
    assert files_of(root) == FILES


@pytest.mark.req("S3", "D10")
async def test_what_an_agent_does_to_git_stays_in_its_sandbox(root: Path) -> None:
    before = git(root, "rev-parse", "HEAD")
    line = (
        "echo hello > greeting.txt; mkdir -p .git/hooks; echo 'touch /tmp/owned' > .git/hooks/x; "
        "git config core.hooksPath evil; git commit -qam mine; git branch more; rm -rf .git/refs"
    )
    async with engine_on(root) as engine:
        run_id = await engine.start(order(flow({"coder": command(line)})))
        await rests(engine, run_id)
        assert b".git" not in await engine.patch(run_id, "t1")
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert git(root, "rev-parse", "HEAD") == before
    assert git(root, "branch", "--list") == "* main"
    assert git(root, "diff", "--name-only") == "greeting.txt"
    assert not (root / ".git" / "hooks" / "x").exists()
    assert "hooksPath" not in (root / ".git" / "config").read_text()


@pytest.mark.req("D13", "R2")
async def test_an_agent_that_deletes_everything_deletes_nothing_of_yours(root: Path) -> None:
    async with engine_on(root) as engine:
        text = flow({"coder": command("rm -rf ./* .[!.]*")}, checks=[HELLO])
        run_id = await engine.start(order(text))
        await rests(engine, run_id)
        assert (await ask_of(engine, run_id)).scope == "review:t1"
        await judged(engine, run_id, decision="reject", reason="no")
        assert (await engine.state(run_id)).tasks["t1"].status is TaskStatus.REJECTED
    assert files_of(root) == FILES


@pytest.mark.req("H8")
async def test_a_function_that_removes_its_whole_sandbox_fails_its_task_and_no_other(
    root: Path,
) -> None:
    def destroy(turn: Turn) -> str:
        shutil.rmtree(tree_of(turn).parent)
        return "gone"

    functions = {"coder": destroy, "other": writing("other.txt", "hello\n")}
    tasks = [
        {"id": "t1", "agent": "coder", "description": "Destroy", "scope": ["greeting.txt"]},
        {"id": "t2", "agent": "other", "description": "Write", "scope": ["other.txt"]},
    ]
    async with engine_on(root, functions=functions) as engine:
        text = flow(
            {"coder": PYTHON, "other": PYTHON},
            tasks=tasks,
            checks=[],
            review={"autoApprove": True, "allowUnverified": True},
        )
        run_id = await engine.start(order(text))
        await rests(engine, run_id)
        state = await engine.state(run_id)
        assert state.tasks["t1"].status is TaskStatus.FAILED
        assert state.tasks["t2"].status is TaskStatus.APPLIED
    assert files_of(root) == {**FILES, "other.txt": "hello\n"}


# -- flows that cannot run ------------------------------------------------------------------------

CYCLE = [
    {"id": "t1", "agent": "coder", "description": "One", "depends_on": [{"task": "t2"}]},
    {"id": "t2", "agent": "coder", "description": "Two", "depends_on": [{"task": "t1"}]},
]
NOBODY = [{"id": "t1", "agent": "nobody", "description": "One"}]


@pytest.mark.req("I5", "F1")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 0.2\nagents: [", ["yaml-syntax"]),
        (flow(tasks=CYCLE), ["task-cycle"]),
        (flow(tasks=NOBODY), ["nobody"]),
        (flow().replace('"max_rounds"', '"never"').replace("minutes", "minuets"), ["never", "min"]),
        ("version: 0.2\n", ["no interaction"]),
        (flow().replace("manager_worker", "free_for_all"), ["free_for_all"]),
    ],
)
async def test_a_flow_that_cannot_run_is_refused_with_all_its_problems(
    root: Path, text: str, told: list[str]
) -> None:
    async with open_engine(root) as (engine, store):
        head = store.head
        with pytest.raises(FlowError) as refused:
            await engine.start(order(text))
        assert [word for word in told if word not in str(refused.value)] == []
        assert await engine.runs() == ()
        assert store.head == head
    assert not (root / ".agentcanvas" / "sandboxes").exists()


async def test_a_script_that_is_not_there_is_named_before_anything_starts(root: Path) -> None:
    async with engine_on(root) as engine:
        text = flow({"coder": {"kind": "script", "script": "gone.yaml"}})
        with pytest.raises(AgentCanvasError, match=r"gone\.yaml cannot be read"):
            await engine.start(order(text))
        assert await engine.runs() == ()
