"""Plain data against the types of the model: every difference at once, with a way out.

``shaped`` also unfolds the two abbreviations (one thing for a list of one, a word for a section),
so that what comes out converts into the model; ``folded`` is the way back. What the parts mean
together is left to ``check``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from agentcanvas.flows.part import ONE, SHORT
from agentcanvas.flows.problem import Problem, Rule, at, did_you_mean, shown
from agentcanvas.flows.scalars import OLD_FALSE, OLD_TRUE

Made = TypeVar("Made")

_GROUPED: Final = re.compile(r"[-+]?[0-9]{1,3}(?:[_, '][0-9]{3})+|[-+]?[0-9]+(?:\.[0-9]+)?")
_WITH_UNIT: Final = re.compile(r"([0-9]+) ?(ms|s|sec|m|min|h)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000}


def shaped(value: Any, type_: Any, pointer: str = "") -> tuple[Any, list[Problem]]:
    """``value`` unfolded, and all its differences from ``type_``; sound if there are none."""
    shaping = _Shaping()
    return shaping.walk(value, type_info(type_), pointer), shaping.problems


def made(value: Any, type_: type[Made], pointer: str = "") -> tuple[Made | None, list[Problem]]:
    """The typed value, or None with everything that is in the way."""
    unfolded, problems = shaped(value, type_, pointer)
    return (None, problems) if problems else (msgspec.convert(unfolded, type_), [])


def folded(value: msgspec.Struct) -> Any:
    """A typed value as plain data, in its shortest form: defaults left out, abbreviations used."""
    return _fold(msgspec.to_builtins(value), type_info(type(value)))


@cache
def type_info(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


def bare(info: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """A type without its annotations and without None, and the abbreviations it allows."""
    extra: dict[str, Any] = {}
    while True:
        if isinstance(info, inspect.Metadata):
            extra |= info.extra or {}
            info = info.type
        elif isinstance(info, inspect.UnionType):
            types = [each for each in info.types if not isinstance(each, inspect.NoneType)]
            if len(types) > 1:
                return info, extra
            info = types[0]
        else:
            return info, extra


class _Shaping:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.visits: dict[type[inspect.Type], Callable[[Any, Any, str], Any]] = {
            inspect.AnyType: lambda value, _info, _pointer: value,
            inspect.DictType: self.mapping,
            inspect.StructType: self.struct,
            inspect.UnionType: self.union,
            inspect.VarTupleType: self.sequence,
        }

    def walk(self, value: Any, info: inspect.Type, pointer: str) -> Any:
        info, extra = bare(info)
        if ONE in extra and not isinstance(value, list):
            assert isinstance(info, inspect.VarTupleType)
            return [self.walk(value, info.item_type, pointer)]
        if SHORT in extra and isinstance(value, str):
            value = {extra[SHORT]: value}
        visit = self.visits.get(type(info))
        return visit(value, info, pointer) if visit else self.scalar(value, info, pointer)

    def union(self, value: Any, info: inspect.UnionType, pointer: str) -> Any:
        structs = {t.tag: t for t in info.types if isinstance(t, inspect.StructType) and t.tag}
        if structs:
            return self.tagged(value, structs, pointer)
        listed = [t for t in info.types if isinstance(t, inspect.VarTupleType)]
        others = [t for t in info.types if not isinstance(t, inspect.VarTupleType)]
        return self.walk(value, (listed if isinstance(value, list) else others)[0], pointer)

    def tagged(self, value: Any, structs: dict[Any, inspect.StructType], pointer: str) -> Any:
        names = ", ".join(structs)
        if not isinstance(value, dict):
            if isinstance(value, str) and value in structs:
                self.wrong(
                    Rule.TYPE, pointer, f"{value} must be a section", f"write {{type: {value}, …}}"
                )
            else:
                self.not_a("a section with a type", value, pointer, f"its type is one of {names}")
        elif value.get("type") is None:
            self.wrong(Rule.MISSING, pointer, "type is missing", f"it is one of {names}")
        elif not isinstance(value["type"], str) or value["type"] not in structs:
            given = str(value["type"])
            advice = did_you_mean(given, structs, f"use one of {names}")
            self.wrong(Rule.CHOICE, at(pointer, "type"), f"there is no type {shown(given)}", advice)
        else:
            return self.struct(value, structs[value["type"]], pointer)
        return value

    def struct(self, value: Any, info: inspect.StructType, pointer: str) -> Any:
        known = [field.encode_name for field in info.fields]
        if not isinstance(value, dict):
            self.not_a("a section with keys", value, pointer, f"write {known[0]}: … below it")
            return value
        tag = {info.tag_field: info.tag} if info.tag_field else {}
        for name in value:
            if name not in known and name not in tag:
                advice = did_you_mean(name, known)
                problem = Problem(Rule.UNKNOWN_KEY, f"{name} is not known here", advice)
                self.note(problem, at(pointer, name), at_key=True)
        # A key with nothing behind it is one whose value was commented out: it counts as absent.
        given = {name: each for name, each in value.items() if each is not None}
        unfolded: dict[str, Any] = dict(tag)
        for field in info.fields:
            name = field.encode_name
            if name in given:
                unfolded[name] = self.walk(given[name], field.type, at(pointer, name))
            elif field.required:
                self.wrong(Rule.MISSING, pointer, f"{name} is missing", f"add {name}: …")
        return unfolded

    def sequence(self, value: Any, info: inspect.VarTupleType, pointer: str) -> Any:
        if not isinstance(value, list):
            example = f"[{value}]" if isinstance(value, str) else "[…]"
            self.not_a("a list", value, pointer, f"write {example}")
            return value
        return [self.walk(each, info.item_type, at(pointer, i)) for i, each in enumerate(value)]

    def mapping(self, value: Any, info: inspect.DictType, pointer: str) -> Any:
        if not isinstance(value, dict):
            self.not_a("a section with keys", value, pointer, "write name: value below it")
            return value
        if isinstance(info.value_type, inspect.AnyType):
            return value
        return {
            name: self.walk(each, info.value_type, at(pointer, name))
            for name, each in value.items()
            if each is not None
        }

    def scalar(self, value: Any, info: inspect.Type, pointer: str) -> Any:
        if isinstance(info, inspect.BoolType):
            if not isinstance(value, bool):
                self.not_a("true or false", value, pointer, _boolean_advice(value))
        elif isinstance(info, inspect.IntType | inspect.FloatType):
            self.number(value, info, pointer)
        elif isinstance(info, inspect.StrType):
            self.text(value, info, pointer)
        else:
            return self.choice(value, info, pointer)
        return value

    def number(self, value: Any, info: inspect.IntType | inspect.FloatType, pointer: str) -> None:
        whole = isinstance(info, inspect.IntType)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            what = "a whole number" if whole else "a number"
            self.not_a(what, value, pointer, _number_advice(value, pointer))
            return
        least = info.ge if info.ge is not None else info.gt
        low = least is not None and (value < least or (info.gt is not None and value == least))
        if low or (info.le is not None and value > info.le):
            above = f"more than {info.gt}" if info.gt is not None else f"{info.ge} or more"
            upto = f", and at most {info.le:,}" if info.le is not None else ""
            self.wrong(
                Rule.RANGE, pointer, f"{_name(pointer)} cannot be {value}", f"use {above}{upto}"
            )

    def text(self, value: Any, info: inspect.StrType, pointer: str) -> None:
        if not isinstance(value, str):
            advice = "" if isinstance(value, dict | list | None) else "put it in quotes"
            self.not_a("a text", value, pointer, advice)
        elif not value.strip() and info.min_length:
            self.wrong(Rule.RANGE, pointer, f"{_name(pointer)} is empty", "write something")
        elif info.max_length is not None and len(value) > info.max_length:
            self.wrong(
                Rule.RANGE,
                pointer,
                f"{_name(pointer)} has {len(value)} characters",
                f"use at most {info.max_length}",
            )

    def choice(self, value: Any, info: inspect.Type, pointer: str) -> Any:
        members = _members(info)
        if isinstance(value, float) and str(value) in members:
            return str(value)  # version: 0.2 is a number to YAML
        if not isinstance(value, str) or value not in members:
            all_ = "use " + " or ".join(members) if len(members) < 4 else ""  # noqa: PLR2004  # reads well
            advice = did_you_mean(str(value), members, all_ or f"use one of {', '.join(members)}")
            rule = Rule.VERSION if pointer == "/version" else Rule.CHOICE
            self.wrong(rule, pointer, f"{_name(pointer)} cannot be {shown(value)}", advice)
        return value

    def not_a(self, what: str, value: Any, pointer: str, advice: str) -> None:
        self.wrong(
            Rule.TYPE, pointer, f"{_name(pointer)} must be {what}, not {shown(value)}", advice
        )

    def wrong(self, rule: Rule, pointer: str, sentence: str, suggestion: str = "") -> None:
        self.problems.append(Problem(rule, sentence, suggestion, pointer))

    def note(self, problem: Problem, pointer: str, *, at_key: bool) -> None:
        placed = msgspec.structs.replace(problem, pointer=pointer, at_key=at_key)
        self.problems.append(placed)


def _fold(value: Any, info: inspect.Type) -> Any:
    info, extra = bare(info)
    if isinstance(info, inspect.VarTupleType) and isinstance(value, list | tuple):
        items = [_fold(each, info.item_type) for each in value]
        return items[0] if ONE in extra and len(items) == 1 else items
    if isinstance(info, inspect.UnionType) and isinstance(value, list | tuple):
        return list(value)
    if isinstance(info, inspect.DictType) and not isinstance(info.value_type, inspect.AnyType):
        return {name: _fold(each, info.value_type) for name, each in value.items()}
    if isinstance(info, inspect.StructType):
        types = {field.encode_name: field.type for field in info.fields}
        items_ = {n: _fold(each, types[n]) if n in types else each for n, each in value.items()}
        return items_[extra[SHORT]] if items_.keys() == {extra.get(SHORT)} else items_
    return value


def _members(info: inspect.Type) -> tuple[str, ...]:
    if isinstance(info, inspect.EnumType):
        return tuple(str(member.value) for member in info.cls)
    assert isinstance(info, inspect.LiteralType)
    return tuple(str(value) for value in info.values)


def _name(pointer: str) -> str:
    parts = pointer.split("/")
    return next((part for part in reversed(parts) if not part.isdigit()), "") or "the flow"


def _boolean_advice(value: Any) -> str:
    word = str(value).casefold()
    if word in OLD_TRUE or word in OLD_FALSE:
        return f"write {'true' if word in OLD_TRUE else 'false'}"
    return "write true or false"


def _number_advice(value: Any, pointer: str) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if isinstance(value, bool):
        return f"write {int(value)}"
    if not isinstance(value, str):
        return ""
    if _GROUPED.fullmatch(value):
        return f"write {re.sub(r'[_, ' + chr(39) + ']', '', value)} without quotes or separators"
    if pointer.endswith(("/ms", "_ms")) and (unit := _WITH_UNIT.fullmatch(value)):
        return f"write {int(unit[1]) * _UNIT_MS[unit[2]]}, in milliseconds"
    return ""
