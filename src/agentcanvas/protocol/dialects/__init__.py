"""The three dialects, and the way from one to another.

Of each, ``_wire`` has the types as the document says them, ``_forms`` what our kinds are called and
which field says what, and the file of its name what tables cannot say.

``decode`` and ``encode`` work on bytes of any dialect; ``translate`` is one after the other.
Which messages are allowed to say what belongs to ``rules``.
"""

from __future__ import annotations

from types import MappingProxyType

from msgspec import UNSET

from agentcanvas.errors import ProtocolError
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

_IDENTITY = ("id", "correlation_id", "reply_to")


def decode(data: bytes) -> Reading:
    """Understand a message of any dialect."""
    return DIALECTS[detect(data)].decode(data)


def encode(envelope: Envelope, to: DialectName) -> bytes:
    """Spell a message in a dialect."""
    return DIALECTS[to].encode(envelope)


def translate(data: bytes, to: DialectName) -> bytes:
    """The same message in another dialect. Nothing is lost on the way there and back (M1)."""
    return encode(decode(data).envelope, to)


def lost_on_the_way(envelope: Envelope, wire: bytes) -> list[str]:
    """What of a message its wire form does not give back: of its identity, and of how it failed.

    From one that nobody understands nothing comes back.
    """
    try:
        back = decode(wire).envelope
    except ProtocolError:
        return ["message"]
    lost = [name for name in _IDENTITY if getattr(back, name) != getattr(envelope, name)]
    if getattr(back.body, "error_code", UNSET) != getattr(envelope.body, "error_code", UNSET):
        lost.append("error_code")
    return lost


__all__ = [
    "ACP",
    "DIALECTS",
    "MAC",
    "SPEC022",
    "decode",
    "encode",
    "lost_on_the_way",
    "translate",
]
