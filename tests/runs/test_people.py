"""One inbox for people: asked once, answered once, on record before anybody acts on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.app.office import open_engine
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import AgentCanvasError, DeadlineExceeded
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.hub.guard import Principal, PrincipalKind
from agentcanvas.hub.hub import Hub
from agentcanvas.hub.person_inbox import PersonInbox
from agentcanvas.hub.transports.memory import connect
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs import history
from agentcanvas.runs.attendance import Attendance
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.people import People, engine_of
from agentcanvas.runs.register import Register
from agentcanvas.runs.snapshots import Account
from agentcanvas.runs.state import RunStatus
from agentcanvas.store import Store
from tests.chaos.driving import (
    PYTHON,
    ask_of,
    flow,
    judged,
    kinds,
    order,
    payloads,
    rests,
    so_far,
    writing,
)
from tests.runs.workspaces import engine_on, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("D24", "D25")]

CODER = {"coder": writing("greeting.txt", "hello\n")}
TWO = {"ada": writing("a.txt", "hello\n"), "ben": writing("b.txt", "hello\n")}
TASKS = (
    {"id": "t1", "agent": "ada", "description": "Write a.txt", "scope": ["a.txt"]},
    {"id": "t2", "agent": "ben", "description": "Write b.txt", "scope": ["b.txt"]},
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hi\n"})


async def test_something_is_asked_once_over_many_resumes(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        first = await ask_of(engine, run_id)
    for _ in range(3):
        async with engine_on(root, functions=CODER) as engine:
            await engine.resume(run_id)
            await parked_again(engine, run_id)
            assert await ask_of(engine, run_id) == first
    async with engine_on(root, functions=CODER) as engine:
        await judged(engine, run_id, decision="apply")
        happened = Counter(kinds(await so_far(engine, run_id)))
        assert (happened["person_asked"], happened["person_answered"]) == (1, 1)
        assert (happened["turn_started"], happened["proposal_applied"]) == (1, 1)
        assert (await engine.state(run_id)).status is RunStatus.DONE


async def parked_again(engine: Engine, run_id: str) -> None:
    """Return when a resumed run waits for its person again."""
    assert "run_ended" not in kinds(await rests(engine, run_id))


async def test_an_answer_is_on_record_before_anybody_acts_on_it(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        after = kinds(await judged(engine, run_id, decision="apply", reason="fine"))
        assert after.index("person_answered") < after.index("apply_started")
        answered = payloads(await so_far(engine, run_id), e.AnsweredByPerson)
        assert [(said.person, said.answer) for said in answered] == [("you", "apply: fine")]


@pytest.mark.req("V1")
async def test_what_is_followed_of_an_agent_ends_while_its_run_waits_for_a_person(
    root: Path,
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        followed = [each async for each in engine.transcript(run_id, follow=True)]
        assert followed == [each async for each in engine.transcript(run_id)]
        assert followed, "it has worked before it waits"
        assert (await engine.state(run_id)).status is RunStatus.PARKED
        await judged(engine, run_id, decision="apply", reason="fine")
        assert [each async for each in engine.transcript(run_id, follow=True)][: len(followed)] == (
            followed
        )


async def test_what_is_followed_of_an_agent_ends_with_its_run_and_not_with_whoever_tidies_up(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = anyio.Event()
    account = Register.account

    async def held(self: Register, run_id: str, *, keep_after: int | None = None) -> Account:
        if keep_after is not None:  # the last thing that is done for a run, after its end is said
            await followed.wait()
        return await account(self, run_id, keep_after=keep_after)

    monkeypatch.setattr(Register, "account", held)
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(judged, engine, run_id, decision="apply", reason="fine"))
            while "run_ended" not in kinds(await rests(engine, run_id)):
                await anyio.lowlevel.checkpoint()
            try:
                with anyio.fail_after(30):
                    said = [each async for each in engine.transcript(run_id, follow=True)]
            finally:
                followed.set()
        assert said == [each async for each in engine.transcript(run_id)]


@pytest.mark.req("U2")
async def test_comments_on_lines_reach_the_worker_with_the_verdict(root: Path) -> None:
    comment = {"path": "greeting.txt", "line": 1, "quote": "hello", "text": "Say it louder."}
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        before = await rests(engine, run_id)
        ask = await ask_of(engine, run_id)
        verdict = {"decision": "revise", "reason": "Nearly.", "comments": [comment]}
        await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
        after = await rests(engine, run_id, before[-1].seq)
        (sent,) = payloads(after, e.TurnStarted)
        said = "Nearly.\n\ngreeting.txt:1\n> hello\nSay it louder."
        assert said in sent.text
        assert [one.reason for one in payloads(after, e.ProposalReviewed)] == [said]


@pytest.mark.req("U2")
async def test_comments_that_cannot_be_read_are_asked_for_again(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        before = await rests(engine, run_id)
        ask = await ask_of(engine, run_id)
        verdict = {"decision": "revise", "reason": "x", "comments": [{"path": "a", "line": -4}]}
        await engine.answer(ask.ask_id, PersonAnswer(verdict, "you"))
        after = await rests(engine, run_id, before[-1].seq)
        assert "turn_started" not in kinds(after)
        assert (await ask_of(engine, run_id)).problem


async def test_an_answer_that_nobody_could_take_up_yet_is_not_lost(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        ask = await ask_of(engine, run_id)
    async with open_engine(root, functions=CODER) as (engine, store):
        head = store.head
        # The answer alone, as if the process had ended right after it.
        await engine._inbox.answer(["you"], ask.ask_id, PersonAnswer({"decision": "apply"}, "you"))
        assert store.head > head
        assert await engine.asks(run_id) == ()
    async with engine_on(root, functions=CODER) as engine:
        await rests(engine, run_id)
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert (root / "greeting.txt").read_text() == "hello\n"


async def test_an_answer_to_something_gone_is_refused_with_a_sentence(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        ask = await ask_of(engine, run_id)
        await judged(engine, run_id, decision="apply")
        before = await so_far(engine, run_id)
        for gone in (ask.ask_id, "run_1/nothing"):
            with pytest.raises(AgentCanvasError, match="Nothing waits for an answer under"):
                await engine.answer(gone, PersonAnswer({"decision": "reject"}, "you"))
        assert await so_far(engine, run_id) == before


async def test_two_asks_wait_at_once_and_are_answered_in_any_order(root: Path) -> None:
    async with engine_on(root, functions=TWO) as engine:
        text = flow({"ada": PYTHON, "ben": PYTHON}, tasks=TASKS, checks=[])
        run_id = await engine.start(order(text))
        await rests(engine, run_id)
        asks = {ask.scope: ask for ask in await engine.asks(run_id)}
        assert set(asks) == {"review:t1", "review:t2"}
        seen = await so_far(engine, run_id)
        apply = PersonAnswer({"decision": "apply"}, "you")
        await engine.answer(asks["review:t2"].ask_id, apply)
        await rests(engine, run_id, seen[-1].seq)
        assert [ask.scope for ask in await engine.asks(run_id)] == ["review:t1"]
        assert (await engine.state(run_id)).status is RunStatus.PARKED
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        happened = Counter(kinds(await so_far(engine, run_id)))
        assert (happened["person_asked"], happened["person_answered"]) == (2, 2)
        assert happened["proposal_applied"] == 2
    assert (root / "a.txt").read_text() == (root / "b.txt").read_text() == "hello\n"


@pytest.mark.parametrize("ended_by", ["the engine that runs it", "another one"])
async def test_a_stop_withdraws_what_was_asked_and_a_resume_asks_again(
    root: Path, ended_by: str
) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        if ended_by == "the engine that runs it":
            await engine.stop(run_id)
    async with engine_on(root, functions=CODER) as engine:
        if ended_by != "the engine that runs it":
            await engine.stop(run_id)
        assert await engine.asks() == ()
        state = await engine.state(run_id)
        assert (state.status, state.reason) == (RunStatus.STOPPED, "stopped by you")
        seen = await so_far(engine, run_id)
        await engine.resume(run_id)
        await rests(engine, run_id, seen[-1].seq)
        assert (await ask_of(engine, run_id)).scope == "review:t1"
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
        assert Counter(kinds(await so_far(engine, run_id)))["turn_started"] == 1


async def test_a_verdict_that_says_nothing_is_asked_for_again(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await engine.start(order(flow()))
        await rests(engine, run_id)
        await judged(engine, run_id, decision="perhaps")
        again = await ask_of(engine, run_id)
        assert again.problem
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE


# -- deadlines ------------------------------------------------------------------------------------

RUN = "run_20260219_100000"
STREAM = f"faults/{RUN}"
HOUR_MS = 3_600_000


class Desk:
    """People as a run has them, over a hub of their own; ``life`` begins another one."""

    def __init__(self, store: Store, broker: EmbeddedBroker, hub: Hub, clock: VirtualClock) -> None:
        self.inbox = PersonInbox(hub, broker, store, clock)
        self.store = store
        self.clock = clock
        self._broker = broker
        self._hub = hub

    @asynccontextmanager
    async def life(self) -> AsyncIterator[People]:
        engine = Principal(engine_of(RUN), PrincipalKind.ENGINE)
        logbook = Logbook(self._broker, RUN, STREAM, self.clock)
        async with connect(self._hub, engine) as connection:
            yield People(
                self._hub,
                connection,
                logbook,
                attendance=Attendance(self.clock),
                clock=self.clock,
                before=await self.events(),
            )

    async def events(self) -> list[e.Recorded]:
        return await history.recorded(self.store, STREAM)

    def ask(self, **more: Any) -> PersonAsk:
        """A question with an hour's time."""
        return PersonAsk(
            ask_id="q1",
            person="you",
            run_id=RUN,
            agent_id="coder",
            scope="task:t1",
            text="Yes?",
            deadline_ms=self.clock.now_ms() + HOUR_MS,
            **more,
        )

    async def answer(self, content: object) -> None:
        await self.inbox.answer(["you"], "q1", PersonAnswer(content, "you"))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = VirtualClock()
    async with (
        await Store.open(tmp_path / "agentcanvas.db", clock=clock) as store,
        EmbeddedBroker.open(store, clock=clock) as broker,
        Hub.open(broker, store, clock=clock) as hub,
    ):
        await hub.sessions.open(RUN, members=["person:you"], owner=engine_of(RUN))
        yield Desk(store, broker, hub, clock)


async def test_a_deadline_takes_the_default_and_the_question_away(desk: Desk) -> None:
    async with desk.life() as people:
        started = desk.clock.monotonic()
        answer = await people.ask(desk.ask(default="no"))
        assert answer == PersonAnswer("no", "")
        assert desk.clock.monotonic() - started == 3600
        assert await desk.inbox.asks(["you"]) == ()
        with pytest.raises(AgentCanvasError, match="Nothing waits for an answer under q1"):
            await desk.answer("yes")
    assert kinds(await desk.events()) == ["person_asked", "person_answered"]
    async with desk.life() as people:  # another life hears the same
        assert (await people.ask(desk.ask(default="no"))).content == "no"
    assert len(await desk.events()) == 2


async def test_without_a_default_a_deadline_is_an_error_that_names_the_question(
    desk: Desk,
) -> None:
    async with desk.life() as people:
        with pytest.raises(DeadlineExceeded, match=r"you did not answer in time: Yes\?"):
            await people.ask(desk.ask())
        assert await desk.inbox.asks(["you"]) == ()


async def test_an_answer_in_time_holds_though_nobody_heard_it_before_the_deadline(
    desk: Desk,
) -> None:
    ask = desk.ask(default="no")
    async with desk.life() as people, anyio.create_task_group() as tasks:
        tasks.start_soon(people.ask, ask)
        await desk.store.wait_beyond(desk.store.head)
        tasks.cancel_scope.cancel()  # the process ends
    await desk.answer("yes")
    await desk.clock.advance(2 * 3600)
    async with desk.life() as people:
        assert (await people.ask(ask)).content == "yes"
    assert kinds(await desk.events()) == ["person_asked", "person_answered"]


async def test_a_deadline_that_passes_while_nobody_runs_takes_the_default_at_once(
    desk: Desk,
) -> None:
    ask = desk.ask(default="no")
    async with desk.life() as people, anyio.create_task_group() as tasks:
        tasks.start_soon(people.ask, ask)
        await desk.store.wait_beyond(desk.store.head)
        tasks.cancel_scope.cancel()
    await desk.clock.advance(2 * 3600)
    started = desk.clock.monotonic()
    async with desk.life() as people:
        assert (await people.ask(ask)).content == "no"
    assert desk.clock.monotonic() == started
