"""How a turn asks another member of its team, over the agent's own connection (D23)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import UNSET

from agentcanvas.agents.runtime import Turn
from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub.client import Connection
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.values import freeze


def asker(connection: Connection, agent_id: str, clock: Clock) -> Callable[..., Awaitable[str]]:
    """Have questions asked as ordinary tasks."""

    async def ask(turn: Turn, to: str, text: str) -> str:
        envelope = Envelope(
            id=new_id(),
            kind=Kind.TASK_ASSIGN,
            time=clock.now(),
            sender=AgentRef(agent_id),
            recipient=AgentRef(to),
            session=turn.run_id,
            body=TaskAssign(task_id=f"{turn.turn_id}/{new_id()[:8]}", input=freeze(text)),
            timeout_ms=round(turn.timeout_s * 1000) if turn.timeout_s else UNSET,
        )
        delivery = await connection.request(envelope, timeout_s=turn.timeout_s)
        await delivery.ack()
        body = delivery.envelope.body
        if not isinstance(body, TaskResult) or delivery.envelope.kind is not Kind.TASK_COMPLETE:
            said = getattr(body, "error_message", UNSET) or getattr(body, "message", UNSET)
            raise AgentCanvasError(f"{to} did not answer: {said or delivery.envelope.kind}")
        return body.summary or ""

    return ask
