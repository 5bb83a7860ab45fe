"""Messages that went wrong: bytes flipped, fields dropped, renamed, retyped, swapped, added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from agentcanvas.protocol.dialect import DialectName, detect
from agentcanvas.protocol.dialects import translate
from tests.protocol import strategies
from tests.protocol.samples import example_messages, packed

Json = Any
Path = tuple[str | int, ...]

EXAMPLES = example_messages()


def paths(value: Json, path: Path = ()) -> Iterator[Path]:
    """Where everything in parsed JSON is, the whole left out."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def at(value: Json, path: Path) -> Json:
    """What is at a path."""
    for key in path:
        value = value[key]
    return value


def copy(value: Json) -> Json:
    """A copy to be changed."""
    return json.loads(json.dumps(value))


def put(value: Json, path: Path, item: Json) -> Json:
    """A copy with something else at a path."""
    value = copy(value)
    at(value, path[:-1])[path[-1]] = item
    return value


def drop(value: Json, path: Path) -> Json:
    """A copy without what is at a path."""
    value = copy(value)
    del at(value, path[:-1])[path[-1]]
    return value


WORDS = sorted(
    {
        key
        for data in EXAMPLES.values()
        for path in paths(json.loads(data))
        for key in path
        if isinstance(key, str)
    }
    | {"x_agentcanvas", "kind", "origin", "filled", "header", "body", "carried", "fragments"}
)
"""Names that mean something somewhere."""

values = (
    strategies.json_values
    | st.sampled_from([0, 1, -1, 2**53, 2**70, 1e308, "", "unknown", "mac", "spec022", "acp", True])
    | st.sampled_from(WORDS)
)


@st.composite
def mutated(draw: st.DrawFn, messages: st.SearchStrategy[Json]) -> Json:
    """A message after one to three changes."""
    message = copy(draw(messages))
    for _ in range(draw(st.integers(1, 3))):
        places = list(paths(message))
        if not places:
            break
        path = draw(st.sampled_from(places))
        parent = at(message, path[:-1])
        change = draw(st.sampled_from(["drop", "retype", "rename", "swap", "add"]))
        if change == "drop":
            message = drop(message, path)
        elif change == "retype":
            message = put(message, path, draw(values))
        elif change == "swap":
            other = draw(st.sampled_from(places))
            item, item_there = copy(at(message, path)), copy(at(message, other))
            message = put(message, path, item_there)
            if path != other[: len(path)]:
                message = put(message, other, item)
        elif isinstance(parent, dict):
            item = at(message, path)
            if change == "rename":
                message = drop(message, path)
            name = draw(st.sampled_from(WORDS) | strategies.texts)
            message = put(message, (*path[:-1], name), item if change == "rename" else draw(values))
    return message


# Made once: building a strategy takes longer than drawing from it.
made_up = st.one_of([strategies.messages(dialect) for dialect in DialectName])
of_documents = st.sampled_from([json.loads(data) for data in EXAMPLES.values()])


@st.composite
def translations(draw: st.DrawFn) -> Json:
    """Messages that were translated, and so have an extension."""
    data = packed(draw(of_documents | made_up))
    abroad = draw(st.sampled_from([name for name in DialectName if name is not detect(data)]))
    return json.loads(translate(data, abroad))


any_message = of_documents | made_up | translations()
"""A valid message: of the documents, made up, or translated."""


@st.composite
def garbled(draw: st.DrawFn) -> bytes:
    """A valid message with some bytes flipped, cut out, repeated or put in."""
    data = bytearray(packed(draw(any_message)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        change = draw(st.sampled_from(["flip", "cut", "repeat", "put"]))
        if change == "flip" and start < len(data):
            data[start] ^= draw(st.integers(1, 255))
        elif change == "cut":
            del data[start:end]
        elif change == "repeat":
            data[start:start] = data[start:end]
        else:
            data[start:start] = draw(
                st.sampled_from(
                    [b'"', b"\\", b"{", b"]", b",", b"\xff", b"\x00", b"1e999", b"\\ud800"]
                )
                | st.binary(max_size=4)
            )
    return bytes(data)
