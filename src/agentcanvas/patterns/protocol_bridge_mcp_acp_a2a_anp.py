"""protocol_bridge_mcp_acp_a2a_anp (P20): a request crosses to agents that speak otherwise.

The bridge spells the request of the first local agent in the dialect of each other one, hands it
over, and spells the answer, good or bad, back. On the way there and back a message keeps its id,
its correlation and, where the work failed, the class of the failure; what is lost is named. A
bridge agent may put each message in other words; if it loses something it is told once, then the
message goes as the rules spell it. The wire forms are on the board. It carries the three message
dialects; protocols outside the hub have doors of their own.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.messages import reply_of, request_of
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import encode, lost_on_the_way
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.ids import step_id
from agentcanvas.protocol.timestamps import format_ms

LOCAL, BRIDGE = "local", "bridge"
WIRE = "wire"
TRIES = 2
"""A bridge agent that loses something is told once."""


class Options(msgspec.Struct, frozen=True):
    """``dialects`` are what the other agents speak, in their order and from the start again."""

    dialects: Annotated[tuple[DialectName, ...], Meta(min_length=1)] = tuple(DialectName)


class ProtocolBridge:
    """Spell, hand over, spell back."""

    id = "protocol_bridge_mcp_acp_a2a_anp"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(LOCAL, "the first asks, the others answer in their dialects", least=2, most=None),
        Role(BRIDGE, "puts what rules translated in other words", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every other agent answers, both ways are put in other words, and the first hears it."""
        del options
        others = size.count(LOCAL) - 1
        bridged = 2 * TRIES * size.count(BRIDGE)
        turns = {LOCAL: others * size.ask, BRIDGE: others * bridged * size.ask}
        return Most.of(turns, told=others)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Cross the bridge once for each other agent."""
        first, *others = cast[LOCAL]
        results: list[str] = []
        lost: list[str] = []
        failed: list[str] = []
        conversation = step_id(request, f"{first}/{await stage.now()}", 1)
        for number, other in enumerate(others):
            dialect = options.dialects[number % len(options.dialects)]
            asked = request_of(first, other, request, conversation, format_ms(await stage.now()))
            wire = await _cross(stage, cast, asked, dialect, lost)
            words = stage.words(f"{self.id}.hand_over", wire=wire, dialect=dialect)
            answer = await stage.ask(other, words)
            reply = reply_of(asked, answer, format_ms(await stage.now()))
            await _cross(stage, cast, reply, dialect, lost)
            if answer.done:
                results.append(f"{other}: {answer.text}")
            else:
                failed.append(f"{other}: {answer.failure or answer.fate}")
            await stage.tell(first, f"{other}: {answer.heard}")
            stage.keep("\n\n".join(results))
        reason = f"failed: {', '.join(failed)}" if failed else "answered"
        reason = f"lost on the way: {', '.join(lost)}" if lost else reason
        return Outcome(reason, done=not lost and not failed, result="\n\n".join(results))


async def _cross(
    stage: Stage, cast: Cast, envelope: Envelope, to: DialectName, lost: list[str]
) -> str:
    """The message in a dialect; what of it does not come back the same is lost."""
    wire, by = encode(envelope, to).decode(), envelope.sender.id
    lost += [f"{by}: {name}" for name in lost_on_the_way(envelope, wire.encode())]
    for bridge in cast.get(BRIDGE, ()):
        wire = await _in_other_words(stage, bridge, envelope, to, wire)
    await stage.post(WIRE, wire, by=by)
    return wire


async def _in_other_words(
    stage: Stage, bridge: str, envelope: Envelope, to: DialectName, wire: str
) -> str:
    """What the bridge agent makes of a message, if that is still the same message."""
    missing = ""
    for _ in range(TRIES):
        facts = {"wire": wire, "dialect": to, "lost": missing}
        words = stage.words(f"{ProtocolBridge.id}.put", **facts)
        said = (await stage.ask(bridge, words)).text.strip()
        missing = ", ".join(lost_on_the_way(envelope, said.encode()))
        if not missing:
            return said
    return wire
