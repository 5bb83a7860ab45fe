"""Taking pieces out of JSON text and putting them back, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct

from agentcanvas.protocol.envelope import Fragment
from agentcanvas.protocol.scan import MAX_DEPTH

_EMPTY = Raw(b"{}")
_ARRAY_START = ord("[")
_object = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(list[Raw])


class _Place(Struct):
    """Where pointers lead, step by step, so that the text is edited once for all of them.

    ``pointer`` is the one that ends here, if any, and ``json`` what is to be put there.
    """

    pointer: str = ""
    json: Raw | None = None
    below: dict[str, _Place] = msgspec.field(default_factory=dict)


def without(data: bytes, pointers: Sequence[str]) -> tuple[bytes, tuple[Fragment, ...]]:
    """The text without the members at ``pointers``, and those members in the same order."""
    if not pointers:
        return data, ()
    root = _Place()
    for pointer in pointers:
        _place(root, pointer)
    taken: dict[str, Raw] = {}
    rest = _take(data, root, taken)
    found = tuple(Fragment(pointer, taken[pointer]) for pointer in pointers if pointer in taken)
    return rest, found


def insert(data: bytes, fragments: Iterable[Fragment]) -> bytes:
    """The text with the members put (back) at their places; objects on the way are made.

    Raises ValueError or LookupError for a place that the text cannot have.
    """
    root = _Place()
    for fragment in fragments:
        _place(root, fragment.pointer).json = fragment.json
    return _put(data, root)


def _place(root: _Place, pointer: str) -> _Place:
    steps = pointer.split("/")[1:]
    if not pointer.startswith("/") or len(steps) > MAX_DEPTH:
        raise ValueError("a fragment's pointer leads to no member of a message")
    place = root
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        place = place.below.setdefault(name, _Place())
    place.pointer = pointer
    return place


def _take(data: bytes | Raw, place: _Place, taken: dict[str, Raw]) -> bytes:
    if memoryview(data)[0] == _ARRAY_START:
        items = _array.decode(data)
        for step, below in place.below.items():
            items[int(step)] = Raw(_take(items[int(step)], below, taken))
        return msgspec.json.encode(items)
    members = _object.decode(data)
    for step, below in place.below.items():
        if below.pointer:
            taken[below.pointer] = members.pop(step).copy()
        else:
            members[step] = Raw(_take(members[step], below, taken))
    return msgspec.json.encode(members)


def _put(data: bytes | Raw, place: _Place) -> bytes:
    if memoryview(data)[0] == _ARRAY_START:
        items = _array.decode(data)
        for step, below in place.below.items():
            items[int(step)] = Raw(_put(items[int(step)], below))
        return msgspec.json.encode(items)
    members = _object.decode(data)
    for step, below in place.below.items():
        there = members.get(step, _EMPTY)
        if below.json is not None and below.json != _EMPTY:
            there = below.json  # an object that was empty may hold something by now
        members[step] = Raw(_put(there, below)) if below.below else there
    return msgspec.json.encode(members)
