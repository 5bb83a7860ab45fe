"""The building blocks of every typed value on the wire.

Absent is ``UNSET``, never ``None``: JSON null is not a way to leave a field out. Free-form JSON is
held as ``Raw``, the bytes as they were written: immutable, and exact down to the text of a number.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

__all__ = [
    "UNSET",
    "Fraction",
    "JsonObject",
    "Maybe",
    "NotNegative",
    "Percent",
    "Raw",
    "TextOrObject",
    "UnsetType",
    "Value",
    "Wanted",
    "freeze",
    "is_object",
    "is_text",
    "thaw",
]

T = TypeVar("T")

Maybe: TypeAlias = T | UnsetType
"""An optional field."""

Wanted: TypeAlias = Annotated[T | UnsetType, Meta(extra={"wanted": True})]
"""A field the documents require, but their own examples leave out: strict mode insists on it,
lenient mode records its absence (M3)."""

JsonObject = Annotated[
    Raw, Meta(extra={"holds": dict[str, Any]}, extra_json_schema={"type": "object"})
]
"""Free JSON that has to be an object. ``holds`` is what the schema and the careful reader go by;
the quick reader sees any JSON, so types that use it check it in ``__post_init__``."""

TextOrObject = Annotated[
    Raw,
    Meta(
        extra={"holds": str | dict[str, Any]}, extra_json_schema={"type": ["string", "object"]}
    ),
]

NotNegative = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
Percent = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)]
Fraction = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]

_OBJECT_START = ord("{")
_TEXT_START = ord('"')


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen value that refuses fields it does not know."""


def freeze(value: object) -> Raw:
    """Any JSON-able value as immutable JSON text."""
    return Raw(msgspec.json.encode(value))


def thaw(raw: Raw) -> object:
    """A fresh, mutable copy of what ``raw`` says."""
    return msgspec.json.decode(raw)


def is_object(raw: Raw) -> bool:
    """Whether ``raw`` is a JSON object (a ``Raw`` starts at its first significant byte)."""
    return memoryview(raw)[0] == _OBJECT_START


def is_text(raw: Raw) -> bool:
    """Whether ``raw`` is a JSON string."""
    return memoryview(raw)[0] == _TEXT_START
