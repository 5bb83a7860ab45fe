"""A limit of a service ends a turn, not the task: somebody goes on, or the run waits it out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from agentcanvas.agents.runtime import Turn, TurnResult, failed
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.turns import Report
from agentcanvas.runs import events as e
from agentcanvas.runs.attendance import Attendance
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.state import RunState, RunStatus
from tests.runs.test_faults import answer_to, send_past_the_host
from tests.runs.workspaces import engine_on, order, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("C1", "D18")]

FLOW = """\
version: 0.2
agents:
  - {{id: coder, role: worker, {fallback}runtime: {{kind: python, call: "x:y"}}}}
  - {{id: other, role: worker, runtime: {{kind: python, call: "x:y"}}}}
interactions:
  - id: work
    patternId: manager_worker
    roles: {{worker: coder}}
    data: {{termination: [{{type: max_rounds, rounds: 1}}]}}
checks:
  - {{name: greeting, command: grep -q world greeting.txt}}
review: {{reviewer: person}}
budgets: {{minutes: {minutes}}}
"""

Worker = Callable[[Turn], str | TurnResult]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n", "notes.txt": "none\n"})


def limited(
    why: FailureClass = FailureClass.QUOTA, retry_at_ms: int | None = None, text: str = ""
) -> TurnResult:
    result = failed("The usage limit is reached.", why, text=text)
    return structs.replace(result, retry_at_ms=retry_at_ms)


def write(turn: Turn, name: str, text: str) -> None:
    assert turn.place is not None
    (turn.place.tree / name).write_text(text)


async def play(
    root: Path, coder: Worker, other: Worker, *, fallback: bool = False, minutes: int = 30
) -> tuple[RunState, list[e.RunEvent]]:
    said = "fallback: other, " if fallback else ""
    flow = FLOW.format(fallback=said, minutes=minutes)
    async with engine_on(root, functions={"coder": coder, "other": other}) as engine:
        run_id = await engine.start(order(flow))
        return await see_through(engine, run_id)


async def see_through(engine: Engine, run_id: str) -> tuple[RunState, list[e.RunEvent]]:
    while True:
        events = [entry.event async for entry in engine.events(run_id)]
        asks = await engine.asks(run_id)
        if not asks:
            return await engine.state(run_id), events
        for ask in asks:
            await engine.answer(ask.ask_id, PersonAnswer({"decision": "apply"}, ask.person))


def limits(events: list[e.RunEvent]) -> list[e.Limit]:
    return [event.payload for event in events if isinstance(event, e.LimitReached)]


async def test_a_fallback_goes_on_with_what_was_said_and_changed_by_then(root: Path) -> None:
    heard: list[str] = []

    def coder(turn: Turn) -> TurnResult:
        write(turn, "notes.txt", "half done\n")
        return limited(text="I have begun with the notes.")

    def other(turn: Turn) -> str:
        heard.append(turn.prompt)
        assert turn.place is not None
        assert (turn.place.tree / "notes.txt").read_text() == "half done\n"
        write(turn, "greeting.txt", "hello world\n")
        return "done"

    state, events = await play(root, coder, other, fallback=True)
    assert state.status is RunStatus.DONE
    assert (root / "notes.txt").read_text() == "half done\n"
    assert (root / "greeting.txt").read_text() == "hello world\n"
    (limit,) = limits(events)
    assert (limit.agent, limit.to, limit.task_id) == ("coder", "other", "task-1")
    assert (root / limit.partial).read_text().startswith("diff --git a/notes.txt")
    (prompt,) = heard
    assert "coder began with this task and could not finish it" in prompt
    assert "I have begun with the notes." in prompt
    assert "Greet the world" in prompt
    applied = [event for event in events if isinstance(event, e.ProposalLanded)]
    assert len(applied) == 1
    submitted = [event.actor for event in events if isinstance(event, e.ProposalSubmitted)]
    assert submitted == ["other"]


async def test_a_revision_goes_to_whoever_has_the_work_now(root: Path) -> None:
    turns: list[str] = []

    def coder(turn: Turn) -> TurnResult:
        turns.append("coder")
        return limited()

    def other(turn: Turn) -> str:
        turns.append("other")
        write(turn, "greeting.txt", f"hello world {len(turns)}\n")
        return "done"

    flow = FLOW.format(fallback="fallback: other, ", minutes=30)
    async with engine_on(root, functions={"coder": coder, "other": other}) as engine:
        run_id = await engine.start(order(flow))
        async for _ in engine.events(run_id):
            pass
        (ask,) = await engine.asks(run_id)
        revise = {"decision": "revise", "reason": "again"}
        await engine.answer(ask.ask_id, PersonAnswer(revise, ask.person))
        state, _ = await see_through(engine, run_id)
    assert state.status is RunStatus.DONE
    assert turns == ["coder", "other", "other"]
    assert (root / "greeting.txt").read_text() == "hello world 3\n"


async def test_without_a_fallback_the_run_waits_for_the_end_that_was_told(root: Path) -> None:
    tries: list[str] = []
    soon = SystemClock().now_ms() + 300

    def coder(turn: Turn) -> str | TurnResult:
        assert turn.place is not None
        tries.append((turn.place.tree / "notes.txt").read_text())
        write(turn, "notes.txt", "half done\n")
        if len(tries) == 1:
            return limited(FailureClass.RATE_LIMIT, soon)
        write(turn, "greeting.txt", "hello world\n")
        return "done"

    state, events = await play(root, coder, lambda _: "never")
    assert state.status is RunStatus.DONE
    assert tries == ["none\n", "half done\n"]
    (limit,) = limits(events)
    assert limit.to == ""
    assert (limit.until_ms or 0) >= soon
    assert SystemClock().now_ms() >= soon


async def test_a_quota_whose_end_nobody_knows_ends_the_task_with_its_reason(root: Path) -> None:
    state, events = await play(root, lambda _: limited(), lambda _: "never")
    assert state.status is not RunStatus.DONE
    assert limits(events) == []
    (failure,) = [event.payload for event in events if isinstance(event, e.TaskFailed)]
    assert failure.reason == "The usage limit is reached."


async def test_two_that_have_both_reached_their_limits_do_not_go_on_for_ever(root: Path) -> None:
    turns: list[str] = []

    def at_its_limit(turn: Turn) -> TurnResult:
        turns.append(turn.agent_id)
        return limited()

    state, events = await play(root, at_its_limit, at_its_limit, fallback=True)
    assert state.status is not RunStatus.DONE
    assert turns == ["coder", "other"]
    assert len(limits(events)) == 1


async def test_a_wait_goes_on_after_the_process_was_gone(root: Path) -> None:
    tries: list[int] = []
    end = SystemClock().now_ms() + 1_500

    def coder(turn: Turn) -> str | TurnResult:
        tries.append(1)
        if len(tries) == 1:
            return limited(FailureClass.QUOTA, end)
        write(turn, "greeting.txt", "hello world\n")
        return "done"

    functions = {"coder": coder, "other": lambda _: "never"}
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(FLOW.format(fallback="", minutes=30)))
        async for entry in engine.events(run_id):
            if isinstance(entry.event, e.LimitReached):
                break
    async with engine_on(root, functions=functions) as engine:
        await engine.resume(run_id)
        state, events = await see_through(engine, run_id)
    assert state.status is RunStatus.DONE
    assert len(limits(events)) == 1
    assert len(tries) == 2
    assert SystemClock().now_ms() >= end


def test_a_run_is_held_up_only_when_nothing_else_is_under_way() -> None:
    attendance = Attendance(VirtualClock())
    with attendance.at_work():
        with attendance.held_up("turn-1", "the end of a limit"):
            seen = [attendance.is_held_up, attendance.is_parked]
            with attendance.at_work():
                seen.append(attendance.is_held_up)
        seen.append(attendance.is_held_up)
    assert seen == [True, False, False, False]


async def test_the_first_answer_of_the_first_is_kept_and_a_later_one_is_refused(root: Path) -> None:
    def other(turn: Turn) -> str:
        write(turn, "greeting.txt", "hello world\n")
        return "done"

    flow = FLOW.format(fallback="fallback: other, ", minutes=30)
    functions = {"coder": lambda _: limited(text="Half of it."), "other": other}
    async with engine_on(root, functions=functions) as engine:
        run_id = await engine.start(order(flow))
        before = [entry async for entry in engine.events(run_id)]
        first = next(x.event.payload for x in before if isinstance(x.event, e.TurnStarted))
        late = answer_to(first, run_id, "coder", Report(text="I did it after all."))
        refusal = await send_past_the_host(engine, late)
        state, events = await see_through(engine, run_id)
    assert state.status is RunStatus.DONE
    assert len([event for event in events if isinstance(event, e.ProposalLanded)]) == 1
    assert len([event for event in events if isinstance(event, e.TurnEnded)]) == 2
    assert "only an assigned task can end" in refusal
    ended = [event.payload for event in events if isinstance(event, e.TurnEnded)]
    assert (ended[0].ok, ended[0].text) == (False, "Half of it.")


async def test_a_member_that_hands_its_task_over_is_followed_by_whom_it_named(root: Path) -> None:
    heard: list[str] = []

    def coder(turn: Turn) -> TurnResult:
        write(turn, "notes.txt", "half done\n")
        result = failed("Coder hands this over to other: it is Rust", FailureClass.HANDED_OFF)
        return structs.replace(result, hand_to="other")

    def other(turn: Turn) -> str:
        heard.append(turn.prompt)
        assert turn.place is not None
        assert (turn.place.tree / "notes.txt").read_text() == "half done\n"
        write(turn, "greeting.txt", "hello world\n")
        return "done"

    state, events = await play(root, coder, other)
    assert state.status is RunStatus.DONE
    assert "it is Rust" in heard[0]
    assert [(limit.agent, limit.to) for limit in limits(events)] == [("coder", "other")]


@pytest.mark.parametrize("to", ["nobody", "coder", ""])
async def test_a_task_handed_to_nobody_fails_with_the_reason(root: Path, to: str) -> None:
    def coder(turn: Turn) -> TurnResult:
        del turn
        result = failed("Coder hands this over: it is Rust", FailureClass.HANDED_OFF)
        return structs.replace(result, hand_to=to)

    state, events = await play(root, coder, lambda _: "never asked")
    assert state.status is not RunStatus.DONE
    assert "it is Rust" in state.reason
    assert not limits(events)
