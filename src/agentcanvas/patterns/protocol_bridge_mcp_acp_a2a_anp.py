"""protocol_bridge_mcp_acp_a2a_anp (P20): a request crosses to agents that speak otherwise.

The bridge spells the request of the first local agent in the dialect of each other one, hands it
over, and spells the answer, good or bad, back. On the way there and back a message keeps its id,
its correlation and, where the work failed, the class of the failure; the bridge compares, and says
by name what was lost. The wire forms are on the board. It carries the three message dialects;
protocols outside the hub have doors of their own.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from agentcanvas.pattern import Answer, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import encode, lost_on_the_way
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import step_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.timestamps import format_ms
from agentcanvas.protocol.values import Raw

LOCAL, BRIDGE = "local", "bridge"
WIRE = "wire"


class Options(msgspec.Struct, frozen=True):
    """``dialects`` are what the other agents speak, in their order and from the start again."""

    dialects: Annotated[tuple[DialectName, ...], Meta(min_length=1)] = tuple(DialectName)


class ProtocolBridge:
    """Spell, hand over, spell back."""

    id = "protocol_bridge_mcp_acp_a2a_anp"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(LOCAL, "the first asks, the others answer in their dialects", least=2, most=None),
        Role(BRIDGE, "translates; built in", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every other agent answers, and the first hears it."""
        del options
        others = max(1, size.players.get(LOCAL, 2) - 1)
        return Most(others * size.ask, told=others)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Cross the bridge once for each other agent."""
        first, *others = cast[LOCAL]
        results: list[str] = []
        lost: list[str] = []
        failed: list[str] = []
        conversation = step_id(request, f"{first}/{await stage.now()}", 1)
        for number, other in enumerate(others):
            dialect = options.dialects[number % len(options.dialects)]
            asked = _asked(first, other, request, conversation, format_ms(await stage.now()))
            wire = await _cross(stage, asked, dialect, lost)
            words = stage.words(f"{self.id}.hand_over", wire=wire, dialect=dialect)
            answer = await stage.ask(other, words)
            await _cross(stage, _reply(asked, answer, format_ms(await stage.now())), dialect, lost)
            if answer.done:
                results.append(f"{other}: {answer.text}")
            else:
                failed.append(f"{other}: {answer.failure or answer.fate}")
            await stage.tell(first, f"{other}: {answer.heard}")
            stage.keep("\n\n".join(results))
        reason = f"failed: {', '.join(failed)}" if failed else "answered"
        reason = f"lost on the way: {', '.join(lost)}" if lost else reason
        return Outcome(reason, done=not lost and not failed, result="\n\n".join(results))


async def _cross(stage: Stage, envelope: Envelope, to: DialectName, lost: list[str]) -> str:
    """The message in a dialect; what of it does not come back the same is lost."""
    wire, by = encode(envelope, to), envelope.sender.id
    await stage.post(WIRE, wire.decode(), by=by)
    lost += [f"{by}: {name}" for name in lost_on_the_way(envelope, wire)]
    return wire.decode()


def _asked(first: str, other: str, request: str, conversation: str, time: str) -> Envelope:
    """The request as one message to one agent."""
    return Envelope(
        id=step_id(conversation, other, 1),
        kind=Kind.TASK_ASSIGN,
        time=time,
        sender=AgentRef(first),
        recipient=AgentRef(other),
        correlation_id=conversation,
        body=TaskAssign(task_id=f"for-{other}", input=Raw(msgspec.json.encode(request))),
    )


def _reply(asked: Envelope, answer: Answer[None], time: str) -> Envelope:
    """The answer as a message; a failure says of which class it is."""
    kind, body = Kind.TASK_COMPLETE, TaskResult(task_id=asked.task_id or UNSET)
    if answer.done:
        body = msgspec.structs.replace(body, output=Raw(msgspec.json.encode(answer.text)))
    else:
        kind, code = Kind.TASK_FAIL, str(answer.failure or answer.fate).upper()
        body = msgspec.structs.replace(body, error_code=code, error_message=answer.reason)
    assert asked.recipient is not UNSET
    return Envelope(
        id=step_id(asked.id, "reply", 1),
        kind=kind,
        time=time,
        sender=asked.recipient,
        recipient=asked.sender,
        correlation_id=asked.correlation_id,
        reply_to=asked.id,
        body=body,
    )
