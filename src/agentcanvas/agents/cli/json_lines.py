"""Reading JSON that anybody may have written: asked for a value, it gives one of the right type.

What is not there, or is of another type, is an empty value; nothing here raises.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

_LARGEST = 1 << 62


def object_in(line: str) -> tuple[str, dict[str, Any]] | None:
    """The JSON object that a line ends with, and the text before it.

    Some CLIs print a banner or a last word without a line break in front of it.
    """
    stripped = line.strip()
    if not stripped.endswith("}"):
        return None
    start = stripped.find("{")
    if start < 0:
        return None
    found = _decoded(stripped[start:])
    if found is None and (start := stripped.find('{"', start + 1)) >= 0:
        found = _decoded(stripped[start:])
    return None if found is None else (stripped[:start], found)


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def at(value: Any, *path: str | int) -> Any:
    """What lies at a path; None if nothing does."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def text(value: Any, *path: str | int) -> str:
    """A text at a path."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def flag(value: Any, *path: str | int) -> bool:
    """Whether there is a true at a path."""
    return at(value, *path) is True


def count(value: Any, *path: str | int) -> int | UnsetType:
    """A count at a path; unset if there is none."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return UNSET
    if not 0 <= found <= _LARGEST or math.isnan(found):
        return UNSET
    return int(found)


def whole(value: Any, *path: str | int) -> int | None:
    """A whole number at a path, such as an exit code or a status."""
    found = at(value, *path)
    fits = isinstance(found, int) and not isinstance(found, bool) and abs(found) <= _LARGEST
    return found if fits else None


def amount(value: Any, *path: str | int) -> float | UnsetType:
    """An amount of money at a path."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return UNSET
    return float(found) if 0 <= found <= _LARGEST and not math.isnan(found) else UNSET


def entries(value: Any, *path: str | int) -> list[dict[str, Any]]:
    """The objects of a list at a path."""
    found = at(value, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def raw(value: Any) -> Raw | UnsetType:
    """A value as the JSON of a tool's input."""
    if value is None:
        return UNSET
    try:
        return Raw(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return UNSET


def words(value: Any) -> str:
    """What a tool gave back, as text: plain, in blocks, or any JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [each if isinstance(each, str) else text(each, "text") for each in value]
        if any(parts):
            return "\n".join(filter(None, parts))
    if value is None:
        return ""
    encoded = raw(value)
    return "" if isinstance(encoded, UnsetType) else bytes(encoded).decode("utf-8", "replace")
