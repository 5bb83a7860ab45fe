"""What members do on their own is held to the run's ways and budget, and outlives a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    NotFound,
    PermissionDenied,
    ResourceError,
    StageEnded,
    ValidationError,
)
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.memory.notebook import Notebook
from agentcanvas.runs import events as e
from agentcanvas.runs.aside import LONGEST, MOST_POSTS, Aside
from agentcanvas.runs.budget import Budget, Meter
from agentcanvas.runs.noting import Noting

FLOW = """
version: 0.2
agents:
  - {id: ann, runtime: {kind: human}}
  - {id: bob, name: Bob the tester, runtime: {kind: human}}
  - {id: eve, runtime: {kind: human}}
"""


class Log:
    """Keeps what is written, as the store would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[e.Recorded] = []

    async def write(self, *events: e.RunEvent) -> None:
        for event in events:
            self.events.append(e.Recorded(len(self.events) + 1, 0, "run", event))


def aside(log: Log, *, edges: Any = (), turns: int | None = None) -> tuple[Aside, Meter]:
    flow = check(read_document(FLOW.encode(), "flow.yaml")).sound()
    clock = VirtualClock()
    meter = Meter(Budget(turns=turns), clock)
    noting = Noting(Notebook(log.folder), "run", clock)
    made = Aside(flow, edges, log, meter=meter, noting=noting, before=log.events)  # type: ignore[arg-type]
    return made, meter


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


async def ask(team: Aside, agent: str, to: str, text: str = "why?") -> None:
    async with team.asking(agent, to, text):
        pass


async def test_a_question_costs_a_turn_and_is_an_event(log: Log) -> None:
    team, meter = aside(log)
    await ask(team, "ann", "bob")
    assert (meter.spent.turns, meter.spent.messages) == (1, 2)
    assert [e.kind_of(entry.event) for entry in log.events] == ["member_asked"]


@pytest.mark.req("D19")
async def test_the_budget_ends_questions_also_after_a_resume(log: Log) -> None:
    team, _ = aside(log, turns=2)
    await ask(team, "ann", "bob")
    team, meter = aside(log, turns=2)
    assert meter.spent.turns == 1
    await ask(team, "ann", "bob")
    with pytest.raises(StageEnded, match="2 turns"):
        await ask(team, "ann", "bob")


@pytest.mark.req("D23")
async def test_nobody_is_asked_where_there_is_no_edge(log: Log) -> None:
    team, _ = aside(log, edges={("ann", "bob")})
    await ask(team, "ann", "bob")
    with pytest.raises(PermissionDenied, match="no edge"):
        await ask(team, "ann", "eve")
    assert [(mate.id, mate.reachable) for mate in team.members("ann")] == [
        ("bob", True),
        ("eve", False),
    ]


@pytest.mark.parametrize("to", ["nobody", "ann", ""])
async def test_who_is_not_there_is_not_asked(to: str, log: Log) -> None:
    team, meter = aside(log)
    with pytest.raises(NotFound, match="there is: bob, eve"):
        await ask(team, "ann", to)
    assert meter.spent.turns == 0


async def test_two_do_not_wait_for_each_other(log: Log) -> None:
    team, _ = aside(log)
    async with team.asking("ann", "bob", "why?"):
        async with team.asking("bob", "eve", "why?"):
            with pytest.raises(ResourceError, match="answer first"):
                await ask(team, "eve", "ann")
        await ask(team, "eve", "bob")
    await ask(team, "bob", "ann")


async def test_the_board_is_there_again_after_a_resume(log: Log) -> None:
    team, _ = aside(log)
    await team.post("ann", "api", "is frozen")
    await team.post("bob", "tests", "are green")
    again, _ = aside(log)
    assert again.read() == team.read()
    assert [post.text for post in again.read("tests")] == ["are green"]
    assert (await again.post("eve", "api", "thawed")).number == 3


async def test_a_flood_of_posts_lets_the_oldest_go(log: Log) -> None:
    team, _ = aside(log)
    for number in range(MOST_POSTS + 5):
        await team.post("ann", "t", str(number))
    assert len(team.read()) == MOST_POSTS
    assert team.read()[0].text == "5"
    assert team.read()[-1].number == MOST_POSTS + 5


@pytest.mark.parametrize("text", ["", "   ", "x" * (LONGEST + 1)])
async def test_nothing_and_too_much_are_refused(text: str, log: Log) -> None:
    team, _ = aside(log)
    with pytest.raises(ValidationError):
        await team.post("ann", "t", text)
    with pytest.raises(ValidationError):
        await team.note("ann", text)
    with pytest.raises(ValidationError):
        await ask(team, "ann", "bob", text)
    assert not log.events


async def test_what_is_noted_is_recalled_by_its_words(log: Log) -> None:
    team, _ = aside(log)
    await team.note("ann", "Tests need a locale", ("ci.log",))
    (found,) = await team.recall("LOCALE")
    assert found.startswith("Tests need a locale")
    assert "ci.log" in found
    assert await team.recall("nothing") == ()
    assert [e.kind_of(entry.event) for entry in log.events] == ["noted"]
