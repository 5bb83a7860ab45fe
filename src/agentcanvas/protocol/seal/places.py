"""Where each dialect keeps the few fields a seal needs.

MAC has a field for the signature; SPEC-022 and ACP carry it in the extension object (C7). All other
fields of a message are none of a seal's business: it covers them without reading them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agentcanvas.errors import ProtocolError, UnknownDialect

EXTENSION = "x_agentcanvas"
SIGNATURE = "signature"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One dialect's fields, as paths of member names; ``marks`` are fields no other one has."""

    dialect: str
    marks: frozenset[str]
    sender: tuple[str, ...]
    message_id: tuple[str, ...]
    signature: tuple[str, ...]

    def text(self, message: Mapping[str, Any], path: tuple[str, ...]) -> str:
        """The text at ``path``, which a sealed message must have."""
        value = at(message, path)
        if isinstance(value, str) and value:
            return value
        pointer = "/" + "/".join(path)
        raise ProtocolError(f"A sealed message needs a text in {pointer}", pointer=pointer)


MAC = Place(
    dialect="mac",
    marks=frozenset({"type"}),
    sender=("from",),
    message_id=("message_id",),
    signature=(SIGNATURE,),
)
SPEC022 = Place(
    dialect="spec022",
    marks=frozenset({"message_type", "from_agent", "to_agent", "sequence_number"}),
    sender=("from_agent", "agent_id"),
    message_id=("message_id",),
    signature=(EXTENSION, SIGNATURE),
)
ACP = Place(
    dialect="acp",
    marks=frozenset({"action", "commandId", "parameters", "results"}),
    sender=("from",),
    message_id=("id",),
    signature=(EXTENSION, SIGNATURE),
)
_PLACES = {place.dialect: place for place in (MAC, SPEC022, ACP)}


def at(message: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """What is at ``path``; None when a step is missing or no object."""
    value: Any = message
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def has(message: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether there is anything at ``path``, be it null."""
    parent = at(message, path[:-1])
    return isinstance(parent, Mapping) and path[-1] in parent


def place_of(message: Mapping[str, Any], dialect: str | None = None) -> Place:
    """The place of the named dialect; without a name, of the one whose markers ``message`` has."""
    if dialect is not None:
        if dialect not in _PLACES:
            raise UnknownDialect(f"No dialect {dialect[:80]!r}; use one of: {', '.join(_PLACES)}")
        return _PLACES[dialect]
    claims = [place for place in _PLACES.values() if not place.marks.isdisjoint(message)]
    if len(claims) == 1:
        return claims[0]
    if claims:
        found = " and ".join(claim.dialect for claim in claims)
        raise UnknownDialect(f"The message has the marks of {found}; say which it is")
    raise UnknownDialect(f"The message has the marks of none of: {', '.join(_PLACES)}")
