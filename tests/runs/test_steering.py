"""A person steps in while a run goes on: ends one turn of it, or says something to an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.app.office import open_premises
from agentcanvas.errors import IllegalTransition, NotFound, ValidationError
from agentcanvas.hub.broker import Record
from agentcanvas.hub.guard import Principal
from agentcanvas.protocol.kinds import Kind
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs import events as e
from agentcanvas.runs import history
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.state import RunStatus, TaskStatus
from agentcanvas.store import Store
from tests.runs.workspaces import engine_on, order, repository, solo

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n"})


async def until(engine: Engine, run_id: str, kind: type) -> None:
    async for entry in engine.events(run_id):
        if isinstance(entry.event, kind):
            return


@pytest.mark.req("U4")
@pytest.mark.parametrize("whose", ["agent", "task"])
async def test_what_an_agent_does_now_can_be_ended_and_the_run_says_so(
    root: Path, whose: str
) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo begun > greeting.txt; sleep 600")))
        await until(engine, run_id, e.TurnStarted)
        agent = "coder" if whose == "agent" else None
        task = "task-1" if whose == "task" else None
        while not await engine.stop_work(run_id, agent=agent, task_id=task):
            pass
        ends = [entry.event async for entry in engine.events(run_id)]
        (turn,) = [event.payload for event in ends if isinstance(event, e.TurnEnded)]
        assert not turn.ok
        assert "stopped by you" in turn.reason
        state = await engine.state(run_id)
        assert state.tasks["task-1"].status is TaskStatus.FAILED
        assert (root / "greeting.txt").read_text() == "hello\n"


@pytest.mark.req("U4")
async def test_what_an_agent_that_is_away_has_not_begun_is_not_begun_when_it_comes(
    root: Path,
) -> None:
    """Else it would read the word to stop first, and then begin what is to be stopped."""
    away = "version: 0.2\nagents:\n  - {id: coder, role: worker, runtime: {kind: remote}}\n"
    pattern = "interactions:\n  - {id: work, patternId: manager_worker, roles: {worker: [coder]}}\n"
    async with open_premises(root) as premises:
        await premises.hub.hub.greet(Principal("coder"))
        run_id = await premises.engine.start(order(away + pattern))
        await until(premises.engine, run_id, e.TurnStarted)
        waiting = await premises.hub.broker.waiting("coder")
        assert [envelope.kind for _, envelope in waiting] == [Kind.TASK_ASSIGN]
        assert await premises.engine.stop_work(run_id, agent="coder")
        await until(premises.engine, run_id, e.TurnEnded)
        assert await premises.hub.broker.waiting("coder") == []
        await premises.engine.stop(run_id)
        events = [entry.event async for entry in premises.engine.events(run_id)]
    (turn,) = [event.payload for event in events if isinstance(event, e.TurnEnded)]
    assert "stopped by you" in turn.reason


async def test_nobody_elses_work_is_ended(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo hello world > greeting.txt")))
        await until(engine, run_id, e.TurnStarted)
        assert await engine.stop_work(run_id, agent="somebody-else") == ()
        await until(engine, run_id, e.RunParked)
        assert (await engine.state(run_id)).status is RunStatus.PARKED


@pytest.mark.parametrize("meanwhile", ["run", "turn"])
async def test_what_is_said_while_a_run_or_a_turn_begins_is_heard(
    root: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    recorded, record = history.recorded, Logbook.record
    said = False

    async def say(run_id: str) -> None:
        nonlocal said
        if not said:
            said = True
            await engine.tell(run_id, "coder", "Mind the umlauts.")

    async def recorded_before(store: Store, stream: str) -> list[e.Recorded]:
        found = await recorded(store, stream)
        if meanwhile == "run":
            await say(stream.rpartition("/")[2])
        return found

    async def record_later(log: Logbook, record_: Record) -> None:
        if meanwhile == "turn" and any(kind == "turn_started" for _, kind, _ in record_.events):
            await say(log.run_id)
        await record(log, record_)

    monkeypatch.setattr(history, "recorded", recorded_before)
    monkeypatch.setattr(Logbook, "record", record_later)
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("date +%N > greeting.txt")))
        await until(engine, run_id, e.RunParked)
        (ask,) = await engine.asks(run_id)
        seen = [entry.seq async for entry in engine.events(run_id, follow=False)][-1]
        verdict = {"decision": "revise", "reason": "again"}
        await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
        async for entry in engine.events(run_id, after=seen):
            if isinstance(entry.event, e.RunParked):
                break
        events = [entry.event async for entry in engine.events(run_id, follow=False)]
    sent = [each.payload.text for each in events if isinstance(each, e.TurnStarted)]
    heard = ["Mind the umlauts." in text for text in sent]
    assert heard == ([True, False] if meanwhile == "run" else [False, True])


async def test_what_a_cut_off_turn_was_told_is_said_again_when_it_is_taken_up(root: Path) -> None:
    slowly = "if grep -q one greeting.txt; then sleep 600; else echo one > greeting.txt; fi"
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(slowly)))
        await until(engine, run_id, e.RunParked)
        await engine.tell(run_id, "coder", "Mind the umlauts.")
        (ask,) = await engine.asks(run_id)
        await engine.answer(ask.ask_id, PersonAnswer({"decision": "revise", "reason": ""}, "you"))
        async for entry in engine.events(run_id):
            if isinstance(entry.event, e.TurnStarted) and entry.event.payload.revision:
                break
    for attempt in (2, 3):
        async with engine_on(root) as engine:
            await engine.resume(run_id)
            async for entry in engine.events(run_id):
                turn = entry.event.payload if isinstance(entry.event, e.TurnStarted) else None
                if turn is not None and turn.attempt == attempt:
                    assert turn.text.count("Mind the umlauts.") == 1
                    break


async def test_an_agent_hears_what_a_person_says_with_its_next_turn_and_only_once(
    root: Path,
) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("date +%N > greeting.txt")))
        await until(engine, run_id, e.RunParked)
        await engine.tell(run_id, "coder", "  Mind the umlauts.  ")
        for reason in ("again", "and again"):
            (ask,) = await engine.asks(run_id)
            seen = [entry.seq async for entry in engine.events(run_id, follow=False)][-1]
            verdict = {"decision": "revise", "reason": reason}
            await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
            async for entry in engine.events(run_id, after=seen):
                if isinstance(entry.event, e.RunParked):
                    break
        events = [entry.event async for entry in engine.events(run_id, follow=False)]
        sent = [each.payload.text for each in events if isinstance(each, e.TurnStarted)]
        said = "A person says to you: Mind the umlauts."
        assert [said in text for text in sent] == [False, True, False]
        assert any(isinstance(event, e.WorkerTold) for event in events)


async def test_words_for_nobody_or_for_a_run_that_is_over_are_refused_with_the_next_step(
    root: Path,
) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo hello world > greeting.txt")))
        await until(engine, run_id, e.RunParked)
        with pytest.raises(NotFound, match="it has: coder"):
            await engine.tell(run_id, "nobody", "hello")
        with pytest.raises(ValidationError, match="empty"):
            await engine.tell(run_id, "coder", "  ")
        await engine.stop(run_id)
        with pytest.raises(IllegalTransition, match="has ended"):
            await engine.tell(run_id, "coder", "hello")
        with pytest.raises(IllegalTransition, match="Nothing is under way"):
            await engine.stop_work(run_id)


async def test_a_window_is_the_end_of_a_run_with_how_it_stands(root: Path) -> None:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo("echo hello world > greeting.txt")))
        await until(engine, run_id, e.RunParked)
        everything = [entry async for entry in engine.events(run_id, follow=False)]
        state = await engine.state(run_id)

        whole = await engine.window(run_id)
        assert (list(whole.events), whole.earlier) == (everything, False)
        assert whole.state == state
        assert [member.id for member in whole.team] == ["coder"]

        end = await engine.window(run_id, last=3)
        assert (list(end.events), end.earlier) == (everything[-3:], True)
        assert end.state == state

        seen = list(end.events)
        while end.earlier:
            end = await engine.window(run_id, last=3, before=seen[0].seq)
            seen[:0] = end.events
        assert seen == everything
