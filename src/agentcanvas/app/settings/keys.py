"""The catalogue of settings: every key, its unit, its range, and how a given value becomes it.

It is read off the ``Limits`` type, so that a new limit is a setting without another line here.
"""

from __future__ import annotations

import difflib
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import msgspec
from msgspec import inspect

from agentcanvas.protocol.limits import Limits

ENVIRONMENT_PREFIX = "AGENTCANVAS_"

_SUFFIXES = {"_ms": "milliseconds", "_s": "seconds", "_bytes": "bytes"}
_MS_PER = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
# L1 counts a megabyte as 1,048,576 bytes, so the settings do too.
_BYTES_PER = {"b": 1, "kb": 1 << 10, "kib": 1 << 10, "mb": 1 << 20, "mib": 1 << 20}
_BYTES_PER |= {"gb": 1 << 30, "gib": 1 << 30}
_FACTORS: Mapping[str, Mapping[str, Fraction]] = {
    "milliseconds": {unit: Fraction(ms) for unit, ms in _MS_PER.items()},
    "seconds": {unit: Fraction(ms, 1_000) for unit, ms in _MS_PER.items()},
    "bytes": {unit: Fraction(size) for unit, size in _BYTES_PER.items()},
}
_EXAMPLES = {
    "milliseconds": '30000, "30s" or "500ms"',
    "seconds": '30, "30s" or "5m"',
    "bytes": '65536 or "64kB"',
}
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)[ \t]*([A-Za-z]+)")
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,9})?")

Value = int | float | bool | str


class UnfitValueError(ValueError):
    """A value a key cannot take; the sentence says what to write instead."""


@dataclass(frozen=True)
class Key:
    """One setting. ``unit`` is empty for a plain number; ``choices`` are all a text may be."""

    path: tuple[str, ...]
    kind: type[int] | type[float] | type[bool] | type[str]
    default: Value
    unit: str = ""
    least: float = -math.inf
    most: float = math.inf
    slip_below: int = 0
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENVIRONMENT_PREFIX + "_".join(self.path).upper()

    def take(self, given: object) -> Value:
        """The value ``given`` stands for, as a YAML file or a caller hands it over."""
        if self.kind is bool:
            return self._bool(given)
        if self.kind is str:
            return self._choice(given)
        if isinstance(given, str):
            return self._in_range(self._quantity(given), given)
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise UnfitValueError(f"must be {self._wanted()}, not {_show(given)}")
        if 0 < given < self.slip_below:
            raise UnfitValueError(
                f"is in {self.unit}, and {given} of them is suspiciously little: write "
                f'{given * 1_000:g} or "{given}s" for seconds, or "{given}ms" if you mean it'
            )
        return self._in_range(self._whole(given), given)

    def take_text(self, text: str) -> Value:
        """The same for a value that can only be text, from the environment or a command line."""
        text = text.strip()
        if self.kind is bool:
            return self._bool({"true": True, "false": False}.get(text.lower(), text))
        if self.kind is not str and _NUMBER.fullmatch(text):
            return self.take(float(text) if "." in text else int(text))
        return self.take(text)

    def _bool(self, given: object) -> bool:
        if isinstance(given, bool):
            return given
        raise UnfitValueError(f"must be true or false, not {_show(given)}")

    def _choice(self, given: object) -> str:
        if not self.choices:
            return self._words(given)
        if isinstance(given, str) and given in self.choices:
            return given
        if str(given) in self.choices:
            raise UnfitValueError(f'must be text: write "{given}" in quotes')
        close = difflib.get_close_matches(str(given), self.choices, n=1)
        advice = f"; did you mean {close[0]}?" if close else ""
        raise UnfitValueError(f"must be {self._wanted()}, not {_show(given)}{advice}")

    def _words(self, given: object) -> str:
        """Names with spaces or commas between them."""
        if isinstance(given, str) and given.split() and len(given) <= self.most:
            return " ".join(given.replace(",", " ").split())
        raise UnfitValueError(f"must be names with spaces between them, not {_show(given)}")

    def _quantity(self, text: str) -> int | float:
        quantity = _QUANTITY.fullmatch(text.strip())
        if _NUMBER.fullmatch(text.strip()):
            raise UnfitValueError(
                f"must be a number, not text: write {text.strip()} without quotes"
            )
        factors = _FACTORS.get(self.unit, {})
        if quantity is None or quantity[2].lower() not in factors:
            raise UnfitValueError(f"must be {self._wanted()}, not {_show(text)}")
        # Fraction("1.5") is exact, where a float would turn 0.3s into 299.99 milliseconds.
        amount = Fraction(quantity[1]) * factors[quantity[2].lower()]
        if amount.denominator != 1:
            raise UnfitValueError(f"takes whole {self.unit}, and {text} is {float(amount):g}")
        return int(amount)

    def _whole(self, given: int | float) -> int | float:
        if self.kind is float:
            return float(given)
        if isinstance(given, float) and not given.is_integer():
            of_unit = f" of {self.unit}" if self.unit else ""
            raise UnfitValueError(f"must be a whole number{of_unit}, not {given}")
        return int(given)

    def _in_range(self, value: int | float, given: object) -> int | float:
        if self.least <= value <= self.most:
            return value
        unit = f" {self.unit}" if self.unit else ""
        said = f"must be between {self.least:,} and {self.most:,}{unit}, not {given}"
        bare_seconds = self.unit == "seconds" and not isinstance(given, str)
        if bare_seconds and self.least <= value / 1_000 <= self.most < value:
            said += f'; "{given}ms" if you mean milliseconds'
        raise UnfitValueError(said)

    def _wanted(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices) if self.choices[1:] else self.choices[0]
        if self.unit:
            return f"a number of {self.unit} such as {_EXAMPLES[self.unit]}"
        return "a whole number" if self.kind is int else "a number"


def _show(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, dict):
        return "a section"
    if isinstance(given, list | tuple):
        return "a list"
    return f'"{textwrap.shorten(str(given), 40, placeholder="…")}"'


def _describe(struct: inspect.Type, path: tuple[str, ...]) -> Iterator[Key]:
    assert isinstance(struct, inspect.StructType)
    for field in struct.fields:
        here = (*path, field.encode_name)
        kind, slip_below = field.type, 0
        if isinstance(kind, inspect.Metadata):
            slip_below = (kind.extra or {}).get("likely_unit_slip_below", 0)
            kind = kind.type
        unit = next((unit for end, unit in _SUFFIXES.items() if field.name.endswith(end)), "")
        match kind:
            case inspect.StructType():
                yield from _describe(kind, here)
            case inspect.BoolType():
                yield Key(here, bool, field.default)
            case inspect.LiteralType(values):
                yield Key(here, str, field.default, choices=tuple(map(str, values)))
            case inspect.StrType(max_length=most):
                yield Key(here, str, field.default, most=most or math.inf)
            case inspect.IntType(ge=least, le=most) | inspect.FloatType(ge=least, le=most):
                yield Key(
                    here,
                    int if isinstance(kind, inspect.IntType) else float,
                    field.default,
                    unit,
                    -math.inf if least is None else least,
                    math.inf if most is None else most,
                    slip_below,
                )
            case _:
                raise TypeError(f"no setting can be made of {here}: {kind}")


KEYS: Mapping[str, Key] = MappingProxyType(
    {key.name: key for key in _describe(inspect.type_info(Limits), ())}
)


def limits_from(values: Mapping[str, Value]) -> Limits:
    """The limits with these keys changed."""
    tree: dict[str, object] = {}
    for name, value in values.items():
        *sections, leaf = KEYS[name].path
        place = tree
        for section in sections:
            inner = place.setdefault(section, {})
            assert isinstance(inner, dict)
            place = inner
        place[leaf] = value
    return msgspec.convert(tree, Limits)


def children(section: tuple[str, ...]) -> list[str]:
    """The names that may stand in a section; none when it is not one."""
    depth = len(section)
    names = {
        key.path[depth]
        for key in KEYS.values()
        if len(key.path) > depth and key.path[:depth] == section
    }
    return sorted(names)


def unknown_key(path: tuple[str, ...]) -> str:
    """What is wrong with a key that does not exist, and which one may be meant."""
    *section, last = path
    name, siblings = ".".join(path), children(tuple(section))
    if last in KEYS:
        outer, *inner = KEYS[last].path
        return f"{name} must be nested: write {outer}: {{{': {'.join(inner)}: …{'}' * len(inner)}"
    if close := difflib.get_close_matches(last, siblings, n=1):
        return f"{name} is not a setting; did you mean {'.'.join((*section, close[0]))}?"
    if elsewhere := [key.name for key in KEYS.values() if key.path[-1] == last]:
        return f"{name} is not a setting here; did you mean {' or '.join(elsewhere)}?"
    place = f"in {'.'.join(section)}" if section else "at the top"
    return f"{name} is not a setting; {place} there can be {', '.join(siblings)}"
