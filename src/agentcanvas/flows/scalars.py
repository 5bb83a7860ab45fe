"""What a plain word means: YAML 1.2's core rules, and the words on which YAML 1.1 disagrees.

``on``, ``no`` and ``yes`` are texts here, as the current standard says; whether a text is welcome
at a place is ``shape``'s to say.
"""

from __future__ import annotations

import re
from typing import Final

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INT: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_OLD_OCTAL: Final = re.compile(r"[-+]?0[0-9]+")
_LONGEST_NUMBER: Final = 18

OLD_TRUE: Final = frozenset({"y", "yes", "on"})
OLD_FALSE: Final = frozenset({"n", "no", "off"})
OLD_BOOLEANS: Final = OLD_TRUE | OLD_FALSE
"""Truth values to YAML 1.1, in any capitals; texts since 1.2."""

Scalar = str | int | float | bool | None


class UnfitScalarError(ValueError):
    """A word that no flow can hold; the sentence says why."""


def resolve(word: str) -> Scalar:
    """The value of a plain, unquoted word."""
    if word in _NULL:
        return None
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    if _NOT_FINITE.fullmatch(word):
        raise UnfitScalarError(f"{word} is not a number that can be counted with")
    if not word.isascii():
        return word
    if _INT.fullmatch(word) or _BASED.fullmatch(word):
        if len(word) > _LONGEST_NUMBER:
            raise UnfitScalarError(f"{word[:20]}… is too long for a number")
        return int(word, 0) if _BASED.fullmatch(word) else int(word)
    return _real(word) if _FLOAT.fullmatch(word) else word


def _real(word: str) -> float:
    value = float(word)
    if value in (float("inf"), float("-inf")):
        raise UnfitScalarError(f"{word[:20]} is too large for a number")
    return value


def reads_as_old_octal(word: str) -> bool:
    """Whether versions of YAML disagree on the number: 010 is 8 to the one and 10 to the other."""
    return _OLD_OCTAL.fullmatch(word) is not None


def is_text_everywhere(word: str) -> bool:
    """Whether no version of YAML takes the unquoted word for anything but a text."""
    try:
        return (
            isinstance(resolve(word), str)
            and word.casefold() not in OLD_BOOLEANS
            and not word[0].isdigit()
            and word[0] not in "+-."
        )
    except UnfitScalarError:
        return False
