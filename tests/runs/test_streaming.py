"""``sync: streaming``: what an agent says before it is done reaches those who hear it (I2)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcanvas.agents import host, parts
from agentcanvas.agents.parts import Send, in_parts
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Turn
from agentcanvas.app.patterns import KNOWN
from agentcanvas.clock import Clock, VirtualClock
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.protocol.records import TextEvent
from agentcanvas.protocol.turns import MOST_PARTS
from agentcanvas.runs import events as e
from agentcanvas.runs.state import RunState, RunStatus
from tests.runs.workspaces import engine_on, order, repository

pytestmark = [pytest.mark.anyio, pytest.mark.req("I1", "I2")]

FLOW = """\
version: 0.2
agents:
  - {id: ann, role: debater, runtime: {kind: python, call: "team:say"}}
  - {id: bob, role: debater, runtime: {kind: python, call: "team:say"}}
  - {id: eve, role: judge, runtime: {kind: python, call: "team:say"}}
interactions:
  - id: debate
    patternId: debate_judge
    roles: {debater: [ann, bob], judge: eve}
    data:
      sync: %s
      termination: [{type: max_rounds, rounds: 1}, {type: timeout_ms, ms: 600000}]
    edges: [{source: ann, target: eve}, {source: bob, target: eve}]
"""
FOR = json.dumps({"choice": "for", "reason": "it is shorter"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"README.md": "# Hi\n"})


def says(emit: Emit, text: str) -> None:
    emit(TextEvent(text=text, **UNSTAMPED))


async def ran(
    root: Path, sync: str, judge: Callable[..., Any], seen: Callable[[e.RunEvent], None]
) -> tuple[RunState, list[e.RunEvent]]:
    def argue(turn: Turn) -> str:
        del turn
        return "because"

    team = {"ann": argue, "bob": argue, "eve": judge}
    async with engine_on(root, functions=team) as engine:
        run_id = await engine.start(order(FLOW % sync, "Tabs?"))
        events = []
        async for entry in engine.events(run_id):
            seen(entry.event)
            events.append(entry.event)
        return await engine.state(run_id), events


async def test_a_part_is_heard_by_those_the_edges_come_from_before_the_answer_is_there(
    root: Path,
) -> None:
    heard = anyio.Event()

    async def judge(turn: Turn, emit: Emit) -> str:
        del turn
        says(emit, "Spaces have a point")
        await heard.wait()  # it is not done before the others have heard this
        return FOR

    def seen(event: e.RunEvent) -> None:
        if isinstance(event, e.MessagePassed) and event.payload.to == "bob":
            heard.set()

    state, events = await ran(root, "streaming", judge, seen)
    assert (state.status, state.reason) == (RunStatus.DONE, "judge_decision: for")
    (part,) = [each for each in events if isinstance(each, e.TurnProgressed)]
    assert (part.actor, part.payload.part, part.payload.step) == ("eve", 1, "Spaces have a point")
    passed = [each for each in events if isinstance(each, e.MessagePassed)]
    told = [(each.actor, each.payload.to, each.payload.text) for each in passed]
    assert told == [("eve", "ann", part.payload.step), ("eve", "bob", part.payload.step)]
    (file,) = (root / ".agentcanvas" / "logs" / "solo").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    steps = [line for line in lines if line["event"] == "step"]
    assert [line["step"] for line in steps] == list(range(1, len(steps) + 1))
    parts_of = [line for line in steps if line["note"] == part.payload.step]
    assert [(line["to"], line["edgeId"]) for line in parts_of] == [("ann", "e1"), ("bob", "")]
    assert part.edge_id == "e1"


async def test_with_req_res_nobody_hears_anything_before_the_answer(root: Path) -> None:
    async def judge(turn: Turn, emit: Emit) -> str:
        del turn
        says(emit, "Spaces have a point")
        return FOR

    state, events = await ran(root, "req_res", judge, lambda _: None)
    assert state.status is RunStatus.DONE
    assert not [each for each in events if isinstance(each, e.TurnProgressed | e.MessagePassed)]


@pytest.mark.req("D19")
async def test_a_flood_of_parts_is_cut_off_and_stays_within_the_bound_of_the_flow(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_APART_S", 0)
    monkeypatch.setattr(parts, "MOST_PARTS", 99)  # an agent that keeps to nothing
    sent: list[str] = []
    news = anyio.Event()

    @asynccontextmanager
    async def counted(send: Send, clock: Clock) -> AsyncIterator[Emit]:
        async def sends(said: str) -> None:
            nonlocal news
            await send(said)
            sent.append(said)
            news.set()
            news = anyio.Event()

        async with in_parts(sends, clock) as emit:
            yield emit

    monkeypatch.setattr(host, "in_parts", counted)

    async def judge(turn: Turn, emit: Emit) -> str:
        del turn
        for number in range(MOST_PARTS + 8):
            says(emit, f"part {number}")
            while len(sent) <= number:
                await news.wait()
        return FOR

    state, events = await ran(root, "streaming", judge, lambda _: None)
    assert state.status is RunStatus.DONE
    assert len(sent) == MOST_PARTS + 8
    passed = [each.payload.part for each in events if isinstance(each, e.TurnProgressed)]
    assert passed == list(range(1, MOST_PARTS + 1))
    assert len([each for each in events if isinstance(each, e.MessagePassed)]) == 2 * MOST_PARTS
    flow = check(read_document((FLOW % "streaming").encode(), "f.yaml"), KNOWN).sound()
    total = bounds(flow, KNOWN).total
    assert total.turns == 4
    assert total.messages == 2 * 4 + 4 * MOST_PARTS * 2


async def test_an_agent_that_never_stops_talking_sends_a_bounded_number_of_parts() -> None:
    clock = VirtualClock()
    sent: list[str] = []

    async def send(said: str) -> None:
        sent.append(said)

    async with in_parts(send, clock) as emit:
        for _ in range(50):
            says(emit, "more " * 1_000)
            await clock.sleep(0.5)
    assert len(sent) == MOST_PARTS
    assert max(map(len, sent)) <= 2_000
