"""JSON Schema for everything on the wire, made from the types that read it.

The schemas hold the letter of the documents: a field that lenient mode does without is required
here. ``documents`` gives every file by name; writing them is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec
from msgspec import inspect

from agentcanvas.protocol import limits, records
from agentcanvas.protocol.dialect import DialectName, spoken
from agentcanvas.protocol.dialects import acp_wire, mac_wire, spec022_wire
from agentcanvas.protocol.envelope import EnvelopeHeader
from agentcanvas.protocol.kinds import BODY_TYPES, Kind, Sealed
from agentcanvas.protocol.shape import held_type, is_wanted

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://agentcanvas.dev/schema/"
WIRES: dict[DialectName, tuple[type[msgspec.Struct], ...]] = {
    DialectName.MAC: mac_wire.MESSAGES,
    DialectName.SPEC022: spec022_wire.MESSAGES,
    DialectName.ACP: acp_wire.MESSAGES,
}

_OPEN = frozenset({mac_wire.MacMetadata})
"""Where the document welcomes fields of anyone's; we know ours so that we can read them quickly."""


def documents() -> dict[str, Schema]:
    """Every exported document, by file name."""
    found = {f"{name}.schema.json": dialect_schema(name) for name in DialectName}
    found["envelope.schema.json"] = envelope_schema()
    found["transcript.schema.json"] = _alternatives(
        "transcript.schema.json",
        "What a worker did in a turn, one event a line",
        get_args(records.TranscriptEvent),
    )
    found["limits.schema.json"] = _single(
        "limits.schema.json", "Every limit and default, with its unit", limits.Limits
    )
    return found


def dialect_schema(name: DialectName) -> Schema:
    """All messages of one dialect."""
    return _alternatives(f"{name}.schema.json", f"A {spoken(name)} message", WIRES[name])


def envelope_schema() -> Schema:
    """The canonical message, its body chosen by its kind."""
    types = [EnvelopeHeader, *dict.fromkeys(BODY_TYPES.values()), Sealed]
    references, definitions = components(types)
    header = definitions.pop(EnvelopeHeader.__name__)
    of = dict(zip(types, references, strict=True))
    header["properties"]["body"] = {"type": "object"}
    cases = [_case(kind, of[body], of[Sealed]) for kind, body in BODY_TYPES.items()]
    return {
        "$schema": _DRAFT,
        "$id": f"{BASE}envelope.schema.json",
        "title": "Envelope",
        "description": "The one message every dialect maps to",
        **{key: header[key] for key in ("type", "properties", "required")},
        "additionalProperties": False,
        "allOf": cases,
        "$defs": definitions,
    }


def _case(kind: Kind, body: Schema, sealed: Schema) -> Schema:
    return {
        "if": {"properties": {"kind": {"const": kind.value}}, "required": ["kind"]},
        "then": {
            "if": {"properties": {"encrypted": {"const": True}}, "required": ["encrypted"]},
            "then": {"properties": {"body": sealed}},
            "else": {"properties": {"body": body}},
        },
    }


def _alternatives(file: str, title: str, types: Iterable[type]) -> Schema:
    references, definitions = components(types)
    return {
        "$schema": _DRAFT,
        "$id": f"{BASE}{file}",
        "title": title,
        "oneOf": list(references),
        "$defs": definitions,
    }


def _single(file: str, title: str, type_: type) -> Schema:
    (reference,), definitions = components([type_])
    return {
        "$schema": _DRAFT,
        "$id": f"{BASE}{file}",
        "title": title,
        **reference,
        "$defs": definitions,
    }


def components(
    types: Iterable[type], reference: str = "#/$defs/{name}"
) -> tuple[tuple[Schema, ...], Schema]:
    """Each type as a reference, and what the references lead to."""
    all_types = list(types)
    structs = list(_structs(all_types))
    references, definitions = msgspec.json.schema_components(
        [*all_types, *(struct.cls for struct in structs)], ref_template=reference
    )
    for struct in structs:
        definition = definitions[struct.cls.__name__]
        wanted = [field.encode_name for field in struct.fields if is_wanted(field)]
        definition["required"] = [*definition.get("required", ()), *wanted]
        if struct.cls in _OPEN:
            definition["additionalProperties"] = True
        for field in struct.fields:
            holds = held_type(field.type)
            if holds is not None:
                # Free JSON to the quick reader, but not free of form.
                (form,), _ = msgspec.json.schema_components([holds], ref_template=reference)
                definition["properties"][field.encode_name] = form
    return references[: len(all_types)], dict(sorted(definitions.items()))


def _structs(types: Iterable[type]) -> Iterator[inspect.StructType]:
    """Every struct type that these are made of, once."""
    waiting: list[Any] = [inspect.type_info(type_) for type_ in types]
    seen: set[type] = set()
    while waiting:
        info = waiting.pop()
        if isinstance(info, inspect.StructType):
            if info.cls in seen:
                continue
            seen.add(info.cls)
            yield info
            waiting += [field.type for field in info.fields]
        elif isinstance(info, inspect.Metadata):
            holds = held_type(info)
            waiting.append(info.type if holds is None else inspect.type_info(holds))
        elif isinstance(info, inspect.UnionType):
            waiting += info.types
        elif isinstance(info, inspect.VarTupleType):
            waiting.append(info.item_type)
        elif isinstance(info, inspect.DictType):
            waiting.append(info.value_type)
