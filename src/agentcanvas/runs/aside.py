"""What members may do on their own while a turn of theirs goes on, within the run's limits.

They ask each other, tell how they get on, and put things on the team's board or on record. None of
it is a step of a pattern, so a pattern never sees it and a replay does not depend on it; all of it
is an event, and a question costs what a turn costs (D19). The way a question takes is the hub's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from agentcanvas.errors import NotFound, PermissionDenied, ResourceError, ValidationError
from agentcanvas.flows.model import Flow
from agentcanvas.protocol.team import Mate, TeamPost
from agentcanvas.runs import events as e
from agentcanvas.runs.budget import Meter
from agentcanvas.runs.logbook import Logbook
from agentcanvas.runs.noting import Noting

LONGEST = 20_000
"""Characters of what is posted, noted or asked at one time."""
MOST_POSTS = 1_000
"""Of a board; the oldest go first."""
_SHOWN = 2_000


class Aside:
    """One run's side of it; nothing here is ever asked by a pattern."""

    def __init__(
        self,
        flow: Flow,
        edges: Iterable[tuple[str, str]],
        logbook: Logbook,
        *,
        meter: Meter,
        noting: Noting,
        before: Iterable[e.Recorded] = (),
    ) -> None:
        """Go on with what was said in earlier lives of the run."""
        self._agents = {agent.id: agent for agent in flow.agents}
        self._edges = frozenset(edges)
        self._logbook = logbook
        self._meter = meter
        self._noting = noting
        self._waits_for: dict[str, str] = {}
        self._posts: list[TeamPost] = []
        for entry in before:
            match entry.event:
                case e.MemberAsked():
                    meter.count(turns=1, messages=2)
                case e.TeamPosted(actor=by, payload=said):
                    self._posts.append(TeamPost(said.number, said.topic, said.text, by))
                case _:
                    pass

    def members(self, agent: str) -> tuple[Mate, ...]:
        """Everybody else in the team."""
        return tuple(
            Mate(other.id, other.label, other.role, self._may_ask(agent, other.id))
            for other in self._agents.values()
            if other.id != agent
        )

    @asynccontextmanager
    async def asking(self, agent: str, to: str, text: str) -> AsyncIterator[None]:
        """Hold a question to the team's ways and the run's budget, and put it on record.

        Two who wait for each other would wait for ever, since each has one head.
        """
        _check_length(text)
        self._require_way(agent, to)
        self._require_no_circle(agent, to)
        self._meter.spend_turn()
        self._waits_for[agent] = to
        try:
            asked = e.MemberAsked(
                actor=agent,
                provenance=e.Provenance.WORKER_PROPOSAL,
                payload=e.MemberQuestion(to, text[:_SHOWN]),
            )
            await self._logbook.write(asked)
            yield
        finally:
            del self._waits_for[agent]

    async def heard(self, agent: str, by: str, answer: str) -> None:
        """Put on record what was answered."""
        answered = e.MemberAnswered(
            actor=by,
            provenance=e.Provenance.WORKER_PROPOSAL,
            payload=e.MemberReply(agent, answer[:_SHOWN]),
        )
        await self._logbook.write(answered)

    async def progress(self, agent: str, turn_id: str, step: str, task_id: str = "") -> None:
        """Put on record how a turn gets on."""
        _check_length(step)
        told = e.TurnProgressed(
            actor=agent,
            provenance=e.Provenance.WORKER_PROPOSAL,
            payload=e.Progress(turn_id=turn_id, step=step, task_id=task_id),
        )
        await self._logbook.write(told)

    async def post(self, agent: str, topic: str, text: str) -> TeamPost:
        """Put something on the team's board."""
        _check_length(text)
        _check_length(topic)
        number = self._posts[-1].number + 1 if self._posts else 1
        posted = TeamPost(number, topic, text, agent)
        self._posts.append(posted)
        del self._posts[:-MOST_POSTS]
        event = e.TeamPosted(
            actor=agent,
            provenance=e.Provenance.WORKER_PROPOSAL,
            payload=e.PostedByMember(number, topic, text),
        )
        await self._logbook.write(event)
        return posted

    def read(self, topic: str = "") -> tuple[TeamPost, ...]:
        """What is on the team's board, under one topic or all, the oldest first."""
        return tuple(post for post in self._posts if not topic or post.topic == topic)

    async def note(self, agent: str, entry: str, sources: Sequence[str] = ()) -> None:
        """Put something on record for those who come later."""
        _check_length(entry)
        key = f"aside/{agent}/{entry}"
        events = await self._noting.note(key, entry, sources, by=agent, interaction=None)
        await self._logbook.write(*events)

    async def recall(self, query: str) -> tuple[str, ...]:
        """What was put on record about something, in this run or before."""
        return await self._noting.recall(query)

    # ---------------------------------------------------------------------------------------------

    def _may_ask(self, agent: str, to: str) -> bool:
        return not self._edges or (agent, to) in self._edges

    def _require_way(self, agent: str, to: str) -> None:
        if to not in self._agents or to == agent:
            others = ", ".join(mate.id for mate in self.members(agent) if mate.reachable)
            raise NotFound(f"There is no member {to} to ask; there is: {others or 'nobody'}.")
        if not self._may_ask(agent, to):
            raise PermissionDenied(
                f"{agent} may not address {to}: the flow has no edge from one to the other."
            )

    def _require_no_circle(self, agent: str, to: str) -> None:
        waiting: str | None = to
        while waiting is not None:
            if waiting == agent:
                raise ResourceError(
                    f"{to} waits for an answer of {agent}, and could not answer before it has one; "
                    "answer first."
                )
            waiting = self._waits_for.get(waiting)


def _check_length(text: str) -> None:
    if not text.strip() or len(text) > LONGEST:
        raise ValidationError(f"Say something, in at most {LONGEST:,} characters.")
