"""The building blocks of every typed value on the wire.

Absent is ``UNSET``, never ``None``: JSON null is not a way to leave a field out. Free-form JSON is
held as ``Raw``, the bytes as they were written: immutable, and exact down to the text of a number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from agentcanvas.protocol import scan

__all__ = [
    "UNSET",
    "Count",
    "Fraction",
    "Id",
    "JsonObject",
    "Maybe",
    "NotNegative",
    "Ordinal",
    "Percent",
    "Raw",
    "Seconds",
    "TextOrObject",
    "Timestamp",
    "UnsetType",
    "Uuid",
    "Value",
    "Wanted",
    "Whole",
    "Word",
    "as_text",
    "check_free",
    "freeze",
    "is_object",
    "is_sound_object",
    "is_text",
    "thaw",
]

T = TypeVar("T")

Maybe: TypeAlias = T | UnsetType
"""An optional field."""

Wanted: TypeAlias = Annotated[T | UnsetType, Meta(extra={"wanted": True})]
"""A field the documents require, but their own examples leave out: strict mode insists on it,
lenient mode records its absence (M3)."""

Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Uuid = Annotated[str, Meta(min_length=1, extra_json_schema={"format": "uuid"})]
"""For the schema's readers; the forms themselves are checked by ``codec`` and ``rules``."""

Id = Annotated[str, Meta(min_length=1)]
"""What a message is known by; an empty one would be that of every message without."""

JsonObject = Annotated[Raw, Meta(extra={"holds": dict[str, Any]})]
"""Free JSON that has to be an object. ``holds`` is what the schema and the careful reader go by;
the quick reader sees any JSON, so types that use it check it themselves."""

TextOrObject = Annotated[Raw, Meta(extra={"holds": str | dict[str, Any]})]

_LARGEST = 2**53 - 1
"""Beyond it a double, which is what most readers of JSON use, does not hold every whole number."""

_LONGEST_S = _LARGEST // 1000
_LONGEST_MS = _LONGEST_S * 1000

Whole = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
Ordinal = Annotated[int, Meta(ge=1, le=_LARGEST)]
NotNegative = (
    Annotated[int, Meta(ge=0, le=_LONGEST_MS)] | Annotated[float, Meta(ge=0, le=float(_LONGEST_MS))]
)
Seconds = (
    Annotated[int, Meta(ge=0, le=_LONGEST_S)] | Annotated[float, Meta(ge=0, le=float(_LONGEST_S))]
)
"""Seconds that are milliseconds elsewhere: what fits here has to fit there, and back."""

Percent = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)]
Fraction = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]

_SURELY_FLAT = 2 * scan.MAX_DEPTH
"""Each level takes two bytes at least."""

_OBJECT_START = ord("{")
_TEXT_START = ord('"')


class Word(StrEnum):
    """A word of the protocol. ``Enum`` hashes in Python; these are keys on the hot path."""

    __hash__ = str.__hash__


class Value(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A frozen value that refuses fields it does not know.

    Values hold only immutable values, so they cannot be part of a cycle and the garbage collector
    need not look at them.
    """


def freeze(value: object) -> Raw:
    """Any JSON-able value as immutable JSON text."""
    return Raw(msgspec.json.encode(value))


def thaw(raw: Raw) -> object:
    """A fresh, mutable copy of what ``raw`` says; numbers beyond all range are infinite."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.ValidationError:
        return scan.roughly(bytes(raw))


def as_text(raw: Raw) -> str:
    """A JSON string as its text, anything else as it was written."""
    if is_text(raw):
        return msgspec.json.decode(raw, type=str)
    return bytes(raw).decode(errors="replace")


def is_object(raw: Raw) -> bool:
    """Whether ``raw`` is a JSON object (a ``Raw`` starts at its first significant byte)."""
    return memoryview(raw)[0] == _OBJECT_START


def check_free(raw: Raw) -> None:
    """Refuse free JSON that is nested too deep; the bytes around it are bounded by their types."""
    if len(memoryview(raw)) > _SURELY_FLAT:
        scan.check_depth(bytes(raw))


def is_sound_object(raw: Raw) -> bool:
    """Whether ``raw`` is an object; one that is nested too deep is refused."""
    view = memoryview(raw)
    if view[0] != _OBJECT_START:
        return False
    if len(view) > _SURELY_FLAT:
        scan.check_depth(bytes(raw))
    return True


def is_text(raw: Raw) -> bool:
    """Whether ``raw`` is a JSON string."""
    return memoryview(raw)[0] == _TEXT_START
