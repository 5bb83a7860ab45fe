"""A careful reader for typed values: finds every breach, where the quick one stops at the first.

It walks parsed JSON along the same types the quick reader decodes into, so the two cannot drift
apart. A breach carries the JSON pointer of the field and a sentence that says how to mend it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from agentcanvas.protocol.scan import RepeatingObject

_ELSEWHERE = "remove it or put it where extensions go"
_MOST_HINTS = 20
"""Looking for a similar name is slow; beyond so many unknown ones it was no slip of the pen."""
_LONGEST_NAME = 80
_INFINITE = (math.inf, -math.inf)


class Rule(StrEnum):
    """What a breach is against; the id is stable and can be searched for."""

    JSON = "json"
    DIALECT = "dialect"
    REQUIRED = "required"
    WANTED = "wanted"
    TYPE = "type"
    MEMBER = "member"
    RANGE = "range"
    UNKNOWN_FIELD = "unknown-field"
    REPEATED_KEY = "repeated-key"
    ID_FORM = "id-form"
    TIME_FORM = "time-form"
    PAYLOAD_TIME = "payload-time"
    TASK_NEW = "task-new"
    TASK_ACTIVE = "task-active"
    REVIEW_ACTIVE = "review-active"
    KNOWN_AGENT = "known-agent"
    ID_NEW = "id-new"
    DIRECTION = "direction"
    VERDICT_PARTS = "verdict-parts"
    SEALED = "sealed"
    CIPHERTEXT = "ciphertext"
    EXTENSION = "extension"


_RECORDED = frozenset(
    {
        Rule.WANTED,
        Rule.UNKNOWN_FIELD,
        Rule.REPEATED_KEY,
        Rule.ID_FORM,
        Rule.PAYLOAD_TIME,
        Rule.CIPHERTEXT,
        Rule.DIRECTION,
        Rule.VERDICT_PARTS,
        Rule.EXTENSION,
    }
)


class Breach(msgspec.Struct, frozen=True):
    """One rule broken at one place."""

    rule: Rule
    pointer: str
    sentence: str

    @property
    def fatal(self) -> bool:
        """Whether lenient mode refuses the message for it; the others are only recorded (M3)."""
        return self.rule not in _RECORDED

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.sentence} [{self.rule}]"


def breaches_of(value: object, type_: Any, pointer: str = "") -> list[Breach]:
    """Every way in which parsed JSON differs from ``type_``, in document order."""
    return list(_walk(value, _info(type_), pointer))


@cache
def _info(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


def at(pointer: str, key: str | int) -> str:
    """``pointer`` extended by one step, escaped as RFC 6901 asks."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _walk(value: Any, info: inspect.Type, pointer: str) -> Iterator[Breach]:
    if isinstance(info, inspect.Metadata):
        holds = held_type(info)
        yield from _walk(value, info.type if holds is None else _info(holds), pointer)
    elif isinstance(info, inspect.UnionType):
        yield from _walk_union(value, info, pointer)
    elif isinstance(info, inspect.StructType):
        yield from _walk_struct(value, info, pointer)
    elif isinstance(info, inspect.VarTupleType | inspect.ListType):
        if not isinstance(value, list):
            yield _wrong_type(value, "an array", pointer)
        else:
            for index, item in enumerate(value):
                yield from _walk(item, info.item_type, at(pointer, index))
    elif isinstance(info, inspect.DictType):
        if not isinstance(value, dict):
            yield _wrong_type(value, "an object", pointer)
        else:
            yield from _repeated(value, pointer)
            for key, item in value.items():
                yield from _walk(item, info.value_type, at(pointer, key))
    else:
        yield from _walk_scalar(value, info, pointer)


def _walk_struct(value: Any, info: inspect.StructType, pointer: str) -> Iterator[Breach]:
    if not isinstance(value, dict):
        yield _wrong_type(value, "an object", pointer)
        return
    yield from _repeated(value, pointer)
    names = {field.encode_name for field in info.fields}
    if info.tag_field:
        names.add(info.tag_field)
    for field in info.fields:
        name = field.encode_name
        if name in value:
            yield from _walk(value[name], field.type, at(pointer, name))
        elif field.required:
            yield Breach(Rule.REQUIRED, at(pointer, name), f"Missing required field: {name}")
        elif is_wanted(field):
            yield Breach(
                Rule.WANTED, at(pointer, name), f"Missing field: {name}; the document requires it"
            )
    if info.forbid_unknown_fields:
        unknown = [name for name in value if name not in names]
        for count, name in enumerate(unknown):
            hint = _did_you_mean(name, names) if count < _MOST_HINTS else _ELSEWHERE
            yield Breach(
                Rule.UNKNOWN_FIELD, at(pointer, name), f"Unknown field: {_short(name)}; {hint}"
            )


def _walk_union(value: Any, info: inspect.UnionType, pointer: str) -> Iterator[Breach]:
    attempts = [list(_walk(value, option, pointer)) for option in info.types]
    # The option whose own type fits says the most helpful things (a number out of range is not
    # told that it could have been a string).
    best = min(attempts, key=lambda found: (_misfit(found, pointer), len(found)))
    if _misfit(best, pointer):
        words = " or ".join(dict.fromkeys(_word(option) for option in info.types))
        yield _wrong_type(value, words, pointer)
    else:
        yield from best


def _misfit(found: list[Breach], pointer: str) -> bool:
    return any(breach.rule is Rule.TYPE and breach.pointer == pointer for breach in found)


def _walk_scalar(value: Any, info: inspect.Type, pointer: str) -> Iterator[Breach]:
    match info:
        case inspect.AnyType() | inspect.RawType():
            yield from _walk_free(value, info, pointer)
        case inspect.StrType():
            if not isinstance(value, str):
                yield _wrong_type(value, "a string", pointer)
            elif not value and info.min_length:
                name = pointer.rpartition("/")[2]
                yield Breach(Rule.REQUIRED, pointer, f"Missing required field: {name} is empty")
        case inspect.BoolType():
            if not isinstance(value, bool):
                yield _wrong_type(value, "true or false", pointer)
        case inspect.IntType() | inspect.FloatType():
            yield from _number(value, info, pointer)
        case inspect.EnumType():
            yield from _member(value, [member.value for member in info.cls], pointer)
        case inspect.LiteralType():
            yield from _member(value, list(info.values), pointer)
        case _:
            raise AssertionError(f"no wire type uses {type(info).__name__}")


def _walk_free(value: Any, info: inspect.Type, pointer: str) -> Iterator[Breach]:
    """Free JSON may be anything, but not ambiguous."""
    if isinstance(value, dict):
        yield from _repeated(value, pointer)
        for key, item in value.items():
            yield from _walk_free(item, info, at(pointer, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk_free(item, info, at(pointer, index))


def _number(
    value: Any, info: inspect.IntType | inspect.FloatType, pointer: str
) -> Iterator[Breach]:
    whole = isinstance(info, inspect.IntType)
    # A whole number too long to read is infinite to the careful parser.
    fits = int if whole and value not in _INFINITE else int | float
    if isinstance(value, bool) or not isinstance(value, fits):
        yield _wrong_type(value, "a whole number" if whole else "a number", pointer)
    else:
        yield from _range(value, info.ge, info.le, pointer)


def _member(value: Any, members: list[Any], pointer: str) -> Iterator[Breach]:
    if not isinstance(value, str):
        yield _wrong_type(value, "a string", pointer)
    elif value not in members:
        allowed = ", ".join(str(member) for member in members)
        yield Breach(Rule.MEMBER, pointer, f"Unknown value {value[:80]!r}; use one of: {allowed}")


def _range(value: float, low: float | None, high: float | None, pointer: str) -> Iterator[Breach]:
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        if high is None:
            wanted = f"at least {low:.16g}"
        elif low is None:
            wanted = f"at most {high:.16g}"
        else:
            wanted = f"from {low:.16g} to {high:.16g}"
        said = "A number that large" if value in _INFINITE else str(value)[:40]
        yield Breach(Rule.RANGE, pointer, f"{said} is out of range; use a number {wanted}")


def _repeated(value: dict[str, Any], pointer: str) -> Iterator[Breach]:
    if isinstance(value, RepeatingObject):
        for key in value.repeated:
            yield Breach(
                Rule.REPEATED_KEY,
                at(pointer, key),
                f"Repeated key: {_short(key)}; readers differ on which one counts, keep one",
            )


def _wrong_type(value: Any, wanted: str, pointer: str) -> Breach:
    name = pointer.rsplit("/", 1)[-1] or "the message"
    return Breach(
        Rule.TYPE, pointer, f"Wrong type for {name}: expected {wanted}, got {_got(value)}"
    )


def _got(value: Any) -> str:
    if value is None:
        return "null (leave the field out instead)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"[:60]
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "an array"


def _word(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata():
            return _word(info.type)
        case inspect.StrType() | inspect.EnumType() | inspect.LiteralType():
            return "a string"
        case inspect.IntType() | inspect.FloatType():
            return "a number"
        case inspect.StructType() | inspect.DictType():
            return "an object"
        case _:
            return "an array"


def held_type(info: inspect.Type) -> Any:
    """What free JSON has to be, where its field says so (``JsonObject`` and its like)."""
    while isinstance(info, inspect.Metadata):
        holds = (info.extra or {}).get("holds")
        if holds is not None:
            return holds
        info = info.type
    return None


def is_wanted(field: inspect.Field) -> bool:
    """Whether the letter requires a field that lenient mode does without."""
    return isinstance(field.type, inspect.Metadata) and bool((field.type.extra or {}).get("wanted"))


def _short(name: str) -> str:
    """A name as far as a sentence needs it; the pointer has the whole of it."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _did_you_mean(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else _ELSEWHERE
