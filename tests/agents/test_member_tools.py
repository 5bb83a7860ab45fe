"""The tools a member has in the middle of its turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from agentcanvas.agents.member_tools import PATIENCE_S, MemberTools
from agentcanvas.agents.runtime import Turn, answered
from agentcanvas.agents.tools import Tools, Used
from agentcanvas.clock import VirtualClock
from agentcanvas.errors import ExecutionError, PermissionDenied
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.team import Mate, TeamPost
from tests.agents.conftest import turn


class Team:
    """A run's side that only remembers."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.posts: list[TeamPost] = []

    def members(self, agent: str) -> Sequence[Mate]:
        del agent
        return (Mate("bob", "Bob", "worker"), Mate("eve", "Eve", "reviewer", reachable=False))

    @asynccontextmanager
    async def asking(self, agent: str, to: str, text: str) -> AsyncIterator[None]:
        if to == "eve":
            raise PermissionDenied("coder-1 may not address eve")
        self.told.append(("asks", agent, to, text))
        yield

    async def heard(self, agent: str, by: str, answer: str) -> None:
        self.told.append(("heard", agent, by, answer))

    async def progress(self, agent: str, turn_id: str, step: str, task_id: str = "") -> None:
        self.told.append(("progress", agent, turn_id, step, task_id))

    async def post(self, agent: str, topic: str, text: str) -> TeamPost:
        self.posts.append(TeamPost(len(self.posts) + 1, topic, text, agent))
        return self.posts[-1]

    def read(self, topic: str = "") -> Sequence[TeamPost]:
        return [post for post in self.posts if topic in ("", post.topic)]

    async def note(self, agent: str, entry: str, sources: Sequence[str] = ()) -> None:
        self.told.append(("note", entry, agent, tuple(sources)))

    async def recall(self, query: str) -> Sequence[str]:
        return [each[1] for each in self.told if each[0] == "note" and query in each[1]]


class Answering:
    """Other members; a question that is ``held`` waits until it is let go."""

    def __init__(self) -> None:
        self.held = anyio.Event()
        self.held.set()
        self.given_up = 0

    async def __call__(self, asked: Turn, to: str, text: str) -> str:
        assert asked.run_id
        try:
            await self.held.wait()
        except anyio.get_cancelled_exc_class():
            self.given_up += 1
            raise
        if text == "fail":
            raise ExecutionError(f"{to} did not answer: it broke")
        return f"{to} says: {text}"


@pytest.fixture
def team() -> Team:
    return Team()


@pytest.fixture
def others() -> Answering:
    return Answering()


async def use(tools: Tools, name: str, **arguments: Any) -> Used:
    return await tools.use(name, json.dumps(arguments))


async def test_a_member_asks_another_and_both_are_on_record(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    async with MemberTools("coder-1", team, others, clock).during(turn()) as tools:
        used = await use(tools, "ask_member", to="bob", message="why?")
    assert used == Used("bob says: why?")
    assert team.told == [
        ("asks", "coder-1", "bob", "why?"),
        ("heard", "coder-1", "bob", "bob says: why?"),
    ]


async def test_a_refusal_and_a_failure_come_back_as_sentences(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    async with MemberTools("coder-1", team, others, clock).during(turn()) as tools:
        refused = await use(tools, "ask_member", to="eve", message="why?")
        failed = await use(tools, "ask_member", to="bob", message="fail")
        lacking = await use(tools, "ask_member", to="bob")
    assert refused.failed
    assert "may not address eve" in refused.output
    assert failed == Used("bob did not answer: it broke", failed=True)
    assert lacking.failed
    assert "message" in lacking.output


async def test_an_answer_that_takes_long_is_fetched_by_its_ticket(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    others.held = anyio.Event()
    members = MemberTools("coder-1", team, others, clock, patience_s=PATIENCE_S)
    async with members.during(turn()) as tools:
        first = await use(tools, "ask_member", to="bob", message="why?")
        assert "ticket answer-1" in first.output
        again = await use(tools, "fetch_answer", ticket="answer-1")
        assert "ticket answer-1" in again.output
        others.held.set()
        assert await use(tools, "fetch_answer", ticket="answer-1") == Used("bob says: why?")
        unknown = await use(tools, "fetch_answer", ticket="answer-9")
    assert "there is: answer-1" in unknown.output


async def test_questions_that_are_open_at_the_end_of_a_turn_are_given_up(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    others.held = anyio.Event()
    members = MemberTools("coder-1", team, others, clock, patience_s=PATIENCE_S)
    async with members.during(turn()) as tools:
        await use(tools, "ask_member", to="bob", message="why?")
    assert others.given_up == 1


async def test_the_board_progress_and_notes(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    async with MemberTools("coder-1", team, others, clock).during(turn(task_id="T1")) as tools:
        assert "Nothing is there" in (await use(tools, "read_board")).output
        await use(tools, "post_to_board", topic="api", text="is frozen")
        assert (await use(tools, "read_board", topic="api")).output == (
            "1. api, by coder-1: is frozen"
        )
        await use(tools, "report_progress", step="writing tests")
        await use(tools, "take_note", entry="tests need a locale", sources=["ci.log"])
        assert (await use(tools, "recall", query="locale")).output == "tests need a locale"
        members = await use(tools, "list_members")
    assert members.output == "bob (worker): Bob\neve (reviewer): Eve; you may not ask it"
    assert ("progress", "coder-1", "i1/ask:1", "writing tests", "T1") in team.told


async def test_each_tool_says_what_it_takes(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    async with MemberTools("coder-1", team, others, clock).during(turn()) as tools:
        for tool in tools.offered:
            assert tool.description.endswith(".")
            assert tool.parameters["type"] == "object"


async def test_who_hands_its_task_over_has_not_done_it(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    members = MemberTools("coder-1", team, others, clock)
    asked = turn(task_id="T1")
    async with members.during(asked) as tools:
        assert (await use(tools, "hand_off", to="eve", why="is Rust")).failed
        assert not (await use(tools, "hand_off", to="bob", why="is Rust")).failed
    settled = members.settled(asked, answered(asked, "I stopped at the parser."))
    assert settled.error_class is FailureClass.HANDED_OFF
    assert (settled.hand_to, settled.text) == ("bob", "I stopped at the parser.")
    assert settled.error == "coder-1 hands this over to bob: is Rust"
    assert members.settled(asked, answered(asked, "done")).ok


async def test_a_question_is_answered_and_not_handed_over(
    team: Team, others: Answering, clock: VirtualClock
) -> None:
    async with MemberTools("coder-1", team, others, clock).during(turn()) as tools:
        assert (await use(tools, "hand_off", to="bob", why="is Rust")).failed
