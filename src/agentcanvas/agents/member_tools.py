"""What a member can do in its team during a turn: ask, hand over, tell, post, read, note, recall.

A question may take longer than a client of MCP waits for a tool. Such an answer is fetched later,
by a ticket. Limits, ways and the record are the run's; see ``Aside``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Protocol

import anyio
import anyio.abc
import msgspec
from msgspec import Meta

from agentcanvas.agents.runtime import Outcome, Turn, TurnResult
from agentcanvas.agents.tools import Act, Form, Tools, Used
from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.protocol.records import FailureClass
from agentcanvas.protocol.team import Mate, TeamPost

PATIENCE_S = 40.0
"""Clients of MCP give a tool a minute; some less."""

AskMember = Callable[[Turn, str, str], Awaitable[str]]
"""Asks another member on behalf of a turn: the turn, whom, and what; gives the answer."""


class Aside(Protocol):
    """The run's side: what members may do on their own, within its limits."""

    def members(self, agent: str) -> Sequence[Mate]:
        """Everybody else in the team."""
        ...

    def asking(self, agent: str, to: str, text: str) -> AbstractAsyncContextManager[None]:
        """Hold a question to the team's ways and the run's budget, and put it on record."""
        ...

    async def heard(self, agent: str, by: str, answer: str) -> None:
        """Put on record what was answered."""
        ...

    async def progress(self, agent: str, turn_id: str, step: str, task_id: str = "") -> None:
        """Put on record how a turn gets on."""
        ...

    async def post(self, agent: str, topic: str, text: str) -> TeamPost:
        """Put something on the team's board."""
        ...

    def read(self, topic: str = "") -> Sequence[TeamPost]:
        """What is on the team's board."""
        ...

    async def note(self, agent: str, entry: str, sources: Sequence[str] = ()) -> None:
        """Put something on record for those who come later."""
        ...

    async def recall(self, query: str) -> Sequence[str]:
        """What was put on record about something."""
        ...


class ListMembers(Form, frozen=True, kw_only=True):
    """List the other members of your team, and whom of them you may ask."""


class AskAMember(Form, frozen=True, kw_only=True):
    """Ask another member something and get the answer, or a ticket to fetch it with."""

    to: Annotated[str, Meta(description="The member's id, as list_members gives it.")]
    message: Annotated[str, Meta(description="All that is needed to answer; it sees nothing else.")]


class FetchAnswer(Form, frozen=True, kw_only=True):
    """Fetch the answer to a question that took long."""

    ticket: str


class HandOff(Form, frozen=True, kw_only=True):
    """Hand your whole task over to another member and stop; it starts from the files you leave."""

    to: Annotated[str, Meta(description="The member's id, as list_members gives it.")]
    why: Annotated[str, Meta(min_length=1, description="Why, and what it should know.")]


class ReportProgress(Form, frozen=True, kw_only=True):
    """Say in one line what you are doing, for those who watch."""

    step: str


class PostToBoard(Form, frozen=True, kw_only=True):
    """Put something on the board that the whole team can read."""

    topic: str
    text: str


class ReadBoard(Form, frozen=True, kw_only=True):
    """Read what is on the team's board."""

    topic: Annotated[str, Meta(description="Only this topic; everything if not said.")] = ""


class TakeNote(Form, frozen=True, kw_only=True):
    """Put something on record for those who come later."""

    entry: str
    sources: Annotated[tuple[str, ...], Meta(description="What it follows from.")] = ()


class Recall(Form, frozen=True, kw_only=True):
    """Look up what is on record."""

    query: Annotated[str, Meta(description="Words to look for; everything if empty.")] = ""


class MemberTools:
    """The tools of one member in one run."""

    def __init__(
        self,
        agent: str,
        aside: Aside,
        ask: AskMember,
        clock: Clock,
        *,
        patience_s: float | None = None,
    ) -> None:
        self._agent = agent
        self._aside = aside
        self._ask = ask
        self._clock = clock
        self._patience_s = patience_s
        self._handed: dict[str, HandOff] = {}

    def settled(self, turn: Turn, result: TurnResult) -> TurnResult:
        """What a turn came to: nothing of its own, if the member handed its task over in it."""
        handed = self._handed.pop(turn.turn_id, None)
        if handed is None or result.outcome is Outcome.CANCELLED:
            return result
        return msgspec.structs.replace(
            result,
            outcome=Outcome.FAILED,
            error=f"{self._agent} hands this over to {handed.to}: {handed.why}",
            error_class=FailureClass.HANDED_OFF,
            hand_to=handed.to,
        )

    def _note_hand_off(self, turn: Turn, given: HandOff) -> None:
        self._handed[turn.turn_id] = given

    @asynccontextmanager
    async def during(self, turn: Turn) -> AsyncIterator[Tools]:
        """The tools as long as a turn lasts; questions that are still open then are given up."""
        raised: Exception | None = None
        async with anyio.create_task_group() as tasks:
            try:
                yield _During(
                    self._agent,
                    self._aside,
                    self._ask,
                    turn,
                    tasks=tasks,
                    wait=self._wait,
                    hand_off=self._note_hand_off,
                ).tools
            except Exception as error:  # noqa: BLE001  # raised again below
                raised = error
            finally:
                tasks.cancel_scope.cancel()
        if raised is not None:
            raise raised

    async def _wait(self, question: _Question) -> bool:
        """Wait for an answer as long as it can be waited for; False if it is not there by then."""
        if self._patience_s is None:
            await question.done.wait()
            return True
        async with anyio.create_task_group() as tasks:

            async def give_up() -> None:
                await self._clock.sleep(self._patience_s or 0)
                tasks.cancel_scope.cancel()

            tasks.start_soon(give_up)
            await question.done.wait()
            tasks.cancel_scope.cancel()
        return question.done.is_set()


class _Question:
    """A question under way."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.used = Used("")


class _During:
    def __init__(
        self,
        agent: str,
        aside: Aside,
        ask: AskMember,
        turn: Turn,
        *,
        tasks: anyio.abc.TaskGroup,
        wait: Callable[[_Question], Awaitable[bool]],
        hand_off: Callable[[Turn, HandOff], None],
    ) -> None:
        self._agent = agent
        self._aside = aside
        self._ask = ask
        self._turn = turn
        self._tasks = tasks
        self._wait = wait
        self._note_hand_off = hand_off
        self._questions: dict[str, _Question] = {}
        able: dict[str, tuple[type[Form], Act]] = {
            "list_members": (ListMembers, self._members),
            "ask_member": (AskAMember, self._ask_member),
            "fetch_answer": (FetchAnswer, self._fetch),
            "hand_off": (HandOff, self._hand_off),
            "report_progress": (ReportProgress, self._progress),
            "post_to_board": (PostToBoard, self._post),
            "read_board": (ReadBoard, self._read),
            "take_note": (TakeNote, self._note),
            "recall": (Recall, self._recall),
        }
        self.tools = Tools(able)

    async def _members(self, _: ListMembers) -> Used:
        lines = [
            f"{mate.id} ({mate.role}): {mate.name}"
            + ("" if mate.reachable else "; you may not ask it")
            for mate in self._aside.members(self._agent)
        ]
        return Used("\n".join(lines) or "You are alone.")

    async def _ask_member(self, given: AskAMember) -> Used:
        question = _Question()
        ticket = f"answer-{len(self._questions) + 1}"
        self._questions[ticket] = question
        self._tasks.start_soon(self._carry, question, given)
        return await self._answer(ticket, question)

    async def _fetch(self, given: FetchAnswer) -> Used:
        question = self._questions.get(given.ticket)
        if question is None:
            known = ", ".join(self._questions) or "none"
            return Used(f"There is no ticket {given.ticket}; there is: {known}.", failed=True)
        return await self._answer(given.ticket, question)

    async def _answer(self, ticket: str, question: _Question) -> Used:
        if await self._wait(question):
            return question.used
        return Used(f"No answer yet. Fetch it with fetch_answer, ticket {ticket}.")

    async def _carry(self, question: _Question, given: AskAMember) -> None:
        try:
            async with self._aside.asking(self._agent, given.to, given.message):
                said = await self._ask(self._turn, given.to, given.message)
            await self._aside.heard(self._agent, given.to, said)
            question.used = Used(said or "(no words)")
        except AgentCanvasError as error:
            question.used = Used(str(error), failed=True)
        question.done.set()

    async def _hand_off(self, given: HandOff) -> Used:
        if not self._turn.task_id:
            return Used("Only a task can be handed over; answer the question.", failed=True)
        reachable = [each.id for each in self._aside.members(self._agent) if each.reachable]
        if given.to not in reachable:
            others = ", ".join(reachable) or "nobody"
            return Used(
                f"You cannot hand over to {given.to}; to whom you can: {others}.", failed=True
            )
        self._note_hand_off(self._turn, given)
        return Used(f"{given.to} goes on with it. Say in one sentence where you stopped, and end.")

    async def _progress(self, given: ReportProgress) -> Used:
        turn = self._turn
        await self._aside.progress(self._agent, turn.turn_id, given.step, turn.task_id)
        return Used("Told.")

    async def _post(self, given: PostToBoard) -> Used:
        post = await self._aside.post(self._agent, given.topic, given.text)
        return Used(f"Posted as number {post.number}.")

    async def _read(self, given: ReadBoard) -> Used:
        lines = [
            f"{post.number}. {post.topic}, by {post.by}: {post.text}"
            for post in self._aside.read(given.topic)
        ]
        return Used("\n".join(lines) or "Nothing is there.")

    async def _note(self, given: TakeNote) -> Used:
        await self._aside.note(self._agent, given.entry, given.sources)
        return Used("Noted.")

    async def _recall(self, given: Recall) -> Used:
        return Used("\n".join(await self._aside.recall(given.query)) or "Nothing is on record.")
