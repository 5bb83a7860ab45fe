"""A look at the bytes before they are parsed, and the careful parse when something is wrong.

The quick reader (msgspec) is lenient where we may not be: a raw payload passes broken UTF-8, a
repeated key hides the first one, and depth ends in a RecursionError. ``prescan`` costs a few
hundred nanoseconds and keeps all that away from it; ``parse`` is slow and exact.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, NoReturn

from msgspec import Raw

from agentcanvas.errors import MessageTooLarge, ProtocolError

MAX_BYTES = 1_048_576
MAX_DEPTH = 64

_TRANSLATED = b'"x_agentcanvas"'
_DEPTH_OF_EXTENSION = 4
"""How much deeper a translation holds what it cannot show; the source was within the limit."""

_OPEN_BRACE = ord("{")
_OPEN_BRACKET = ord("[")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {_OPEN_BRACE: 1, _OPEN_BRACKET: 1, ord("}"): -1, ord("]"): -1}
_LONGEST_INTEGER = 400
"""In digits; a longer one is beyond a double, and Python refuses to read thousands of them."""


def prescan(data: bytes) -> None:
    """Refuse what the quick reader would choke on or let through."""
    if len(data) > MAX_BYTES:
        raise too_large(len(data))
    if not data.isascii():
        check_utf8(data)
    if data.count(_OPEN_BRACE) > MAX_DEPTH or _OPEN_BRACKET in data:
        check_depth(data)


def too_large(size: int) -> MessageTooLarge:
    """The error for a message over the limit."""
    return MessageTooLarge(
        f"The message has {size:,} bytes; at most {MAX_BYTES:,} are allowed. "
        "Send large content as a blob and refer to it."
    )


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_utf8(data: bytes) -> None:
    """Refuse bytes that are not UTF-8, naming the place."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"Invalid UTF-8 at byte {error.start}; encode as UTF-8") from None


def check_depth(data: bytes) -> None:
    """Refuse nesting over the limit."""
    # Depth needs that many opening brackets; nearly every message has fewer and is done here.
    if data.count(_OPEN_BRACE) > MAX_DEPTH or (
        _OPEN_BRACKET in data and data.count(_OPEN_BRACE) + data.count(_OPEN_BRACKET) > MAX_DEPTH
    ):
        _measure_depth(data)


def _measure_depth(data: bytes) -> None:
    brackets = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    limit = MAX_DEPTH + _DEPTH_OF_EXTENSION if _TRANSLATED in data else MAX_DEPTH
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > limit:
        raise ProtocolError(f"Nested deeper than {MAX_DEPTH} levels; flatten it")


class RepeatingObject(dict[str, Any]):
    """A parsed object whose text had a key more than once."""

    repeated: tuple[str, ...] = ()


def parse(data: bytes) -> Any:
    """Exact parse: JSON by the letter, with repeated keys remembered on the object."""
    prescan(data)
    check_utf8(data)
    # As text, because given bytes the standard parser guesses at other encodings.
    text = data.decode()
    if not text.strip():
        raise ProtocolError("There is no message: the input is empty")
    if text.startswith("\ufeff"):
        raise ProtocolError("Starts with a byte order mark; send UTF-8 without one")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_int=_integer,
        )
    except RecursionError:
        raise ProtocolError(f"Nested deeper than {MAX_DEPTH} levels; flatten it") from None
    except ValueError as error:
        raise ProtocolError(f"Not valid JSON: {error}") from None
    _check_surrogates(data)
    return value


def exactly(data: bytes) -> Any:
    """Parsed JSON to compare with other parsed JSON: equal exactly when both say the same.

    Spacing and the order of keys do not count. A number is the tuple of its characters: as it was
    written, and unlike any string or boolean.
    """
    return json.loads(data, object_pairs_hook=_members, parse_int=tuple, parse_float=tuple)


def verbatim(data: bytes) -> Any:
    """Parsed JSON with each number as it was written, whether anything can hold it or not."""
    return json.loads(data, parse_int=_raw, parse_float=_raw)


def roughly(data: bytes) -> Any:
    """Parsed JSON with numbers that nothing can hold as infinite."""
    return json.loads(data, parse_int=_integer)


def _raw(number: str) -> Raw:
    return Raw(number.encode())


def _members(pairs: list[tuple[str, Any]]) -> Any:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else tuple(pairs)


def _integer(digits: str) -> float:
    """A whole number; one that nothing could hold becomes infinite, which every range excludes."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    result = RepeatingObject(plain)
    seen: set[str] = set()
    result.repeated = tuple(
        dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # set.add gives None: the idiom marks the second sight
    )
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; use a number or a string")


_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)


def _check_surrogates(data: bytes) -> None:
    """Python's parser accepts half of a surrogate pair; no UTF-8 can say that."""
    awaited = -1  # where the low half must start
    for escape in _ESCAPE.finditer(data):
        unit = int(escape[1], 16) if escape[1] else 0
        if awaited >= 0 and not (unit in _LOW and escape.start() == awaited):
            break
        if unit in _LOW and awaited < 0:
            awaited = escape.start()
            break
        awaited = escape.end() if unit in _HIGH else -1
    if awaited >= 0:
        raise ProtocolError(f"Lone surrogate escape near byte {awaited}; write the whole character")
