"""Taking pieces out of JSON text and putting them back, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Raw

from agentcanvas.protocol.envelope import Fragment

Members = dict[str, Raw]

_EMPTY = Raw(b"{}")
_object = msgspec.json.Decoder(Members)
_array = msgspec.json.Decoder(list[Raw])


def without(data: bytes, pointers: Sequence[str]) -> tuple[bytes, tuple[Fragment, ...]]:
    """The text without the members at ``pointers``, and those members."""
    taken: list[Fragment] = []
    for pointer in pointers:
        root, member = _split(pointer)

        def take(members: Members, member: str = member, pointer: str = pointer) -> Members:
            found = members.pop(member, None)
            if found is not None:
                taken.append(Fragment(pointer, found.copy()))
            return members

        data = _edit(data, root, take)
    return data, tuple(taken)


def insert(data: bytes, fragments: Iterable[Fragment]) -> bytes:
    """The text with the members put (back) at their places; objects on the way are made."""
    for fragment in fragments:
        root, member = _split(fragment.pointer)

        def put(members: Members, member: str = member, json: Raw = fragment.json) -> Members:
            return {**members, member: json}

        data = _edit(data, root, put)
    return data


def _edit(data: bytes | Raw, path: list[str], change: Callable[[Members], Members]) -> bytes:
    if not path:
        return msgspec.json.encode(change(_object.decode(data)))
    if memoryview(data)[0] == ord("["):
        items = _array.decode(data)
        index = int(path[0])
        items[index] = Raw(_edit(items[index], path[1:], change))
        return msgspec.json.encode(items)
    members = _object.decode(data)
    members[path[0]] = Raw(_edit(members.get(path[0], _EMPTY), path[1:], change))
    return msgspec.json.encode(members)


def _split(pointer: str) -> tuple[list[str], str]:
    *root, member = (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
    return root, member
