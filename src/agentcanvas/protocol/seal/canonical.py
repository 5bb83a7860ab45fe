"""One spelling for every JSON value (RFC 8785), and what cannot be spelled.

A signature covers what a message says, not how it was typed: key order, white space and escapes
do not matter. That only holds for values every JSON reader understands alike, so this module also
refuses, by name, those that readers differ on: repeated keys, numbers a double cannot hold, half
a surrogate pair, very deep nesting. What is signed with the result belongs to ``sign``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NoReturn

import msgspec
import rfc8785

from agentcanvas.errors import ProtocolError
from agentcanvas.protocol.scan import MAX_DEPTH, RepeatingObject, parse

MAX_NUMBER = 2**53 - 1
_SMALLEST_PLAIN_FRACTION = 1e-4
_LONGEST_NAME = 80
_NOT_EXACT = f"it is not a number from -{MAX_NUMBER} to {MAX_NUMBER}; send it as a string"


def read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in ``raw``; repeated keys are kept for ``canonical`` to refuse by name."""
    value = parse(raw)
    if not isinstance(value, dict):
        raise ProtocolError("A message is a JSON object; put it into { }")
    return value


def without(message: dict[str, Any], *names: str) -> dict[str, Any]:
    """A copy that lacks some members and still knows whether its text repeated a key."""
    rest = copy(message)
    for name in names:
        rest.pop(name, None)
    return rest


def check_sealable(value: object) -> None:
    """Refuse, by the name of the field, what different readers would understand differently."""
    _plainness(value)


def canonical(value: object) -> bytes:
    """``value`` as RFC 8785 text in UTF-8.

    The careful serialiser is 35 times as slow as the quick one, and both write the same bytes for
    values that are *plain*: ASCII keys, no fraction below 0.0001, no whole number typed as 1.0.
    """
    if _plainness(value):
        return msgspec.json.encode(value, order="sorted")
    return rfc8785.dumps(value)  # type: ignore[arg-type]  # the walk above proved it to be JSON


class _Unfit(Exception):
    """A value that cannot be sealed; ``steps`` lead to it, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []

    def as_protocol_error(self) -> ProtocolError:
        # A step may be the very text that cannot be said in UTF-8; the answer has to be sayable.
        steps = [str(step).encode(errors="replace").decode() for step in reversed(self.steps)]
        pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
        name = pointer[-_LONGEST_NAME:] or "The message"
        return ProtocolError(f"{name} cannot be sealed: {self.reason}", pointer=pointer)


def _plainness(value: object) -> bool:
    try:
        return _is_plain(value, 1)
    except _Unfit as unfit:
        raise unfit.as_protocol_error() from None


def _is_plain(value: object, depth: int) -> bool:
    """Whether the quick serialiser will do; raises when none will."""
    return _CHECKS.get(type(value), _not_json)(value, depth)


def _constant(_value: object, _depth: int) -> bool:
    return True


def _text(value: str, _depth: int) -> bool:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Unfit("it holds half a surrogate pair; write the whole character") from None
    return True


def _integer(value: int, _depth: int) -> bool:
    if not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise _Unfit(_NOT_EXACT)
    return True


def _fraction(value: float, _depth: int) -> bool:
    # Every double beyond the limit is a whole number, and RFC 8785 spells it like one: it falls
    # under the same rule, or the canonical text itself could not be verified again.
    if not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise _Unfit(_NOT_EXACT)
    return abs(value) >= _SMALLEST_PLAIN_FRACTION and not value.is_integer()


def _array(value: list[object] | tuple[object, ...], depth: int) -> bool:
    plain = True
    index = 0
    _check_depth(depth)
    try:
        for index, item in enumerate(value):  # noqa: B007 - the handler needs the last index
            plain = _is_plain(item, depth + 1) & plain
    except _Unfit as unfit:
        unfit.steps.append(index)
        raise
    return plain


def _object(value: dict[object, object], depth: int) -> bool:
    plain = True
    key: object = ""
    _check_depth(depth)
    try:
        for key, item in value.items():
            plain = _is_plain_key(key) & _is_plain(item, depth + 1) & plain
    except _Unfit as unfit:
        unfit.steps.append(key if isinstance(key, str) else str(key))
        raise
    return plain


def _is_plain_key(key: object) -> bool:
    if type(key) is not str:
        raise _Unfit("its key is not a string")
    if key.isascii():
        return True
    _text(key, 0)
    return False


def _repeating(value: RepeatingObject, _depth: int) -> NoReturn:
    unfit = _Unfit("the key appears more than once; keep one")
    unfit.steps.append(value.repeated[0])
    raise unfit


def _not_json(value: object, _depth: int) -> NoReturn:
    raise _Unfit(f"a {type(value).__name__} is not a JSON value; convert it first")


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Unfit(f"nested deeper than {MAX_DEPTH} levels; flatten it")


_CHECKS: dict[type, Callable[[Any, int], bool]] = {
    str: _text,
    bool: _constant,
    type(None): _constant,
    int: _integer,
    float: _fraction,
    list: _array,
    tuple: _array,
    dict: _object,
    RepeatingObject: _repeating,
}
