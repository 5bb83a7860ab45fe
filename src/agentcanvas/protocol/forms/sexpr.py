"""The expressions of FIPA's string syntax (SC00070): words, strings and lists.

Nothing here knows what a message is. Reading does not recurse, is linear in the length of the text,
and refuses lists nested deeper than any honest message.
"""

from __future__ import annotations

import re
from typing import TypeAlias

MAX_DEPTH = 64
_SPACE = re.compile(r"[\x00-\x20]*")
_BARE = re.compile(r"[^\x00-\x20()]+")
# A backslash stands for itself unless a quote follows it; possessive, so that an unfinished string
# is not mistaken for a shorter one.
_STRING = re.compile(r'"((?:[^"\\]++|\\"?+)*+)"')
_COUNTED = re.compile(r'#(\d{1,9})"')
_SAFE_WORD = re.compile(r"[A-Za-z_][\w:./@+~-]*", re.ASCII)

Expression: TypeAlias = "str | list[Expression]"


class Word(str):
    """A bare token: a performative, a keyword, a number. A quoted string is a plain ``str``."""

    __slots__ = ()


class ExpressionError(ValueError):
    """The text breaks off or is not balanced; the sentence says how."""


def skip_space(text: str, place: int) -> int:
    """The next place that holds something."""
    space = _SPACE.match(text, place)
    assert space is not None  # it matches nothing as well
    return space.end()


def read(text: str, start: int) -> tuple[Expression, int]:
    """The expression that begins at or after ``start``, and the place behind it."""
    place = start
    open_lists: list[list[Expression]] = []
    while True:
        place = skip_space(text, place)
        if place >= len(text):
            raise ExpressionError("it breaks off before it is closed")
        value: Expression
        if text[place] == "(":
            if len(open_lists) == MAX_DEPTH:
                raise ExpressionError(f"it is nested deeper than {MAX_DEPTH} levels")
            open_lists.append([])
            place += 1
            continue
        if text[place] == ")":
            if not open_lists:
                raise ExpressionError("a value is missing before a closing parenthesis")
            value, place = open_lists.pop(), place + 1
        else:
            value, place = _read_atom(text, place)
        if not open_lists:
            return value, place
        open_lists[-1].append(value)


def _read_atom(text: str, place: int) -> tuple[str, int]:
    if text[place] == '"':
        if quoted := _STRING.match(text, place):
            return quoted[1].replace('\\"', '"'), quoted.end()
        raise ExpressionError("a string is not closed by a quote")
    if counted := _COUNTED.match(text, place):
        size, begin = int(counted[1]), counted.end()
        # A character takes one byte or more, so `size` characters are always enough.
        content = text[begin : begin + size].encode("utf-8", "surrogatepass")[:size]
        try:
            string = content.decode()
        except UnicodeDecodeError:
            raise ExpressionError(f"#{size} ends inside a character") from None
        if len(content) < size:
            raise ExpressionError(f"#{size} announces more bytes than there are")
        return string, begin + len(string)
    bare = _BARE.match(text, place)
    assert bare is not None  # neither space nor parenthesis
    return Word(bare[0]), bare.end()


def write_text(text: str) -> str:
    """A word where that is beyond doubt, else a string."""
    return text if _SAFE_WORD.fullmatch(text) else write_string(text)


def write_string(text: str) -> str:
    """A string literal, or one with a byte count where readers differ about backslashes."""
    if '\\"' in text or text.endswith("\\"):
        return f'#{len(text.encode())}"{text}'
    return '"' + text.replace('"', '\\"') + '"'
