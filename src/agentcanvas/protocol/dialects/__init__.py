"""The three dialects, and the way from one to another.

``decode`` and ``encode`` work on bytes of any dialect; ``translate`` is one after the other.
Which messages are allowed to say what belongs to ``rules``.
"""

from __future__ import annotations

from types import MappingProxyType

from agentcanvas.protocol.dialect import Dialect, DialectName, Reading, detect
from agentcanvas.protocol.dialects.acp import Acp
from agentcanvas.protocol.dialects.mac import Mac
from agentcanvas.protocol.dialects.spec022 import Spec022
from agentcanvas.protocol.envelope import Envelope

MAC = Mac()
SPEC022 = Spec022()
ACP = Acp()

DIALECTS: MappingProxyType[DialectName, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (MAC, SPEC022, ACP)}
)


def decode(data: bytes) -> Reading:
    """Understand a message of any dialect."""
    return DIALECTS[detect(data)].decode(data)


def encode(envelope: Envelope, to: DialectName) -> bytes:
    """Spell a message in a dialect."""
    return DIALECTS[to].encode(envelope)


def translate(data: bytes, to: DialectName) -> bytes:
    """The same message in another dialect. Nothing is lost on the way there and back (M1)."""
    return encode(decode(data).envelope, to)


__all__ = ["ACP", "DIALECTS", "MAC", "SPEC022", "decode", "encode", "translate"]
