"""What a conversation has said so far, as far as it decides whether the next message makes sense.

A pure state machine (M2): ``check`` judges a message against the state, ``admit`` moves it on.
Who keeps the state, and where, is the hub's affair.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from agentcanvas.protocol.envelope import AgentType, Envelope, to_json
from agentcanvas.protocol.kinds import Kind, Sealed, TaskAccept
from agentcanvas.protocol.scan import exactly
from agentcanvas.protocol.shape import Breach, Rule

_DIRECTIONS = {
    Kind.TASK_ASSIGN: (AgentType.ARCHITECT, AgentType.DEVELOPER),
    Kind.TASK_PROGRESS: (AgentType.DEVELOPER, AgentType.ARCHITECT),
    Kind.TASK_COMPLETE: (AgentType.DEVELOPER, AgentType.ARCHITECT),
    Kind.TASK_FAIL: (AgentType.DEVELOPER, AgentType.ARCHITECT),
    Kind.REVIEW_REQUEST: (AgentType.ARCHITECT, AgentType.REVIEWER),
    Kind.REVIEW_RESULT: (AgentType.REVIEWER, AgentType.ARCHITECT),
}
_ENDS = frozenset({Kind.TASK_COMPLETE, Kind.TASK_FAIL, Kind.TASK_REJECT})


class SessionState:
    """Agents, message ids, open tasks and open reviews of one session."""

    def __init__(self, agents: Iterable[str] | None = None) -> None:
        self._agents = None if agents is None else set(agents)
        self._messages: dict[tuple[str, str], Envelope] = {}
        self._tasks: dict[str, bool] = {}
        self._assignments: dict[str, str] = {}
        self._reviews: dict[str, bool] = {}

    def join(self, agent: str) -> None:
        """From now on this agent is known here."""
        if self._agents is None:
            self._agents = set()
        self._agents.add(agent)

    def is_repeat(self, envelope: Envelope) -> bool:
        """Whether exactly this message was admitted before (M5)."""
        seen = self._messages.get((envelope.sender.id, envelope.id))
        if seen is None or seen == envelope:
            return seen is not None
        # The same words may have been spaced in another way, by the sender or by a store.
        return bool(exactly(to_json(seen)) == exactly(to_json(envelope)))

    def understand(self, envelope: Envelope) -> Envelope:
        """The message as this session means it: an acknowledgment of a task accepts it (C6)."""
        task = self._assignments.get(envelope.reply_to) if envelope.reply_to else None
        if envelope.kind is not Kind.ACK or task is None:
            return envelope
        return msgspec.structs.replace(
            envelope, kind=Kind.TASK_ACCEPT, body=TaskAccept(task_id=task)
        )

    def check(self, envelope: Envelope) -> list[Breach]:
        """Every way in which the message does not fit what was said before."""
        if self.is_repeat(envelope):
            return []
        return [
            *self._check_id(envelope),
            *self._check_agents(envelope),
            *self._check_task(envelope),
            *self._check_review(envelope),
            *check_direction(envelope),
        ]

    def admit(self, envelope: Envelope) -> None:
        """Take the message into the state."""
        self._messages[envelope.sender.id, envelope.id] = envelope
        body = envelope.body
        task = self._task_of(envelope)
        if envelope.kind is Kind.TASK_ASSIGN and task:
            self._tasks[task] = True
            self._assignments[envelope.id] = task
        elif envelope.kind in _ENDS and task in self._tasks:
            self._tasks[task] = False
        review = getattr(body, "review_id", None)
        if isinstance(review, str):
            self._reviews[review] = envelope.kind is Kind.REVIEW_REQUEST

    def _check_id(self, envelope: Envelope) -> list[Breach]:
        if (envelope.sender.id, envelope.id) not in self._messages:
            return []
        return [
            Breach(
                Rule.ID_NEW,
                "/id",
                f"{envelope.sender.id} used the id {envelope.id} before for another message; "
                "give each message its own id",
            )
        ]

    def _check_agents(self, envelope: Envelope) -> list[Breach]:
        if self._agents is None:
            return []
        parties = [("/sender", envelope.sender)]
        if envelope.recipient is not UNSET and not envelope.is_broadcast:
            parties.append(("/recipient", envelope.recipient))
        return [
            Breach(Rule.KNOWN_AGENT, pointer, f"Agent not found: {agent.id}")
            for pointer, agent in parties
            if agent.id not in self._agents
        ]

    def _check_task(self, envelope: Envelope) -> list[Breach]:
        task = self._task_of(envelope)
        if task is None:
            return []
        if envelope.kind is Kind.TASK_ASSIGN and task in self._tasks:
            return [
                Breach(
                    Rule.TASK_NEW,
                    "/body/task_id",
                    f"The task {task} was assigned before; a new attempt needs a new task_id",
                )
            ]
        if envelope.kind in {Kind.TASK_COMPLETE, Kind.TASK_FAIL} and not self._tasks.get(task):
            return [
                Breach(
                    Rule.TASK_ACTIVE,
                    "/body/task_id",
                    f"No active assignment of the task {task}; only an assigned task can end",
                )
            ]
        return []

    def _check_review(self, envelope: Envelope) -> list[Breach]:
        if envelope.kind is not Kind.REVIEW_RESULT or isinstance(envelope.body, Sealed):
            return []
        review = getattr(envelope.body, "review_id", None)
        if self._reviews.get(str(review)):
            return []
        return [
            Breach(
                Rule.REVIEW_ACTIVE,
                "/body/review_id",
                f"No active request for the review {review}; only a requested review has a result",
            )
        ]

    def _task_of(self, envelope: Envelope) -> str | None:
        """ACP names no task: a command's id stands for it, and a response names the command.

        What is encrypted names none to us either; it may answer something else than the task.
        """
        if envelope.task_id is not None:
            return envelope.task_id
        if envelope.kind is Kind.TASK_ASSIGN:
            return envelope.id
        if envelope.kind in _ENDS and isinstance(envelope.reply_to, str):
            unheard_of = None if isinstance(envelope.body, Sealed) else envelope.reply_to
            return self._assignments.get(envelope.reply_to, unheard_of)
        return None


def check_direction(envelope: Envelope) -> list[Breach]:
    """SPEC-022 says who speaks to whom; another direction is noted, not refused (W2)."""
    expected = _DIRECTIONS.get(envelope.kind)
    if expected is None or envelope.recipient is UNSET:
        return []
    actual = (envelope.sender.type, envelope.recipient.type)
    if UNSET in actual or actual == expected:
        return []
    return [
        Breach(
            Rule.DIRECTION,
            "/from_agent/agent_type",
            f"{envelope.kind} goes from {expected[0]} to {expected[1]}, "
            f"not from {actual[0]} to {actual[1]}",
        )
    ]
