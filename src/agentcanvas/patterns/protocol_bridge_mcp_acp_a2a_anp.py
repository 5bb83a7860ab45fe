"""protocol_bridge_mcp_acp_a2a_anp (P20): a request crosses to agents that speak otherwise.

The bridge spells the request of the first local agent in the dialect of each other one, hands it
over, and spells the answer, good or bad, back. On the way there and back a message keeps its id,
its correlation and, where the work failed, the class of the failure; the bridge compares, and says
by name what was lost. The wire forms are on the board. It carries the three message dialects;
protocols outside the hub have doors of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from agentcanvas.pattern import Answer, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import decode, encode
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.ids import step_id
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.timestamps import format_ms
from agentcanvas.protocol.values import Raw

LOCAL = "local"
BRIDGE = "bridge"
WIRE = "wire"

_KEPT = ("id", "correlation_id", "reply_to")
"""What a message never loses on the way."""


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
            asked = await _asked(stage, first, other, request, conversation)
            wire, missing = await _cross(stage, asked, dialect, first)
            words = stage.words(f"{self.id}.hand_over", wire=wire, dialect=dialect)
            answer = await stage.ask(other, words)
            reply = _reply(asked, answer, format_ms(await stage.now()))
            _, also = await _cross(stage, reply, dialect, other)
            lost += [f"{other}: {name}" for name in (*missing, *also)]
            if answer.done:
                results.append(f"{other}: {answer.text}")
            else:
                failed.append(f"{other}: {answer.failure or answer.fate}")
            await stage.tell(first, f"{other}: {_told(answer)}")
            stage.keep("\n\n".join(results))
        result = "\n\n".join(results)
        if lost:
            return Outcome(f"lost on the way: {', '.join(lost)}", done=False, result=result)
        if failed:
            return Outcome(f"failed: {', '.join(failed)}", done=False, result=result)
        return Outcome("answered", done=True, result=result)


async def _asked(stage: Stage, first: str, other: str, request: str, conversation: str) -> Envelope:
    """The request as one message to one agent."""
    return Envelope(
        id=step_id(conversation, other, 1),
        kind=Kind.TASK_ASSIGN,
        time=format_ms(await stage.now()),
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


async def _cross(
    stage: Stage, envelope: Envelope, dialect: DialectName, by: str
) -> tuple[str, Sequence[str]]:
    """The message in a dialect, and what of it does not come back the same."""
    wire = encode(envelope, dialect)
    await stage.post(WIRE, wire.decode(), by=by)
    back = decode(wire).envelope
    missing = [name for name in _KEPT if getattr(back, name) != getattr(envelope, name)]
    if getattr(back.body, "error_code", UNSET) != getattr(envelope.body, "error_code", UNSET):
        missing.append("error_code")
    return wire.decode(), missing


def _told(answer: Answer[None]) -> str:
    return answer.text if answer.done else f"{answer.fate}: {answer.reason}"
