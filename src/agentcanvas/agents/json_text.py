"""Finding JSON in what an agent wrote: bare, in a code fence, or between sentences.

Time is bounded: a text full of opening brackets is given up after a fixed number of tries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from agentcanvas.errors import FormError

_MOST_STARTS = 64
_LONGEST_SEARCHED = 1_048_576
_START = re.compile(r"[\[{]")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
_decoder = json.JSONDecoder()


def values(text: str) -> list[Any]:
    """All JSON values in a text, in order; a bare number or word counts only if it is alone."""
    whole = _strict(text)
    if whole:
        return whole
    fenced = [value for block in _fenced(text) for value in _strict(block)]
    return fenced or _embedded(text[-_LONGEST_SEARCHED:])


def only_value(text: str) -> Any:
    """The last JSON value in a text; without one, an error that says so."""
    found = values(text)
    if not found:
        raise FormError(why_no_value(text), part="json")
    return found[-1]


def why_no_value(text: str) -> str:
    """The sentence for a text without JSON."""
    if not text.strip():
        return "The answer is empty: give one JSON value."
    start = _START.search(text)
    if start is None:
        return "There is no JSON in the answer: give one JSON value that fits the schema."
    try:
        msgspec.json.decode(text[start.start() :])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as wrong:
        return f"The JSON in the answer cannot be read ({wrong}): give one complete JSON value."
    return "The JSON in the answer cannot be read: give one complete JSON value."


def _fenced(text: str) -> Iterator[str]:
    """The contents of the code fences; one that is not closed has none."""
    fence, begun = "", 0
    lines = text.split("\n")
    for index, line in enumerate(lines):
        mark = _FENCE.fullmatch(line.rstrip())
        if mark is None:
            continue
        if not fence:
            fence, begun = mark[1], index + 1
        elif mark[1].startswith(fence) and not mark["info"]:
            yield "\n".join(lines[begun:index])
            fence = ""


def _strict(text: str) -> list[Any]:
    """The one value that the text is, as a list of one; empty if it is not JSON to the letter."""
    try:
        return [msgspec.json.decode(text)]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []


def _embedded(text: str) -> list[Any]:
    found: list[Any] = []
    place = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(text, place)
        if start is None:
            break
        place = start.end()
        try:
            _, end = _decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        # The standard library finds the end, but takes NaN and the like for JSON.
        if value := _strict(text[start.start() : end]):
            found += value
            place = end
    return found
