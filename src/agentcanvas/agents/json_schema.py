"""Holding plain JSON data to a JSON Schema, with a sentence for each breach.

Knows the keywords that schemas of answers use (draft 2020-12, as msgspec exports them); what it
does not know it passes over, so that a schema never refuses more than it says. References lead
within the schema only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

_DEEPEST = 64
_SHOWN = 60

Schema = Mapping[str, Any] | bool


def problems(value: Any, schema: Schema) -> list[str]:
    """Every breach; a place is written as ``tasks[1].agent``."""
    return list(_Check(schema).walk(value, schema, "", 0))


class _Check:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._followed: set[tuple[str, int]] = set()

    def walk(self, value: Any, schema: Schema, place: str, depth: int) -> Iterator[str]:
        """The breaches of one value against one schema."""
        if depth > _DEEPEST:
            yield f"{_named(place)} is nested too deep: use at most {_DEEPEST} levels."
        elif schema is False:
            yield f"{_named(place)} must not be there: leave it out."
        elif isinstance(schema, Mapping):
            yield from self._against(value, schema, place, depth)

    def _against(
        self, value: Any, schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        if "$ref" in schema:
            yield from self._referred(value, schema["$ref"], place, depth)
        wrong_type = _type_problem(value, schema, place)
        if wrong_type:  # the other keywords would only repeat it
            yield wrong_type
            return
        yield from _choice_problems(value, schema, place)
        yield from self._combinations(value, schema, place, depth)
        if isinstance(value, dict):
            yield from self._object(value, schema, place, depth)
        elif isinstance(value, list):
            yield from self._array(value, schema, place, depth)
        elif isinstance(value, str):
            yield from _text_problems(value, schema, place)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number_problems(value, schema, place)

    def _referred(self, value: Any, reference: str, place: str, depth: int) -> Iterator[str]:
        step = (reference, id(value))
        if step in self._followed:  # it leads back to itself and says nothing more
            return
        self._followed.add(step)
        yield from list(self.walk(value, self._target(reference), place, depth + 1))
        self._followed.discard(step)

    def _target(self, reference: str) -> Schema:
        found: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name, True) if isinstance(found, Mapping) else True
        return found if isinstance(found, Mapping | bool) else True

    def _combinations(
        self, value: Any, schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.walk(value, part, place, depth + 1)
        for keyword, most in (("anyOf", math.inf), ("oneOf", 1)):
            if keyword not in schema:
                continue
            tried = [list(self.walk(value, part, place, depth + 1)) for part in schema[keyword]]
            fitting = sum(not found for found in tried)
            if fitting == 0:
                # The alternative with the fewest breaches is the one that was meant.
                closest = min(tried, key=len, default=[])
                yield from closest or [f"{_named(place)} fits none of the alternatives."]
            elif fitting > most:
                yield f"{_named(place)} fits {fitting} alternatives: it must fit exactly one."
        if "not" in schema and not list(self.walk(value, schema["not"], place, depth + 1)):
            yield f"{_named(place)} is {_shown(value)}, which is excluded."

    def _object(
        self, value: dict[str, Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{_named(_below(place, name))} is missing: add it."
        known: Mapping[str, Schema] = schema.get("properties", {})
        others: Schema = schema.get("additionalProperties", True)
        for name, item in value.items():
            below = _below(place, name)
            if name in known:
                yield from self.walk(item, known[name], below, depth + 1)
            elif others is False:
                allowed = ", ".join(known) or "nothing"
                yield f"{_named(below)} is not known here: use {allowed}."
            else:
                yield from self.walk(item, others, below, depth + 1)
        yield from _count_problems(len(value), schema, place, ("minProperties", "maxProperties"))

    def _array(
        self, value: list[Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        first: list[Schema] = schema.get("prefixItems", [])
        others: Schema = schema.get("items", True)
        for index, item in enumerate(value):
            here = first[index] if index < len(first) else others
            yield from self.walk(item, here, f"{place}[{index}]", depth + 1)
        yield from _count_problems(len(value), schema, place, ("minItems", "maxItems"))
        if schema.get("uniqueItems"):
            written = [msgspec.json.encode(item, order="deterministic") for item in value]
            if len(set(written)) < len(written):
                yield f"{_named(place)} has an entry twice: name each once."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_SPOKEN = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}


def _type_problem(value: Any, schema: Mapping[str, Any], place: str) -> str:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else list(given or ())
    if not names or any(_TYPES.get(name, lambda _: True)(value) for name in names):
        return ""
    wanted = " or ".join(_SPOKEN.get(name, name) for name in names)
    return f"{_named(place)} must be {wanted}, not {_shown(value)}."


def _choice_problems(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        choices = ", ".join(_shown(each) for each in schema["enum"])
        yield f"{_named(place)} must be one of {choices}, not {_shown(value)}."
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{_named(place)} must be {_shown(schema['const'])}, not {_shown(value)}."


def _same(one: Any, other: Any) -> bool:
    # In JSON true is not 1, but 1.0 is.
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _text_problems(value: str, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    yield from _count_problems(len(value), schema, place, ("minLength", "maxLength"))
    pattern = schema.get("pattern")
    if pattern is not None and not _matches(pattern, value):
        yield f"{_named(place)} must match {pattern}, and {_shown(value)} does not."


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True  # a pattern of another language refuses nothing here


_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, bound: value >= bound, "at least"),
    "maximum": (lambda value, bound: value <= bound, "at most"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "more than"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "less than"),
}


def _number_problems(value: float, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    for keyword, (holds, words) in _BOUNDS.items():
        if keyword in schema and not holds(value, schema[keyword]):
            yield f"{_named(place)} must be {words} {schema[keyword]}, not {_shown(value)}."
    step = schema.get("multipleOf")
    if step and not float(value / step).is_integer():
        yield f"{_named(place)} must be a multiple of {step}, not {_shown(value)}."


def _count_problems(
    count: int, schema: Mapping[str, Any], place: str, keywords: tuple[str, str]
) -> Iterator[str]:
    least, most = (schema.get(keyword) for keyword in keywords)
    unit = "characters" if keywords[0] == "minLength" else "entries"
    if least is not None and count < least:
        yield f"{_named(place)} has {count} {unit}: give at least {least}."
    if most is not None and count > most:
        yield f"{_named(place)} has {count} {unit}: give at most {most}."


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _named(place: str) -> str:
    return f'"{place}"' if place else "The answer"


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
