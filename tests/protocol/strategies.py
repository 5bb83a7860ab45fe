"""Messages of every dialect and kind, generated from the wire types themselves."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import acp_wire, mac_wire, spec022_wire
from agentcanvas.protocol.envelope import Envelope, EnvelopeHeader, from_json
from agentcanvas.protocol.extension import Extension
from agentcanvas.protocol.kinds import BODY_TYPES, Kind
from agentcanvas.protocol.timestamps import format_ms

Json = Any
MESSAGES: dict[DialectName, tuple[type[msgspec.Struct], ...]] = {
    DialectName.MAC: mac_wire.MESSAGES,
    DialectName.SPEC022: spec022_wire.MESSAGES,
    DialectName.ACP: acp_wire.MESSAGES,
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.uuids(version=4).map(str)
times = st.integers(0, 4_102_444_800_000).map(format_ms)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)

_TIME_FIELDS = {"timestamp", "accepted_at", "completed_at", "deadline", "time"}
_ID_FIELDS = {"message_id", "id"}


def of_type(info: inspect.Type) -> st.SearchStrategy[Json]:  # noqa: C901, PLR0912 - a case a type
    """Parsed JSON that fits a type."""
    match info:
        case inspect.Metadata():
            holds = (info.extra or {}).get("holds")
            return of_type(inspect.type_info(holds) if holds is not None else info.type)
        case inspect.UnionType():
            return st.one_of([of_type(option) for option in info.types])
        case inspect.StructType():
            return struct(info)
        case inspect.VarTupleType():
            return st.lists(of_type(info.item_type), max_size=2)
        case inspect.DictType():
            return st.dictionaries(texts, of_type(info.value_type), max_size=2)
        case inspect.EnumType():
            return st.sampled_from([member.value for member in info.cls])
        case inspect.LiteralType():
            return st.sampled_from(list(info.values))
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(info.ge if info.ge is not None else -1000, info.le or 2**40)
        case inspect.FloatType():
            return st.floats(
                info.ge if info.ge is not None else -1e9,
                info.le if info.le is not None else 1e12,
                allow_nan=False,
            )
        case inspect.StrType():
            return texts.filter(len) if info.min_length else texts
        case inspect.RawType() | inspect.AnyType():
            return json_values
        case _:
            raise AssertionError(info)


def struct(info: inspect.StructType) -> st.SearchStrategy[Json]:
    """A JSON object for a struct; the extension is left out, it is ours to write."""
    required: dict[str, st.SearchStrategy[Json]] = {}
    optional: dict[str, st.SearchStrategy[Json]] = {}
    if info.tag_field:
        required[info.tag_field] = st.just(info.tag)
    for field in info.fields:
        if isinstance(field.type, inspect.StructType) and field.type.cls is Extension:
            continue
        name = field.encode_name
        value = of_type(field.type)
        if field.name in _TIME_FIELDS:
            value = times
        elif field.name in _ID_FIELDS and info.tag_field:
            value = ids
        (required if field.required else optional)[name] = value
    return st.fixed_dictionaries(required, optional=optional)


def messages(dialect: DialectName) -> st.SearchStrategy[Json]:
    """A message of a dialect as parsed JSON, any of its types, encrypted ones included."""
    return st.one_of([_message(dialect, type_) for type_ in MESSAGES[dialect]])


def _message(dialect: DialectName, type_: type[msgspec.Struct]) -> st.SearchStrategy[Json]:
    info = inspect.type_info(type_)
    assert isinstance(info, inspect.StructType)
    made = struct(info)
    return made.map(_agree_on_encryption) if dialect is DialectName.MAC else made


def _agree_on_encryption(message: Json) -> Json:
    """``encrypted`` says whether the payload is a string; the type alone does not tie them."""
    if isinstance(message["payload"], str):
        message["encrypted"] = True
    elif message.get("encrypted"):
        message["encrypted"] = False
    return message


def _envelope_parts(kind: Kind) -> st.SearchStrategy[Json]:
    header = inspect.type_info(EnvelopeHeader)
    assert isinstance(header, inspect.StructType)
    skip = {"body", "kind", "origin", "fragments", "encrypted", "encryption_algorithm"}
    fields = [field for field in header.fields if field.name not in skip]
    required = {f.name: of_type(f.type) for f in fields if f.required}
    optional = {f.name: of_type(f.type) for f in fields if not f.required}
    body = inspect.type_info(BODY_TYPES[kind])
    return st.fixed_dictionaries(
        {
            **required,
            "id": texts.filter(len),
            "time": times,
            "kind": st.just(kind.value),
            "body": of_type(body),
        },
        optional=optional,
    )


def envelopes() -> st.SearchStrategy[Envelope]:
    """Messages of every kind as the engine would write them."""
    return (
        st.sampled_from(list(Kind))
        .flatmap(_envelope_parts)
        .map(lambda parts: from_json(msgspec.json.encode(parts)))
    )
